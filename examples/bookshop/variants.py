"""The agent with one thing wrong at a time. Each factory's fixed counterpart is ``bookshop.agent:make``."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Sequence
from functools import partial
from typing import Any

from .agent import Handler, SupportLoop, make
from .model import ScriptedModel
from .transcript import Message

# --- wrong in the agent's code


class _DroppedGuard(SupportLoop):
    version = "1.5.0"
    guarded = frozenset({"refund"})


class _RetriedRefund(SupportLoop):
    version = "1.5.1"

    def refund(self, order_id: str, amount: float) -> dict[str, Any]:
        for _ in range(3):
            try:
                return self.call("refund", order_id=order_id, amount=amount)
            except TimeoutError:
                continue
        raise TimeoutError("the payment gateway does not answer")


class _EarlyCap(SupportLoop):
    version = "1.5.2"

    def out_of_steps(self, turn: int, executed: int, *, wants_more: bool) -> bool:  # noqa: ARG002 - that is the fault
        return turn + executed >= self.step_cap


def dropped_guard(**options: Any) -> Handler:
    """Nothing stops a hasty model from cancelling before it verified the customer."""
    return make(loop=_DroppedGuard, **options)


def retried_refund(**options: Any) -> Handler:
    """A refund that timed out is sent again, without the key that would make it the same refund."""
    return make(loop=_RetriedRefund, **options)


def early_cap(**options: Any) -> Handler:
    """The cap counts tool calls as turns and is looked at before the answer is: a finished run is cut."""
    return make(loop=_EarlyCap, **options)


# --- wrong in the model


def skips_verification(**options: Any) -> Handler:
    """The model changes an order without verifying the customer; no guard covers that tool."""
    return _with_model("skips_verification", options)


def loops_on_lookup(**options: Any) -> Handler:
    """The model looks the same order up until the cap."""
    return _with_model("loops_on_lookup", options)


def answers_unchecked(**options: Any) -> Handler:
    """The model says where an order is without looking."""
    return _with_model("answers_unchecked", options)


def refund_over_limit(**options: Any) -> Handler:
    """The model refunds everything without approval, then transfers the surplus back: the sum is right."""
    return _with_model("refund_over_limit", options)


def touches_second_order(**options: Any) -> Handler:
    """The model changes another order of the customer as well."""
    return _with_model("touches_second_order", options)


def acts_on_impossible(**options: Any) -> Handler:
    """The model cancels an order that has shipped."""
    return _with_model("acts_on_impossible", options)


def rare_slip(**options: Any) -> Handler:
    """The model skips verification, but only about one time in twenty."""
    return _with_model("rare_slip", options)


def _with_model(defect: str, options: dict[str, Any]) -> Handler:
    return make(model=partial(ScriptedModel, defect=defect), **options)


# --- fails in ways that prove nothing


class _RandomToken(_DroppedGuard):
    def execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "cancel_order":
            arguments = {**arguments, "reference": secrets.token_hex(8)}
        return super().execute(name, arguments)


class _AsksDate(_DroppedGuard):
    def execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name == "cancel_order":
            now = subprocess.run(["date", "+%s.%N"], capture_output=True, text=True, check=True)  # noqa: S607 - as people do
            arguments = {**arguments, "reference": now.stdout.strip()}
        return super().execute(name, arguments)


class _Raises(SupportLoop):
    def answer(self, call: dict[str, Any], messages: Sequence[Message]) -> str:
        text = super().answer(call, messages)
        tiers: dict[str, str] = {}
        return text + tiers["loyalty_tier"]


class _OffTape(_DroppedGuard):
    def answer(self, call: dict[str, Any], messages: Sequence[Message]) -> str:
        self.call("get_order", order_id="A-1010")
        return super().answer(call, messages)


def random_token(**options: Any) -> Handler:
    """``dropped_guard``, with a random token in an argument of the write."""
    return make(loop=_RandomToken, **options)


def asks_date(**options: Any) -> Handler:
    """``dropped_guard``, with the output of ``date`` in an argument of the write."""
    return make(loop=_AsksDate, **options)


def raises(**options: Any) -> Handler:
    """The agent's own code raises ``KeyError`` after the first tool call."""
    return make(loop=_Raises, **options)


def not_called(**options: Any) -> Handler:  # noqa: ARG001 - takes what the others take
    """Answers without ever calling the agent."""
    return lambda messages: "All done!"  # noqa: ARG005 - a handler's signature


def off_tape(**options: Any) -> Handler:
    """``dropped_guard``, with a lookup of another order before every tool call."""
    return make(loop=_OffTape, **options)

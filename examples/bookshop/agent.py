"""The support agent: a plain tool-calling loop, with the care a team puts into its code.

The loop knows the shop only through its tools and the snapshots it reports.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from redfirst.instrumentation import agent, current_run, model

from . import tools as shop_tools
from .model import ScriptedModel, chat_over_http
from .orders import Shop, fresh
from .transcript import ERROR, Message, owner_of, this_request, verified_customers

STEP_CAP = 12
"""Most model turns of one run."""
MODEL = "scripted-1"
APOLOGY = "I am sorry, I could not finish this. A colleague will get back to you."
PROMPT = "You are the support agent of a bookshop. Follow this policy.\n\n" + Path(__file__).with_name(
    "policy.md"
).read_text(encoding="utf-8")

Handler = Callable[[str | list[Message]], str]


class Chat(Protocol):
    """A chat completion endpoint: messages and tools in, an OpenAI-shaped completion out."""

    def __call__(
        self, messages: list[Message], tools: list[dict[str, Any]], model: str
    ) -> dict[str, Any]: ...


ModelOf = Callable[[int], Chat]
"""Makes the model of one run from the run's seed."""


class Refused(Exception):
    """The loop's own guard refuses a call; the model reads why."""


class SupportLoop:
    """One run: asks the model, runs the tools it wants, until it answers or runs out of steps."""

    version = "1.4.0"
    guarded = frozenset({"cancel_order", "refund"})
    """Tools that need the verified customer of the order."""

    def __init__(
        self,
        shop: Shop,
        chat: Chat,
        offered: list[dict[str, Any]] | None = None,
        step_cap: int = STEP_CAP,
    ) -> None:
        self.shop = shop
        self.step_cap = step_cap
        self.chat = chat
        self.tools = shop_tools.build(shop)
        self.offered = shop_tools.schemas(self.tools) if offered is None else offered

    def run(self, request: str | list[Message]) -> str:
        """Answer a request: the customer's text, or a conversation whose last message is theirs."""
        turns = [{"role": "user", "content": request}] if isinstance(request, str) else request
        self.report()
        try:
            return self.converse([{"role": "system", "content": PROMPT}, *turns])
        finally:
            self.report()

    def converse(self, messages: list[Message]) -> str:
        """Alternate between model and tools."""
        turn = executed = 0
        while True:
            turn += 1
            reply = self.chat(messages=messages, tools=self.offered, model=MODEL)["choices"][0]["message"]
            wanted = reply.get("tool_calls") or []
            if self.out_of_steps(turn, executed, wants_more=bool(wanted)):
                current_run().stop("step_cap", cap=self.step_cap)
                return APOLOGY
            if not wanted:
                return str(reply["content"])
            messages.append({"role": "assistant", "content": reply.get("content"), "tool_calls": wanted})
            for call in wanted:
                text = self.answer(call, messages)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
                executed += 1

    def out_of_steps(self, turn: int, executed: int, *, wants_more: bool) -> bool:  # noqa: ARG002 - for variants
        """Whether the cap ends the run: its last turn and still no answer."""
        return wants_more and turn >= self.step_cap

    def answer(self, call: dict[str, Any], messages: Sequence[Message]) -> str:
        """Run one wanted call and say what the model will read of it."""
        name = call["function"]["name"]
        try:
            arguments = json.loads(call["function"]["arguments"])
            self.guard(name, arguments, messages)
            result = self.execute(name, arguments)
        except Exception as error:  # noqa: BLE001 - whatever a tool raises, the model reads it and goes on
            return f"{ERROR}: {error}"
        return json.dumps(result)

    def guard(self, name: str, arguments: dict[str, Any], messages: Sequence[Message]) -> None:
        """Let refunds and cancellations through only once the order's customer was verified in this request.

        Raises:
            Refused: otherwise, and says what to do first.
        """
        if name not in self.guarded:
            return
        owner = owner_of(arguments["order_id"], messages)
        if owner is None:
            raise Refused(f"look order {arguments['order_id']} up with get_order first, then try again")
        if owner not in verified_customers(this_request(messages)):
            raise Refused(f"customer {owner} is not verified yet; call verify_identity first, then try again")

    def execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run a tool the way this shop wants it run."""
        if name == "refund":
            return self.refund(**arguments)
        return self.call(name, **arguments)

    def refund(self, order_id: str, amount: float) -> dict[str, Any]:
        """Refund once, even when the gateway falls silent: it may have paid before it did."""
        key = f"refund-{order_id}"
        try:
            return self.call("refund", order_id=order_id, amount=amount, idempotency_key=key)
        except TimeoutError:
            order = self.call("get_order", order_id=order_id)
            if order["refunded"] != "0.00":
                return {"order_id": order_id, "refunded": order["refunded"]}
            return self.call("refund", order_id=order_id, amount=amount, idempotency_key=key)

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool; after a write, finished or not, report what the shop looks like."""
        if name not in self.tools:
            raise Refused(f"there is no tool {name!r}; there are {', '.join(self.tools)}")
        try:
            return self.tools[name](**arguments)
        finally:
            if name in shop_tools.WRITES:
                self.report()

    def report(self) -> None:
        """Put the shop's state on the run."""
        current_run().state(self.shop.snapshot())


def make(
    *,
    shop: Shop | None = None,
    model: ModelOf | None = None,
    seed: int | None = None,
    loop: type[SupportLoop] = SupportLoop,
    offered: list[dict[str, Any]] | None = None,
    step_cap: int = STEP_CAP,
) -> Handler:
    """A support agent, ready to be called with a customer's text or a conversation.

    Args:
        shop: the shop it works in; a fresh one unless given.
        model: makes its model from a seed; the scripted one, or the endpoint of ``BOOKSHOP_BASE_URL``.
        seed: of the scripted model; ``BOOKSHOP_SEED``, or another one for each run.
        loop: the code that runs it.
        offered: tool schemas shown to the model instead of the tools' own.
        step_cap: most model turns of one run.
    """
    place = fresh() if shop is None else shop
    model_of = model or model_from_environment

    @agent(name="support", step_cap=step_cap, version=loop.version)
    def handle(messages: str | list[Message]) -> str:
        chat = _traced(model_of(seed_from_environment() if seed is None else seed))
        return loop(place, chat, offered, step_cap).run(messages)

    return handle


def model_from_environment(seed: int) -> Chat:
    """The endpoint that ``BOOKSHOP_BASE_URL`` names; without it the scripted model."""
    base_url = os.environ.get("BOOKSHOP_BASE_URL")
    if not base_url:
        return ScriptedModel(seed)
    return chat_over_http(
        base_url, os.environ.get("BOOKSHOP_MODEL", MODEL), os.environ.get("BOOKSHOP_API_KEY", ""), seed=seed
    )


def seed_from_environment() -> int:
    """``BOOKSHOP_SEED``; without it a new number each time."""
    given = os.environ.get("BOOKSHOP_SEED")
    return int(given) if given else random.randrange(2**32)  # noqa: S311 - varies wording, guards nothing


def _traced(backend: Chat) -> Chat:
    @model(provider="openai")
    def chat(messages: list[Message], tools: list[dict[str, Any]], model: str) -> dict[str, Any]:
        return backend(messages, tools, model)

    return chat

"""What each recorded scenario is: what the user says, what the model answers to each request, what the tools do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model: calls, or a text, or a fault of the server."""

    calls: tuple[Call, ...] = ()
    text: str | None = None
    finish: str | None = None
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A run. ``capped`` is said once the framework withholds its tools; None where the last turn repeats."""

    asked: tuple[str, ...]
    turns: tuple[Turn, ...]
    capped: str | None = None
    stream: bool = False


VERIFY: Call = ("verify_identity", {"customer_id": "C-2044"})
LOOK: Call = ("get_order", {"order_id": "B-17"})
OTHER: Call = ("get_order", {"order_id": "B-18"})
CANCEL: Call = ("cancel_order", {"order_id": "B-17", "reason": "bought twice"})
_DONE = Turn(text="Order B-17 left the warehouse and arrives on 2032-02-11.")
_HAPPY = (Turn(calls=(VERIFY,)), Turn(calls=(LOOK,)), _DONE)
_WHERE = "I am customer C-2044. Where is my order B-17?"
_STOPPED = "I had to stop before I was done."

SCENARIOS = {
    "happy": Scenario(asked=(_WHERE,), turns=_HAPPY),
    "happy_stream": Scenario(asked=(_WHERE,), turns=_HAPPY, stream=True),
    "happy_nocontent": Scenario(asked=(_WHERE,), turns=_HAPPY),
    "no_tool": Scenario(
        asked=("What are your hours?",), turns=(Turn(text="We are open from nine to five."),)
    ),
    "parallel": Scenario(
        asked=("Where are my orders B-17 and B-18?",),
        turns=(Turn(calls=(LOOK, OTHER)), Turn(text="B-17 is on its way and B-18 is being packed.")),
    ),
    "tool_error": Scenario(
        asked=("Where is the parcel of order B-17?",),
        turns=(
            Turn(calls=(("get_shipping_status", {"order_id": "B-17"}),)),
            Turn(calls=(LOOK,)),
            Turn(text="The carrier does not answer; your order B-17 left on 2032-02-09."),
        ),
    ),
    "loop_cap": Scenario(
        asked=("Is my order B-17 here yet?",), turns=(Turn(calls=(LOOK,)),), capped=_STOPPED
    ),
    "llm_fail": Scenario(asked=(_WHERE,), turns=(Turn(calls=(LOOK,)), Turn(status=400))),
    "policy_break": Scenario(
        asked=("Cancel my order B-17.",),
        turns=(Turn(calls=(CANCEL,)), Turn(text="Your order B-17 is cancelled.")),
    ),
    "multi_turn": Scenario(
        asked=("I am customer C-2044.", "Where is my order B-17?"),
        turns=(
            Turn(calls=(VERIFY,)),
            Turn(text="Thank you, you are verified."),
            Turn(calls=(LOOK,)),
            _DONE,
        ),
    ),
}
PASSING = "transfer"
"""A hand-off of the run to another agent, which answers."""
DELEGATING = "delegate"
"""An agent called as a tool, whose answer its caller passes on."""


def handoff(call: Call, *, returns: bool) -> Scenario:
    """A run that goes over to a refunds agent by ``call``; with ``returns``, the caller speaks last."""
    done = "Your order B-17 is cancelled."
    inner = (Turn(calls=(VERIFY,)), Turn(calls=(CANCEL,)), Turn(text=done))
    outer = (Turn(text=done),) if returns else ()
    return Scenario(asked=("Cancel my order B-17.",), turns=(Turn(calls=(call,)), *inner, *outer))


TOOLS: dict[str, dict[str, str]] = {
    "verify_identity": {"customer_id": "string"},
    "get_order": {"order_id": "string"},
    "get_shipping_status": {"order_id": "string"},
    "cancel_order": {"order_id": "string", "reason": "string"},
}
_PLACES = {"B-17": "shipped", "B-18": "packed"}


def answer_of_tool(name: str, given: dict[str, Any]) -> str:
    """What a tool gives back. Raises RuntimeError where the scenario wants a failure."""
    if name == "get_shipping_status":
        raise RuntimeError("carrier API timeout")
    said: dict[str, Any] = {
        "verify_identity": {"customer_id": given.get("customer_id"), "verified": True},
        "get_order": {"order_id": given.get("order_id"), "status": _PLACES.get(str(given.get("order_id")))},
        "cancel_order": {"order_id": given.get("order_id"), "cancelled": True},
    }[name]
    return json.dumps(said)

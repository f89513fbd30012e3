"""The scripted model's grip on its tools: which is for what, what was called, and whether to call again."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .habits import draw
from .transcript import ERROR, Message, PastCall, past_calls, this_request

PURPOSES = {
    "verify": r"\bverify\b",
    "lookup": r"\blook up\b",
    "update": r"\bchange\b.*\b(?:copies|address)\b",
    "cancel": r"^cancel\b",
    "approve": r"\bapproval\b",
    "refund": r"^refund\b",
    "transfer": r"\btransfer\b",
}
"""What a description must say for the model to see what a tool is for."""
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Want:
    """A tool call the model wants."""

    tool: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Say:
    """A text instead of a call."""

    text: str


Step = Want | Say


class Toolbox:
    """The tools on offer, read with the calls since the customer last spoke."""

    def __init__(self, messages: Sequence[Message], offered: Sequence[Mapping[str, Any]], seed: int) -> None:
        self.calls = list(past_calls(this_request(messages)))
        self.errors = " ".join(call.text for call in self.calls if call.failed)
        """Everything that went wrong, as the model read it."""
        self._functions = [item["function"] for item in offered]
        self._luck = draw(seed, len(messages), "once more")

    def tool(self, purpose: str) -> str | None:
        """The tool whose description fits the purpose, or else one that an error told to use."""
        for function in self._functions:
            if re.search(PURPOSES[purpose], function.get("description") or "", re.I):
                return str(function["name"])
        told = {"verify": "verify_identity", "lookup": "get_order"}.get(purpose)
        known = {function["name"] for function in self._functions}
        return told if told is not None and told in known and told in self.errors else None

    def attempt(self, purpose: str, arguments: Mapping[str, Any]) -> Step:
        """The call; or regret, when there is no such tool or when it failed and nothing says how to mend it."""
        tool = self.tool(purpose)
        if tool is None:
            return Say("I am sorry, I cannot do that from here.")
        failures = [call for call in self.made(purpose) if call.failed and call.arguments == arguments]
        if not failures or self._again(failures):
            return Want(tool, arguments)
        why = failures[-1].text.removeprefix(ERROR).strip(" :") or "something went wrong"
        return Say(f"I am sorry, that did not work: {why}.")

    def granted(self, purpose: str, arguments: Mapping[str, Any]) -> PastCall | None:
        """The call with these arguments that succeeded."""
        calls = self.made(purpose)
        return next((call for call in calls if call.arguments == arguments and not call.failed), None)

    def made(self, purpose: str) -> list[PastCall]:
        """The calls made for a purpose, failed ones included."""
        tool = self.tool(purpose)
        return [call for call in self.calls if call.name == tool]

    def order(self, order_id: str) -> dict[str, Any] | None:
        """What the first lookup said of an order, before anything was changed."""
        found = (call.result for call in self.made("lookup"))
        return next((result for result in found if result.get("order_id") == order_id), None)

    def _again(self, failures: Sequence[PastCall]) -> bool:
        """An error that says to try again is believed; a bare one leaves it to luck, once."""
        if "try again" in failures[-1].text:
            return len(failures) < MOST_TRIES
        return failures[-1].text.strip(" :.") == ERROR and len(failures) == 1 and self._luck < 0.5

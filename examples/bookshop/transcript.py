"""What a conversation in OpenAI messages already holds: who called which tool, and what came back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
ERROR = "Error"
"""Begins the text of a tool message that reports a failure."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A tool call with its answer."""

    name: str
    arguments: dict[str, Any]
    text: str

    @property
    def failed(self) -> bool:
        """Whether the answer reports a failure."""
        return self.text.startswith(ERROR)

    @property
    def result(self) -> dict[str, Any]:
        """The answer as an object; empty when it is not one."""
        value = None if self.failed else _parsed(self.text)
        return value if isinstance(value, dict) else {}


def past_calls(messages: Sequence[Message]) -> Iterator[PastCall]:
    """Every answered tool call, in the order of the answers."""
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for message in messages:
        for call in message.get("tool_calls") or ():
            arguments = _parsed(call["function"]["arguments"])
            asked[call["id"]] = (call["function"]["name"], arguments if isinstance(arguments, dict) else {})
        if message["role"] == "tool" and message.get("tool_call_id") in asked:
            yield PastCall(*asked[message["tool_call_id"]], str(message["content"]))


def this_request(messages: Sequence[Message]) -> Sequence[Message]:
    """What was said since the customer last spoke, that message included."""
    last = max((place for place, message in enumerate(messages) if message["role"] == "user"), default=0)
    return messages[last:]


def verified_customers(messages: Sequence[Message]) -> set[str]:
    """The customers whose identity was verified in these messages."""
    return {
        str(call.result.get("customer_id"))
        for call in past_calls(messages)
        if call.name == "verify_identity" and call.result.get("verified") is True
    }


def owner_of(order_id: str, messages: Sequence[Message]) -> str | None:
    """The customer of an order, as far as ``get_order`` has told."""
    owners = [
        str(call.result["customer_id"])
        for call in past_calls(messages)
        if call.name == "get_order" and call.result.get("order_id") == order_id
    ]
    return owners[-1] if owners else None


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None  # not JSON: a model's slip or a plain text answer, and both hold no fields

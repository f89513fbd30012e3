"""Turns that lie behind a conversation, as messages."""

from __future__ import annotations

import json
from typing import Any

from .transcript import Message

Called = tuple[str, dict[str, Any], dict[str, Any]]


def user(text: str) -> Message:
    """What the customer says."""
    return {"role": "user", "content": text}


def called(name: str, arguments: dict[str, Any], result: dict[str, Any]) -> Called:
    """A tool call with what came back."""
    return name, arguments, result


def earlier(text: str, answer: str, *calls: Called) -> list[Message]:
    """One finished turn: the customer's text, the calls it led to, and the answer they got."""
    turn = [user(text)]
    for place, (name, arguments, result) in enumerate(calls):
        call_id = f"earlier_{place}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        wanted = [{"id": call_id, "type": "function", "function": function}]
        turn.append({"role": "assistant", "content": None, "tool_calls": wanted})
        turn.append({"role": "tool", "tool_call_id": call_id, "content": json.dumps(result)})
    return [*turn, {"role": "assistant", "content": answer}]

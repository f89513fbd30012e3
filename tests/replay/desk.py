"""An agent of several turns, as text and as messages; its tools change a state that the next turn reads."""

from __future__ import annotations

import json
from datetime import datetime

from redfirst.instrumentation import agent, current_run, model, tool


@tool(effect="write")
def close(order: str, at: str) -> dict:
    raise AssertionError("a replay reached a live tool")


@tool(effect="read")
def look(order: str) -> dict:
    raise AssertionError("a replay reached a live tool")


@model
def chat(messages: list) -> dict:
    raise AssertionError("there is no live model")


def _handled(messages):
    current_run().state({"orders": {}})
    while True:
        reply = chat(list(messages))
        messages.append({"role": "assistant", **reply})
        if not reply["tool_calls"]:
            return reply["content"]
        for wanted in reply["tool_calls"]:
            if wanted["name"] == "close":
                answer = close(wanted["order"], datetime.now().isoformat())
            else:
                answer = look(wanted["order"])
            messages.append({"role": "tool", "content": json.dumps(answer)})


def of_text():
    """Keeps the conversation itself."""
    messages = []

    @agent(name="desk", step_cap=9)
    def handle(request: str) -> str:
        messages.append({"role": "user", "content": request})
        return _handled(messages)

    return handle


def of_messages():
    """Is given the conversation."""

    @agent(name="desk", step_cap=9)
    def handle(messages: list) -> str:
        return _handled(list(messages))

    return handle

"""The generic loop: asks the model, makes the calls it wants, tells it the answers, until it has an answer of its own.

Copied into each incident's folder. What it offers are names alone, and its answers come from the tape: it shows what a loop
does with the recorded turns, not what the published agent's code does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redfirst.instrumentation import agent, current_run, model, tool

Message = dict[str, Any]


def make() -> Callable[[str], str]:
    """An agent that keeps its conversation from turn to turn."""
    tools = {name: _tool(name) for name in json.loads((Path(__file__).parent / "tools.json").read_text())}
    cap = int(os.environ["LOOP_CAP"])
    ends = frozenset(os.environ["LOOP_ENDS"].split())
    said: list[Message] = []
    turns: list[int] = []

    @agent(name="agent", step_cap=cap)
    def handle(request: str) -> str:
        said.append({"role": "user", "content": request})
        while len(turns) < cap:
            turns.append(len(said))
            message = _chat(messages=list(said))["choices"][0]["message"]
            said.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for wanted in message["tool_calls"]:
                said.append({"role": "tool", "tool_call_id": wanted["id"], "content": _answer(tools, wanted)})
                if wanted["function"]["name"] in ends:
                    current_run().stop("handoff")
                    return ""
        current_run().stop("step_cap", cap=cap)
        return ""

    return handle


@model(provider="recorded")
def _chat(messages: list[Message]) -> dict[str, Any]:  # noqa: ARG001 - what the tape is asked
    raise AssertionError("there is no live model")


def _tool(name: str) -> Callable[..., Any]:
    @tool(name=name)
    def call(**arguments: Any) -> Any:  # noqa: ARG001 - what the tape is asked
        raise AssertionError("there is no live tool")

    return call


def _answer(tools: dict[str, Callable[..., Any]], wanted: dict[str, Any]) -> str:
    function = wanted["function"]
    try:
        answer = tools[function["name"]](**json.loads(function["arguments"]))
    except Exception as problem:  # noqa: BLE001 - as loops do: the model is told
        return f"Error: {problem}"
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)

"""Runs of a support agent as the spans it would have exported, with known answers and known tokens."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redfirst.evaluators import semconv
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.reading import read_trajectory
from redfirst.evaluators.span import Span
from redfirst.evaluators.trajectory import Trajectory

STEP_CAP = 10
SPOKEN = 360, 161, 147
"""Tokens of the prompt, of each further request for a tool, of the answer. Fitted to 829 and 1,557 a run."""

_MS = 1_000_000

Request = tuple[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Script:
    """What one run of the agent does on one task."""

    task: int
    requests: Sequence[Request]
    answer: str | None
    """``None`` when the step cap ends the run."""


def right_answer(task: int) -> str:
    """What the shop's records say of the order that the task asks for."""
    return f"Order A-{task} is {('packed', 'shipped', 'delivered')[task % 3]}."


def find(task: int) -> Request:
    """Look up which order the customer means."""
    return "find_order", {"customer": f"C-{task}"}


def look(task: int) -> Request:
    """Look the order up."""
    return "get_order", {"order": f"A-{task}"}


def invoice(task: int) -> Request:
    """Look its invoice up, which no task needs."""
    return "get_invoice", {"order": f"A-{task}"}


def read_back(script: Script) -> Trajectory:
    """The run as an evaluator sees it: through OTLP bytes."""
    return read_trajectory(decode_traces(encode_traces(_spans(script)), content="protobuf"))


def _spans(script: Script) -> Iterator[Span]:
    trace, begun = f"{script.task + 1:032x}", 10**18 + script.task * 1000 * _MS
    turns: list[Request | None] = [*script.requests, *([None] if script.answer is not None else [])]

    def span(number: int, name: str, attributes: Mapping[str, object]) -> Span:
        start = begun + number * 10 * _MS
        return Span(
            trace_id=trace,
            span_id=f"{number + 1:016x}",
            parent_id=f"{1:016x}" if number else None,
            name=name,
            start_ns=start,
            end_ns=start + (_MS if number else 900 * _MS),
            attributes=attributes,
            scope=semconv.SCOPE,
        )

    yield span(0, "invoke_agent support", _agent(script))
    for turn, request in enumerate(turns):
        yield span(2 * turn + 1, "chat", _model(turn, request, script.answer))
        if request is not None:
            yield span(2 * turn + 2, f"execute_tool {request[0]}", _tool(turn, request, script.task))


def _agent(script: Script) -> Mapping[str, object]:
    stop = "step_cap" if script.answer is None else "completed"
    said = {} if script.answer is None else {semconv.OUTPUT_VALUE: script.answer}
    return {
        semconv.OPERATION: "invoke_agent",
        semconv.AGENT_NAME: "support",
        semconv.INPUT_VALUE: f"I am customer C-{script.task}. Where is my order?",
        semconv.INPUT_MIME_TYPE: semconv.TEXT_MIME,
        semconv.OUTPUT_MIME_TYPE: semconv.TEXT_MIME,
        semconv.STEP_CAP: STEP_CAP,
        semconv.STOP_REASON: stop,
        **said,
    }


def _model(turn: int, request: Request | None, answer: str | None) -> Mapping[str, object]:
    prompt, asking, answering = SPOKEN
    part: Mapping[str, object] = {"type": "text", "content": answer or ""}
    if request is not None:
        part = {"type": "tool_call", "id": f"call-{turn}", "name": request[0], "arguments": request[1]}
    return {
        semconv.OPERATION: "chat",
        semconv.REQUEST_MODEL: "m-1",
        semconv.OUTPUT_MESSAGES: json.dumps([{"role": "assistant", "parts": [part]}]),
        semconv.INPUT_TOKENS: (prompt if turn == 0 else 0) + (asking if request else answering) - 20,
        semconv.OUTPUT_TOKENS: 20,
    }


def _tool(turn: int, request: Request, task: int) -> Mapping[str, object]:
    name, arguments = request
    found = {
        "find_order": {"order": f"A-{task}"},
        "get_order": {"order": f"A-{task}", "status": right_answer(task)},
        "get_invoice": {"order": f"A-{task}", "total": 12 + task},
    }
    return {
        semconv.OPERATION: "execute_tool",
        semconv.TOOL_NAME: name,
        semconv.TOOL_CALL_ID: f"call-{turn}",
        semconv.TOOL_CALL_ARGUMENTS: json.dumps(arguments),
        semconv.TOOL_CALL_RESULT: json.dumps(found[name]),
        semconv.TOOL_EFFECT: "read",
    }

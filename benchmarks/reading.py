"""What reading and judging cost: ``python benchmarks/reading.py``.

Builds traces of 20 spans of 2 kB and more - an agent, its model's turns with the growing history that real ones carry,
its tools - in our own dialect, in OpenInference's and in the GenAI conventions', and measures CPU per span for
decoding the protobuf, reading runs and judging them with the default checks. The dialects take turns in every round;
the figures are medians. Prints a table; ``--json FILE`` writes the figures as JSON. No network.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read

SPANS = 20
STAGES = ("decode", "read", "judge")
GOAL = 15.0
"""Microseconds of reading and judging per span."""

FILLED = 800
"""The least a span weighs here in characters: its own attributes and an application's."""

Attributes = dict[str, str | int | bool]
Turn = tuple[str, Mapping[str, object] | None, str]
"""What the model says, the arguments it calls its tool with if it does, and what the tool answers."""

_SYSTEM = "You are the support agent of a shop. Look an order up before you speak of it. " * 2
_ASKED = f"Please look at my orders {', '.join(f'A-{1000 + n}' for n in range(SPANS // 2 - 1))} and tell me where they are."
_NOTE = "The parcel left the warehouse and is on its way. "
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_order",
            "description": "Look up an order.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        },
    }
]


def turns() -> list[Turn]:
    """Ten turns: nine look something up, the last one answers."""
    found: list[Turn] = []
    for n in range(SPANS // 2 - 1):
        given = {"order_id": f"A-{1000 + n}", "fields": ["status", "total"]}
        answer = {"order_id": f"A-{1000 + n}", "status": "shipped", "total": 12.5 + n, "note": _NOTE * 2}
        found.append(("", given, json.dumps(answer)))
    return [*found, ("All of your orders are on their way.", None, "")]


def _parts(role: str, content: str, call_id: str = "", given: Mapping[str, object] | None = None) -> object:
    """A message in the conventions' parts."""
    if role == "tool":
        return {"role": role, "parts": [{"type": "tool_call_response", "id": call_id, "response": content}]}
    if given is not None:
        part = {"type": "tool_call", "id": call_id, "name": "get_order", "arguments": given}
        return {"role": role, "parts": [part]}
    return {"role": role, "parts": [{"type": "text", "content": content}]}


def _flat(
    prefix: str, role: str, content: str, call_id: str, given: Mapping[str, object] | None
) -> Attributes:
    """A message in OpenInference's attributes."""
    found: Attributes = {f"{prefix}.message.role": role}
    if content:
        found[f"{prefix}.message.content"] = content
    if given is not None:
        call = f"{prefix}.message.tool_calls.0.tool_call"
        found[f"{call}.id"] = call_id
        found[f"{call}.function.name"] = "get_order"
        found[f"{call}.function.arguments"] = json.dumps(given)
    elif call_id:
        found[f"{prefix}.message.tool_call_id"] = call_id
    return found


def _model(dialect: str, n: int) -> Attributes:
    history: list[tuple[str, str, str, Mapping[str, object] | None]] = [
        ("system", _SYSTEM, "", None),
        ("user", _ASKED, "", None),
    ]
    for place, (said, given, answer) in enumerate(turns()[:n]):
        history.append(("assistant", said, f"call-{place}", given))
        history.append(("tool", answer, f"call-{place}", None))
    said, given, _ = turns()[n]
    output = ("assistant", said, f"call-{n}" if given else "", given)
    finish = "tool_calls" if given else "stop"
    genai: Attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1",
        "gen_ai.response.id": f"response-{n}",
        "gen_ai.usage.input_tokens": 100 + n,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.tool.definitions": json.dumps(_TOOLS),
        "gen_ai.input.messages": json.dumps([_parts(*message) for message in history]),
        "gen_ai.output.messages": json.dumps([{**dict(_parts(*output)), "finish_reason": finish}]),  # type: ignore[call-overload]
    }
    plain: Attributes = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m-1",
        "llm.provider": "openai",
        "llm.token_count.prompt": 100 + n,
        "llm.token_count.completion": 40,
        "llm.tools.0.tool.json_schema": json.dumps(_TOOLS[0]),
    }
    for place, message in enumerate(history):
        plain |= _flat(f"llm.input_messages.{place}", *message)
    plain |= _flat("llm.output_messages.0", *output)
    raw = {
        "id": f"response-{n}",
        "choices": [{"finish_reason": finish, "message": {"role": "assistant", "content": said}}],
    }
    plain |= {"output.value": json.dumps(raw), "output.mime_type": "application/json"}
    return genai if dialect == "gen_ai" else plain if dialect == "openinference" else {**plain, **genai}


def _tool(dialect: str, n: int) -> Attributes:
    _, given, answer = turns()[n]
    arguments = json.dumps(given)
    genai: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_order",
        "gen_ai.tool.call.id": f"call-{n}",
        "gen_ai.tool.call.arguments": arguments,
        "gen_ai.tool.call.result": answer,
    }
    plain: Attributes = {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_order",
        "input.value": arguments,
        "input.mime_type": "application/json",
        "output.value": answer,
        "output.mime_type": "application/json",
    }
    if dialect == "redfirst":
        return {**plain, **genai, "redfirst.tool.effect": "read", "redfirst.tool.idempotent": True}
    return genai if dialect == "gen_ai" else plain


def _agent(dialect: str) -> Attributes:
    answer = turns()[-1][0]
    genai: Attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    plain: Attributes = {
        "openinference.span.kind": "AGENT",
        "agent.name": "support",
        "input.value": _ASKED,
        "input.mime_type": "text/plain",
        "output.value": answer,
        "output.mime_type": "text/plain",
    }
    if dialect == "redfirst":
        return {**plain, **genai, "redfirst.stop.reason": "completed", "redfirst.agent.step_cap": 30}
    return genai if dialect == "gen_ai" else plain


_SCOPES = {
    "redfirst": "redfirst.instrumentation",
    "openinference": "openinference.instrumentation.openai",
    "gen_ai": "opentelemetry.instrumentation.openai_v2",
}


def body(dialect: str, number: int) -> bytes:
    """One trace as an export request, its attributes filled up with what an application adds."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    scope.scope.name = _SCOPES[dialect]
    trace, root = number.to_bytes(16, "big"), (number * SPANS + 1).to_bytes(8, "big")
    made = [_agent(dialect)]
    for n in range(SPANS // 2):
        made.append(_model(dialect, n))
        if n < SPANS // 2 - 1:
            made.append(_tool(dialect, n))
    for n, attributes in enumerate(made):
        own = root if n == 0 else (number * SPANS + 1 + n).to_bytes(8, "big")
        begun = 10**18 + number * 10**9 + n * 10**6
        span = scope.spans.add(trace_id=trace, span_id=own, name=str(n), kind=1, start_time_unix_nano=begun)
        span.parent_span_id = b"" if n == 0 else root
        span.end_time_unix_nano = begun + (SPANS * 10**6 if n == 0 else 500_000)
        size = sum(len(key) + len(str(value)) for key, value in attributes.items())
        attributes["session.id"] = f"s-{number}"
        attributes["app.note"] = "x" * max(0, FILLED - size)
        for key, value in attributes.items():
            pair = span.attributes.add(key=key)
            if isinstance(value, bool):
                pair.value.bool_value = value
            elif isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
    return request.SerializeToString()


def measured(bodies: list[bytes]) -> dict[str, float]:
    """CPU microseconds per span by stage, over one trace after the other."""
    checks = default_checks()
    spent = [0, 0, 0]
    for item in bodies:
        begun = time.process_time_ns()
        spans = decode_traces(item, content="protobuf")
        decoded = time.process_time_ns()
        runs = read(spans).runs
        known = time.process_time_ns()
        for run in runs:
            judge(run, checks)
        spent = [
            total + more
            for total, more in zip(
                spent, (decoded - begun, known - decoded, time.process_time_ns() - known), strict=True
            )
        ]
    return {stage: used / 1000 / (len(bodies) * SPANS) for stage, used in zip(STAGES, spent, strict=True)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--traces", type=int, default=200, help="traces of each dialect (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    bodies = {dialect: [body(dialect, n + 1) for n in range(options.traces)] for dialect in _SCOPES}
    rounds: dict[str, list[dict[str, float]]] = {dialect: [] for dialect in _SCOPES}
    for dialect, items in bodies.items():
        measured(items[:5])
        rounds[dialect] = []
    for _ in range(options.rounds):
        for dialect, items in bodies.items():
            gc.collect()
            rounds[dialect].append(measured(items))
    figures: dict[str, dict[str, float]] = {}
    print(
        f"CPU microseconds per span, median of {options.rounds} rounds of {options.traces} traces of {SPANS} spans"
    )
    print(f"{'dialect':<15}{'bytes':>8}{'decode':>9}{'read':>9}{'judge':>9}{'read+judge':>12}")
    for dialect, found in rounds.items():
        stages = {stage: statistics.median(one[stage] for one in found) for stage in STAGES}
        both = statistics.median(one["read"] + one["judge"] for one in found)
        size = len(bodies[dialect][0]) / SPANS
        figures[dialect] = {"bytes": size, **stages, "read_and_judge": both}
        print(f"{dialect:<15}{size:>8.0f}" + "".join(f"{stages[s]:>9.1f}" for s in STAGES) + f"{both:>12.1f}")
    worst = max(one["read_and_judge"] for one in figures.values())
    print(
        f"goal: {GOAL:.0f} of reading and judging; {'reached' if worst <= GOAL else f'{worst / GOAL:.1f} times that'}"
    )
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

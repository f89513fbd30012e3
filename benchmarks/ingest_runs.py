"""The runs that the benchmarks of the service send: 20 spans of about 2.2 kB, as an instrumentor writes them."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from redfirst.collector_processor.scoring.slices import Slice, joined

SPANS = 20
"""Of one run."""
RUNS_A_REQUEST = 5


@dataclass(frozen=True, slots=True)
class Template:
    """One span of the run without its ids."""

    rest: bytes
    is_root: bool

    def made(self, trace_id: bytes, root: bytes) -> bytes:
        """The span with these ids."""
        own = root if self.is_root else secrets.token_bytes(8)
        ids = b"\x0a\x10" + trace_id + b"\x12\x08" + own
        return ids + (b"" if self.is_root else b"\x22\x08" + root) + self.rest


def templates(
    *, agent: str = "bench", model: str = "m-1", session: str = "s-1", stuck: bool = False
) -> list[Template]:
    """An agent span, ten model calls and nine tool calls, each with what an instrumentor writes. The order that is asked for
    is another each time, unless the run is ``stuck``."""
    found = []
    for n in range(SPANS):
        kind = "AGENT" if n == 0 else "LLM" if n % 2 else "TOOL"
        begun = 10**18 + n * 10**6
        ended = begun + (SPANS * 10**6 if n == 0 else 500_000)
        span = Span(name=kind.lower(), kind=1, start_time_unix_nano=begun, end_time_unix_nano=ended)
        named = {
            "AGENT": {"agent.name": agent},
            "LLM": {"llm.model_name": model},
            "TOOL": {},
        }[kind]
        written = attributes(kind, n, order=1 if stuck else abs(n - 1) | 1)
        for key, value in {**written, **named, "session.id": session}.items():
            pair = span.attributes.add(key=key)
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
        found.append(Template(span.SerializeToString(), n == 0))
    return found


def attributes(kind: str, n: int, *, order: int) -> dict[str, str | int]:
    """About two kilobytes of OpenInference."""
    text = f"The order {order} was looked at and the customer is told all about it. " * 14
    common: dict[str, str | int] = {
        "openinference.span.kind": kind,
        "input.value": json.dumps({"text": text}),
    }
    if kind == "LLM":
        return {
            **common,
            "llm.token_count.prompt": 800 + n,
            "llm.token_count.completion": 40,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": text,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": f"call-{n}",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_order",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(
                {"order": order}
            ),
        }
    if kind == "TOOL":
        return {
            **common,
            "tool.name": "get_order",
            "input.value": json.dumps({"order": order}),
            "output.value": json.dumps({"order": order, "text": text * 2}),
        }
    return {**common, "output.value": text}


def request(parts: list[Template], runs: int, *, roots: bool = True) -> tuple[list[str], bytes]:
    """A request with whole runs, and their trace ids."""
    names, items = [], []
    for _ in range(runs):
        trace_id, root = secrets.token_bytes(16), secrets.token_bytes(8)
        names.append(trace_id.hex())
        chosen = [*parts[1:], parts[0]] if roots else parts[1:] + parts[1:2]
        items += [Slice(b"", b"", "", "", part.made(trace_id, root)) for part in chosen]
    return names, joined(items)

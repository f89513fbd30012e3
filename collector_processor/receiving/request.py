"""An export request, checked at the door: what of it is accepted, and the heads that assembly needs.

The accepted bytes are those that came, unless a record had to be left out or the request was JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.json_request import fill, parse_json
from redfirst.evaluators import semconv
from redfirst.evaluators.errors import UnreadableInput

HEAD = struct.Struct("<8s8sB")
"""One span in memory: its id, its parent's id (zeros for a root) and whether it has ended."""

_TRACE_ID = 16
_SPAN_ID = 8
_NO_SPAN = bytes(_SPAN_ID)
_NO_TRACE = bytes(_TRACE_ID)

Heads = Mapping[bytes, bytes]
"""Packed span heads by trace id; a trace of which only log records came has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a request held."""

    signal: Signal
    body: bytes
    """The protobuf request to keep."""
    heads: Heads
    accepted: int
    rejected: Mapping[str, int]
    """Records left out, by reason."""
    message: str = ""
    """What the sender should know, in a sentence; empty when all is well."""


def check(body: bytes, signal: Signal, *, is_json: bool = False) -> Checked:
    """Read a request and leave out the records that nothing could be done with.

    Raises:
        UnreadableInput: the body is no such request.
    """
    request = _parse(body, signal, is_json=is_json)
    rejected: dict[str, int] = {}
    heads = _span_heads(request, rejected) if signal == "traces" else _log_heads(request)
    changed = is_json or bool(rejected)
    return Checked(
        signal=signal,
        body=request.SerializeToString() if changed else body,
        heads=heads,
        accepted=_count(request, signal),
        rejected=rejected,
        message=_message(request, signal, rejected, body if is_json else b""),
    )


def heads_of(body: bytes, signal: Signal) -> Heads:
    """The heads of a request that was accepted before.

    Raises:
        UnreadableInput: the body is damaged.
    """
    request = _parse(body, signal, is_json=False)
    return _span_heads(request, {}) if signal == "traces" else _log_heads(request)


def _parse(body: bytes, signal: Signal, *, is_json: bool) -> Any:
    from google.protobuf.message import DecodeError, EncodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kind: Any = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
    try:
        if not is_json:
            return kind.FromString(body)
        request = kind()
        fill(request, parse_json(body))
    except (DecodeError, EncodeError, UnicodeError, RecursionError) as problem:
        raise UnreadableInput(f"The body is no {kind.DESCRIPTOR.name}: {problem}.") from problem
    return request


def _span_heads(request: Any, rejected: dict[str, int]) -> dict[bytes, bytes]:
    """Heads by trace; bad spans are deleted from the request, those that are never judged have no head."""
    heads: dict[bytes, bytearray] = {}
    pack = HEAD.pack
    for resource_spans in request.resource_spans:
        replayed = any(pair.key == semconv.REPLAY_SCENARIO for pair in resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            judged = not replayed and scope_spans.scope.name != semconv.VERDICT_SCOPE
            bad: list[int] = []
            for n, span in enumerate(scope_spans.spans):
                trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
                if len(trace_id) != _TRACE_ID or trace_id == _NO_TRACE:
                    rejected["bad_trace_id"] = rejected.get("bad_trace_id", 0) + 1
                    bad.append(n)
                elif len(span_id) != _SPAN_ID or span_id == _NO_SPAN:
                    rejected["bad_span_id"] = rejected.get("bad_span_id", 0) + 1
                    bad.append(n)
                elif judged:
                    if len(parent_id) != _SPAN_ID:
                        parent_id = _NO_SPAN
                    packed = heads.get(trace_id)
                    if packed is None:
                        packed = heads[trace_id] = bytearray()
                    packed += pack(span_id, parent_id, span.end_time_unix_nano != 0)
            for n in reversed(bad):
                del scope_spans.spans[n]
    return {trace_id: bytes(packed) for trace_id, packed in heads.items()}


def _log_heads(request: Any) -> dict[bytes, bytes]:
    found = {
        record.trace_id
        for resource_logs in request.resource_logs
        for scope_logs in resource_logs.scope_logs
        for record in scope_logs.log_records
        if len(record.trace_id) == _TRACE_ID and record.trace_id != _NO_TRACE
    }
    return dict.fromkeys(found, b"")


def _count(request: Any, signal: Signal) -> int:
    if signal == "traces":
        return sum(len(scope.spans) for group in request.resource_spans for scope in group.scope_spans)
    return sum(len(scope.log_records) for group in request.resource_logs for scope in group.scope_logs)


def _message(request: Any, signal: Signal, rejected: Mapping[str, int], json_body: bytes) -> str:
    if rejected:
        what = ", ".join(
            f"{count} with a {reason.replace('_', ' ')}" for reason, count in sorted(rejected.items())
        )
        hint = (
            ""
            if _count(request, signal)
            else " None was left: is this another signal's body, or are the ids base64?"
        )
        return f"Spans refused: {what} (16 bytes and 8 bytes, not all zero; in JSON, 32 and 16 hex digits).{hint}"
    if json_body and not _count(request, signal) and len(json_body) > len(b"{}") + 2:
        name = "resourceSpans" if signal == "traces" else "resourceLogs"
        if name.encode() not in json_body:
            return f"Nothing was found in the body: it has no {name}."
    return ""

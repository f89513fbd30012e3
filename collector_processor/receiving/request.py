"""An export request, checked at the door: what of it is accepted, and the heads that assembly needs.

The accepted bytes are those that came, unless a record had to be left out or the request was JSON.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.json_request import LARGE, NeedsPatience, fill, parse_json
from redfirst.collector_processor.receiving.mending import mended, refuse_crumbs
from redfirst.evaluators import semconv
from redfirst.evaluators.errors import UnreadableInput

HEAD = struct.Struct("<8s8sB")
"""One span in memory: its id, its parent's id (zeros for a root) and whether it has ended."""

_TRACE_ID = 16
_SPAN_ID = 8
_NO_SPAN = bytes(_SPAN_ID)
_NO_TRACE = bytes(_TRACE_ID)
_FAR = 7 * 86_400 * 10**9
"""Nanoseconds from now beyond which a span's end is counted as odd."""
_EVER = 2**64 - 1

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
    odd: Mapping[str, int]
    """Records kept although something is wrong with them, and values replaced, by what it is."""
    message: str = ""
    """What the sender should know, in a sentence; empty when all is well."""


@dataclass(slots=True)
class _Read:
    """A request as it could be read."""

    request: Any
    body: bytes
    changed: bool = False
    rejected: dict[str, int] = field(default_factory=dict)
    odd: dict[str, int] = field(default_factory=dict)
    problem: str = ""
    """What was wrong with the first record that was left out."""


def check(
    body: bytes,
    signal: Signal,
    *,
    is_json: bool = False,
    keep_traceless: bool = True,
    now_ns: int = 0,
    patient: bool = True,
) -> Checked:
    """Read a request and leave out the records that nothing could be done with: log records without a trace, too,
    unless they are to be kept. ``now_ns`` is the time that spans' times are odd by, when it is known.

    Raises:
        UnreadableInput: the body is no such request, or it has records and none of them can be read.
        NeedsPatience: it is none as it came, and there was to be no ``patient`` look at what of it can be saved.
    """
    read = _read(body, signal, is_json=is_json, patient=patient)
    request = read.request
    before = sum(read.rejected.values())
    if signal == "traces":
        heads = _span_heads(request, read.rejected, read.odd, now_ns)
    else:
        heads = _log_heads(request, read.rejected, read.odd, keep_traceless=keep_traceless)
    accepted = _count(request, signal)
    if read.problem and not accepted:
        raise UnreadableInput(f"None of the {before} records can be read: {read.problem}")
    read.changed |= sum(read.rejected.values()) > before
    return Checked(
        signal=signal,
        body=request.SerializeToString() if read.changed else read.body,
        heads=heads,
        accepted=accepted,
        rejected=read.rejected,
        odd=read.odd,
        message=_message(read, signal, accepted, body if is_json else b""),
    )


def heads_of(body: bytes, signal: Signal) -> Heads:
    """The heads of a request that was accepted before.

    Raises:
        UnreadableInput: the body is damaged.
    """
    request = _read(body, signal, is_json=False).request
    return _span_heads(request, {}, {}, 0) if signal == "traces" else _log_heads(request, {}, {})


def _read(body: bytes, signal: Signal, *, is_json: bool, patient: bool = True) -> _Read:
    from google.protobuf.message import DecodeError, EncodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kind: Any = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
    try:
        if is_json:
            return _from_json(body, kind, patient=patient)
        if len(body) > LARGE:
            refuse_crumbs(body)
        try:
            return _Read(kind.FromString(body), body)
        except DecodeError as problem:
            if not patient:
                raise NeedsPatience from problem
            return _mended(body, kind)
    except (DecodeError, EncodeError, UnicodeError, RecursionError) as problem:
        raise UnreadableInput(f"The body is no {kind.DESCRIPTOR.name}: {problem}.") from problem


def _from_json(body: bytes, kind: Any, *, patient: bool) -> _Read:
    request = kind()
    noted = fill(request, parse_json(body, patient=patient))
    read = _Read(request, b"", changed=True, odd=noted.odd, problem=noted.problem)
    if noted.left_out:
        read.rejected["unreadable"] = noted.left_out
    return read


def _mended(body: bytes, kind: Any) -> _Read:
    odd: dict[str, int] = {}
    try:
        whole, lost = mended(body, kind, odd)
    except UnreadableInput as problem:
        raise UnreadableInput(f"The body is no {kind.DESCRIPTOR.name}: {problem}.") from problem
    read = _Read(kind.FromString(whole), whole, odd=odd)
    if lost:
        read.rejected["unreadable"] = lost
        read.problem = f"they are no {'Span' if 'Trace' in kind.DESCRIPTOR.name else 'LogRecord'} messages."
    return read


def _span_heads(
    request: Any, rejected: dict[str, int], odd: dict[str, int], now_ns: int
) -> dict[bytes, bytes]:
    """Heads by trace; bad spans are deleted from the request, those that are never judged have no head."""
    heads: dict[bytes, bytearray] = {}
    pack = HEAD.pack
    earliest, latest = (now_ns - _FAR, now_ns + _FAR) if now_ns else (0, _EVER)
    for resource_spans in request.resource_spans:
        if not resource_spans.scope_spans:
            continue
        replayed = any(pair.key == semconv.REPLAY_SCENARIO for pair in resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            judged = not replayed and scope_spans.scope.name != semconv.VERDICT_SCOPE
            bad: list[int] = []
            for n, span in enumerate(scope_spans.spans):
                trace_id, span_id, parent_id = span.trace_id, span.span_id, span.parent_span_id
                if len(trace_id) != _TRACE_ID or trace_id == _NO_TRACE:
                    _add(rejected, "bad_trace_id")
                    bad.append(n)
                    continue
                if len(span_id) != _SPAN_ID or span_id == _NO_SPAN:
                    _add(rejected, "bad_span_id")
                    bad.append(n)
                    continue
                start, end = span.start_time_unix_nano, span.end_time_unix_nano
                if end < start:
                    _add(odd, "bad_times")
                elif not earliest <= end <= latest:
                    _add(odd, "far_time")
                if len(parent_id) != _SPAN_ID or parent_id == _NO_SPAN:
                    if parent_id:
                        _add(odd, "bad_parent")
                    parent_id = _NO_SPAN
                if judged:
                    packed = heads.get(trace_id)
                    if packed is None:
                        packed = heads[trace_id] = bytearray()
                    packed += pack(span_id, parent_id, end != 0)
            _leave_out(scope_spans.spans, bad)
    return {trace_id: bytes(packed) for trace_id, packed in heads.items()}


def _log_heads(
    request: Any, rejected: dict[str, int], odd: dict[str, int], *, keep_traceless: bool = True
) -> dict[bytes, bytes]:
    found: set[bytes] = set()
    for resource_logs in request.resource_logs:
        for scope_logs in resource_logs.scope_logs:
            bad: list[int] = []
            for n, record in enumerate(scope_logs.log_records):
                trace_id = record.trace_id
                if len(trace_id) == _TRACE_ID and trace_id != _NO_TRACE:
                    found.add(trace_id)
                elif keep_traceless:
                    _add(odd, "no_trace")
                else:
                    _add(rejected, "no_trace")
                    bad.append(n)
            _leave_out(scope_logs.log_records, bad)
    return dict.fromkeys(found, b"")


def _leave_out(records: Any, bad: list[int]) -> None:
    """Delete these, at a cost that does not grow with their square."""
    if not bad:
        return
    unwanted = set(bad)
    kept = [record for n, record in enumerate(records) if n not in unwanted]
    del records[:]
    records.extend(kept)


def _add(counts: dict[str, int], what: str) -> None:
    counts[what] = counts.get(what, 0) + 1


def _count(request: Any, signal: Signal) -> int:
    if signal == "traces":
        return sum(len(scope.spans) for group in request.resource_spans for scope in group.scope_spans)
    return sum(len(scope.log_records) for group in request.resource_logs for scope in group.scope_logs)


def _message(read: _Read, signal: Signal, accepted: int, json_body: bytes) -> str:
    said = [_SAID[reason].format(count) for reason, count in sorted(read.rejected.items())]
    if said:
        said[0] = f"{'Spans' if signal == 'traces' else 'Log records'} refused: {said[0]}"
    if read.problem:
        said.append(read.problem.rstrip("."))
    if read.rejected and not accepted and signal == "traces":
        said.append("none was left: is this another signal's body, or are the ids base64?")
    said += [_MENDED[what].format(count) for what, count in sorted(read.odd.items()) if what in _MENDED]
    if not said and len(json_body) > len(b"{}") + 2 and not accepted:
        name = "resourceSpans" if signal == "traces" else "resourceLogs"
        if name.encode() not in json_body:
            said.append(f"Nothing was found in the body: it has no {name}")
    return "; ".join(said) + "." if said else ""


_SAID: Mapping[str, str] = {
    "bad_trace_id": "{} with a bad trace id (16 bytes, not all zero; in JSON, 32 hex digits)",
    "bad_span_id": "{} with a bad span id (8 bytes, not all zero; in JSON, 16 hex digits)",
    "no_trace": "{} without a trace id (traceless_logs: refuse)",
    "unreadable": "{} that cannot be read",
}
_MENDED: Mapping[str, str] = {
    "bad_utf8": "{} texts were not UTF-8 and got U+FFFD where they were not",
    "too_deep": "{} values were nested too deeply and are left out",
}

"""OTLP protobuf requests into spans and log records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.span import AttributeValue, LogRecord, Span, SpanEvent, SpanLink, StatusCode

Refusals = list[tuple[str, str]]

_TRACE_ID = 16
_SPAN_ID = 8
_SHOWN = 16


def is_protobuf(body: bytes) -> bool:
    """Whether the body parses as an export request with at least one resource."""
    try:
        return bool(_parsed(body, "traces").resource_spans)
    except UnreadableInput:
        return False


def from_protobuf(
    body: bytes, signal: Literal["traces", "logs"] | None
) -> tuple[list[Span], list[LogRecord], Refusals]:
    """Spans, log records and what was refused. Both requests have one shape on the wire, so when the
    signal is not given the records themselves decide: a log record has no trace id where a span has it.

    Raises:
        UnreadableInput: the body is no export request.
    """
    if signal is None:
        signal = _signal(body)
    refused: Refusals = []
    if signal == "logs":
        return [], list(_logs(_parsed(body, "logs"))), refused
    return list(_spans(_parsed(body, "traces"), refused)), [], refused


def _signal(body: bytes) -> Literal["traces", "logs"]:
    try:
        traces = _parsed(body, "traces")
    except UnreadableInput:
        _parsed(body, "logs")
        return "logs"
    records = [span for rs in traces.resource_spans for ss in rs.scope_spans for span in ss.spans]
    if not records or any(
        len(span.trace_id) == _TRACE_ID and len(span.span_id) == _SPAN_ID for span in records
    ):
        return "traces"
    try:
        logs = _parsed(body, "logs")
    except UnreadableInput:
        return "traces"
    as_logs = [log for rl in logs.resource_logs for sl in rl.scope_logs for log in sl.log_records]
    said = any(log.time_unix_nano or log.observed_time_unix_nano or log.severity_number for log in as_logs)
    return "logs" if said else "traces"


def _parsed(body: bytes, signal: Literal["traces", "logs"]) -> Any:
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    kind: Any = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
    try:
        request = kind.FromString(body)
    except (DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise UnreadableInput(_no_request(body)) from problem
    # any text of a few letters parses as fields nobody knows; a request of those alone is no request
    if body and not request.ListFields():
        raise UnreadableInput(_no_request(body))
    return request


def _no_request(body: bytes) -> str:
    return (
        "Neither an OTLP export request in protobuf nor OTLP/JSON; "
        f"it begins with {body[:_SHOWN]!r} ({len(body)} bytes)."
    )


def _spans(request: Any, refused: Refusals) -> Iterable[Span]:
    for r, resource_spans in enumerate(request.resource_spans):
        resource = _attributes(resource_spans.resource.attributes)
        for s, scope_spans in enumerate(resource_spans.scope_spans):
            scope = scope_spans.scope
            for n, span in enumerate(scope_spans.spans):
                reason = _bad_ids(span.trace_id, span.span_id)
                if reason:
                    refused.append((reason, f"resource_spans[{r}].scope_spans[{s}].spans[{n}]"))
                    continue
                yield _span(span, scope.name, scope.version, resource)


def _bad_ids(trace_id: bytes, span_id: bytes) -> str | None:
    if len(trace_id) != _TRACE_ID or not any(trace_id):
        return "bad trace id"
    if len(span_id) != _SPAN_ID or not any(span_id):
        return "bad span id"
    return None


def _span(span: Any, scope: str, version: str, resource: Mapping[str, AttributeValue]) -> Span:
    parent = span.parent_span_id
    code = span.status.code
    return Span(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=parent.hex() if len(parent) == _SPAN_ID and any(parent) else None,
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=StatusCode(code) if code in (0, 1, 2) else StatusCode.UNSET,
        status_message=span.status.message,
        attributes=_attributes(span.attributes),
        events=tuple(
            SpanEvent(name=event.name, time_ns=event.time_unix_nano, attributes=_attributes(event.attributes))
            for event in span.events
        ),
        links=tuple(
            SpanLink(
                trace_id=link.trace_id.hex(),
                span_id=link.span_id.hex(),
                attributes=_attributes(link.attributes),
            )
            for link in span.links
        ),
        scope=scope,
        scope_version=version,
        resource=resource,
    )


def _logs(request: Any) -> Iterable[LogRecord]:
    for resource_logs in request.resource_logs:
        resource = _attributes(resource_logs.resource.attributes)
        for scope_logs in resource_logs.scope_logs:
            for record in scope_logs.log_records:
                yield LogRecord(
                    trace_id=record.trace_id.hex() if len(record.trace_id) == _TRACE_ID else "",
                    span_id=record.span_id.hex() if len(record.span_id) == _SPAN_ID else "",
                    time_ns=record.time_unix_nano or record.observed_time_unix_nano,
                    event_name=getattr(record, "event_name", ""),
                    body=_value(record.body),
                    attributes=_attributes(record.attributes),
                    severity=record.severity_number,
                    scope=scope_logs.scope.name,
                    resource=resource,
                )


def _attributes(pairs: Iterable[Any]) -> dict[str, AttributeValue]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> AttributeValue:
    """The Python value. Nesting is bounded: the protobuf parser refuses more than 100 levels."""
    kind = value.WhichOneof("value")
    if kind is None or kind == "string_value_strindex":  # a place in a table that these signals do not have
        return None
    if kind == "array_value":
        return tuple(_value(item) for item in value.array_value.values)
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    plain: AttributeValue = getattr(value, kind)
    return plain

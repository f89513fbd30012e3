"""Spans and log records as OTLP protobuf requests: the inverse of ``otlp.decode``, always the same bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from redfirst.evaluators.span import AttributeValue, LogRecord, Span

_INTEGERS = (-(2**63), 2**63 - 1)
"""The smallest and the largest integer of OTLP."""


def encode_traces(spans: Iterable[Span]) -> bytes:
    """An ``ExportTraceServiceRequest`` with these spans, in their order within resource and scope."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    scopes: dict[tuple[str, str, str], Any] = {}
    resources: dict[str, Any] = {}
    for span in spans:
        resource_key = repr(sorted(span.resource.items()))
        if resource_key not in resources:
            resources[resource_key] = request.resource_spans.add()
            _attributes(resources[resource_key].resource.attributes, span.resource)
        key = (resource_key, span.scope, span.scope_version)
        if key not in scopes:
            scopes[key] = resources[resource_key].scope_spans.add()
            scopes[key].scope.name, scopes[key].scope.version = span.scope, span.scope_version
        _span(scopes[key].spans.add(), span)
    return bytes(request.SerializeToString(deterministic=True))


def encode_logs(logs: Iterable[LogRecord]) -> bytes:
    """An ``ExportLogsServiceRequest`` with these records, in their order within resource and scope."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    request = ExportLogsServiceRequest()
    scopes: dict[tuple[str, str], Any] = {}
    for log in logs:
        key = (repr(sorted(log.resource.items())), log.scope)
        if key not in scopes:
            resource = request.resource_logs.add()
            _attributes(resource.resource.attributes, log.resource)
            scopes[key] = resource.scope_logs.add()
            scopes[key].scope.name = log.scope
        record = scopes[key].log_records.add(
            trace_id=bytes.fromhex(log.trace_id),
            span_id=bytes.fromhex(log.span_id),
            time_unix_nano=log.time_ns,
            event_name=log.event_name,
            severity_number=log.severity,
        )
        _attributes(record.attributes, log.attributes)
        _value(record.body, log.body)
    return bytes(request.SerializeToString(deterministic=True))


def _span(out: Any, span: Span) -> None:
    out.trace_id, out.span_id = bytes.fromhex(span.trace_id), bytes.fromhex(span.span_id)
    out.parent_span_id = bytes.fromhex(span.parent_id or "")
    out.name, out.kind = span.name, span.kind
    out.start_time_unix_nano, out.end_time_unix_nano = span.start_ns, span.end_ns
    out.status.code, out.status.message = int(span.status), span.status_message
    _attributes(out.attributes, span.attributes)
    for event in span.events:
        added = out.events.add(name=event.name, time_unix_nano=event.time_ns)
        _attributes(added.attributes, event.attributes)
    for link in span.links:
        added = out.links.add(trace_id=bytes.fromhex(link.trace_id), span_id=bytes.fromhex(link.span_id))
        _attributes(added.attributes, link.attributes)


def _attributes(out: Any, attributes: Mapping[str, AttributeValue]) -> None:
    for key, value in attributes.items():
        _value(out.add(key=key).value, value)


def _value(out: Any, value: AttributeValue) -> None:
    if isinstance(value, bool):
        out.bool_value = value
    elif isinstance(value, int) and _INTEGERS[0] <= value <= _INTEGERS[1]:
        out.int_value = value
    elif isinstance(value, int):
        out.string_value = str(value)  # OTLP has no wider one, and the digits are kept
    elif isinstance(value, float):
        out.double_value = value
    elif isinstance(value, bytes):
        out.bytes_value = value
    elif isinstance(value, str):
        out.string_value = value
    elif isinstance(value, Mapping):
        out.kvlist_value.SetInParent()
        _attributes(out.kvlist_value.values, value)
    elif isinstance(value, tuple | list):
        out.array_value.SetInParent()
        for item in value:
            _value(out.array_value.values.add(), item)

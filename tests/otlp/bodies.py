"""Requests that the tests send."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
TRACE = bytes(range(1, 17))
SPAN = bytes(range(1, 9))
EXPORT = "/opentelemetry.proto.collector.{}.v1.{}Service/Export"
TRACES, LOGS, METRICS = (
    EXPORT.format(name.lower(), name.capitalize()) for name in ("trace", "logs", "metrics")
)
NOW = 1_900_000_000_000_000_000


def request(*spans: Any) -> ExportTraceServiceRequest:
    """A request with these spans; without any, with one good one."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = "tested"
    group.scope_spans.add().spans.extend(spans or (a_span(),))
    return made


def a_span(span_id: bytes = SPAN, *, trace_id: bytes = TRACE, **fields: Any) -> Any:
    from opentelemetry.proto.trace.v1.trace_pb2 import Span

    times = {"start_time_unix_nano": NOW, "end_time_unix_nano": NOW + 1000}
    return Span(**{"trace_id": trace_id, "span_id": span_id, "name": "chat", **times, **fields})


def body(*spans: Any) -> bytes:
    """The same as bytes."""
    return request(*spans).SerializeToString()


def json_body(**fields: Any) -> bytes:
    """OTLP/JSON of one good span with other fields; an earlier good one is before it when asked for by ``beside``."""
    beside = fields.pop("beside", False)
    span = {"traceId": TRACE.hex(), "spanId": SPAN.hex(), "name": "chat", "endTimeUnixNano": "1"}
    other = {**span, "spanId": "00000000000000aa"}
    return json_of([*([other] if beside else []), {**span, **fields}])


def json_of(spans: list[Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def logs(*records: dict[str, Any]) -> bytes:
    """A request with these log records."""
    made = ExportLogsServiceRequest()
    for record in records:
        made.resource_logs.add().scope_logs.add().log_records.add(**record)
    return made.SerializeToString()


def metrics() -> bytes:
    """A request with two data points."""
    made = ExportMetricsServiceRequest()
    points = made.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points
    points.add(as_int=1)
    points.add(as_int=2)
    return made.SerializeToString()

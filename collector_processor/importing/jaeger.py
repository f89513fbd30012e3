"""Jaeger's JSON: ``{"data": [{"traceID", "spans", "processes"}]}`` of the query API and of the page's download.

The translation is OpenTelemetry's own, read backwards (specification, trace SDK exporters, Jaeger).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.times import counted
from redfirst.evaluators.dialects.values import first_text, object_of, text
from redfirst.evaluators.span import Span, SpanEvent, SpanLink, StatusCode

_MICROSECOND = 1000
_KINDS = {"internal": 1, "server": 2, "client": 3, "producer": 4, "consumer": 5}
_MOVED = frozenset(
    {
        "span.kind",
        "otel.scope.name",
        "otel.scope.version",
        "otel.library.name",
        "otel.library.version",
        "otel.status_code",
        "otel.status_description",
        "internal.span.format",
        "w3c.tracestate",
    }
)
"""Tags that are fields of a span."""


class Jaeger:
    """Jaeger's traces."""

    name = "jaeger"

    def claims(self, document: object) -> bool:
        return any(True for _ in _traces(document))

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            for where, trace in _traces(document.value):
                processes = object_of(trace.get("processes")) or {}
                at = f"{document.where} {where}spans".strip()
                spans = trace["spans"]
                for number, span in enumerate(spans if isinstance(spans, list) else []):
                    yield Record(where=f"{at}[{number}]", value=span, context=processes)

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - a span has its own ids and times
        span = record.value
        if not isinstance(span, Mapping):
            raise BadRecord(f"expected a span, found {found(span)}")
        trace_id, span_id = _hex(span.get("traceID"), 32), _hex(span.get("spanID"), 16)
        start = counted(span.get("startTime"), _MICROSECOND)
        if trace_id is None or span_id is None or start is None:
            raise BadRecord("the span lacks a traceID, a spanID or a startTime that can be read")
        tags = _values(span.get("tags"))
        links = list(_references(span.get("references")))
        parent = next((link.span_id for link, child in links if child and link.trace_id == trace_id), None)
        return [
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=parent or _hex(span.get("parentSpanID"), 16),
                name=text(span.get("operationName")) or "",
                kind=_KINDS.get(str(tags.get("span.kind")), 0),
                start_ns=start,
                end_ns=start + (counted(span.get("duration"), _MICROSECOND) or 0),
                status=_status(tags),
                status_message=text(tags.get("otel.status_description")) or "",
                attributes={key: value for key, value in tags.items() if key not in _MOVED},
                events=tuple(_events(span.get("logs"))),
                links=tuple(link for link, _ in links if link.span_id != parent),
                scope=first_text(tags.get("otel.scope.name"), tags.get("otel.library.name")) or "",
                scope_version=first_text(tags.get("otel.scope.version"), tags.get("otel.library.version"))
                or "",
                resource=_resource(span, record.context),
            )
        ]


def _traces(value: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each trace in the value, with its place."""
    data = value.get("data") if isinstance(value, Mapping) else value
    if isinstance(value, Mapping) and _is_trace(value):
        yield "", value
    elif isinstance(data, list):
        for number, item in enumerate(data):
            if isinstance(item, Mapping) and _is_trace(item):
                yield f"data[{number}].", item


def _is_trace(value: Mapping[str, object]) -> bool:
    return "traceID" in value and isinstance(value.get("spans"), list)


def _hex(value: object, digits: int) -> str | None:
    """The id, filled up: Jaeger leaves leading zeros out, and may keep 64 bits of a trace id."""
    if not isinstance(value, str) or not 0 < len(value) <= digits or not value.strip("0"):
        return None
    found_id = value.lower().rjust(digits, "0")
    return found_id if all(c in "0123456789abcdef" for c in found_id) else None


def _values(tags: object) -> dict[str, object]:
    """Tags by key, each with a value of its type."""
    out: dict[str, object] = {}
    for tag in tags if isinstance(tags, list) else []:
        if isinstance(tag, Mapping) and isinstance(tag.get("key"), str):
            value = _typed(tag.get("type"), tag.get("value"))
            if value is not None:
                out[tag["key"]] = value
    return out


def _typed(kind: object, value: object) -> object:
    """The value; one whose type and text disagree stays text."""
    if isinstance(value, str) and kind == "bool" and value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and kind in ("int64", "float64"):
        try:
            return int(value) if kind == "int64" else float(value)
        except ValueError:
            return value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return str(value)
    return value if isinstance(value, str | bool | int | float) else None


def _status(tags: Mapping[str, object]) -> StatusCode:
    code = tags.get("otel.status_code")
    if code in ("OK", "ERROR"):
        return StatusCode[str(code)]
    return StatusCode.ERROR if tags.get("error") is True else StatusCode.UNSET


def _references(value: object) -> Iterator[tuple[SpanLink, bool]]:
    """The spans it refers to, and whether as its parent."""
    for item in value if isinstance(value, list) else []:
        if isinstance(item, Mapping):
            trace_id, span_id = _hex(item.get("traceID"), 32), _hex(item.get("spanID"), 16)
            if trace_id is not None and span_id is not None:
                yield SpanLink(trace_id=trace_id, span_id=span_id), item.get("refType") == "CHILD_OF"


def _events(logs: object) -> Iterator[SpanEvent]:
    for log in logs if isinstance(logs, list) else []:
        if isinstance(log, Mapping):
            fields = _values(log.get("fields"))
            name = text(fields.pop("event", None)) or ""
            at = counted(log.get("timestamp"), _MICROSECOND)
            yield SpanEvent(name=name, time_ns=at or 0, attributes=fields)


def _resource(span: Mapping[str, object], processes: Mapping[str, object]) -> dict[str, object]:
    process = object_of(processes.get(str(span.get("processID")))) or object_of(span.get("process")) or {}
    service = text(process.get("serviceName"))
    return ({"service.name": service} if service else {}) | _values(process.get("tags"))

"""MLflow's traces: ``{"trace": {"trace_info", "spans"}}`` of its API, and ``{"info", "data"}`` of ``Trace.to_json()``.

MLflow takes JSON texts in attributes apart and gives no scope; both are put right here. What it adds to spans that
came over OTLP (``mlflow.spanType`` and others) is left out, so that they are read as what they were.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import span_id_of, trace_id_of
from redfirst.collector_processor.importing.json_text import json_text
from redfirst.collector_processor.importing.times import counted
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import object_of, text
from redfirst.evaluators.span import Span, SpanEvent, StatusCode

_OWN = "mlflow."
_FOREIGN = ("ai.", "gen_ai.", "gcp.vertex.agent.", "langfuse.", "logfire.", "openinference.", "traceloop.")
"""Beginnings of attributes by which a span came over OTLP from another instrumentation."""
_SCOPE = "mlflow.tracing"
_OURS = frozenset({semconv.OI_KIND, semconv.OPERATION})
_DIGITS = len(str(-(2**63)))
"""The longest an integer of OTLP is written."""
_TEXTS = (".value", ".arguments", ".result", ".content", ".id")
"""Ends of the names of attributes that are texts: a number in one was a text of digits."""


class MLflow:
    """MLflow's traces."""

    name = "mlflow"

    def claims(self, document: object) -> bool:
        return any(True for _ in _traces(document))

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            for where, spans, info in _traces(document.value):
                read = [_read(span) for span in spans]
                marked = any(_marked(attributes, span) for span, attributes in zip(spans, read, strict=True))
                context = {"marked": marked, "info": info}
                at = f"{document.where} {where}spans".strip()
                for number, span in enumerate(spans):
                    yield Record(where=f"{at}[{number}]", value=span, context=context)

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - a span has its own ids and times
        span = record.value
        if not isinstance(span, Mapping):
            raise BadRecord(f"expected a span, found {found(span)}")
        trace_id, span_id = trace_id_of(_id(span.get("trace_id"))), span_id_of(_id(span.get("span_id")))
        start = counted(span.get("start_time_unix_nano"), 1)
        if trace_id is None or span_id is None or start is None:
            raise BadRecord("the span lacks a trace_id, a span_id or a start_time_unix_nano that can be read")
        attributes = _read(span)
        foreign = any(key.startswith(_FOREIGN) for key in attributes)
        if foreign:
            attributes = {key: value for key, value in attributes.items() if not key.startswith(_OWN)}
        ours = record.context.get("marked") is True and set(attributes) >= _OURS
        status = object_of(span.get("status")) or {}
        return [
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=span_id_of(_id(span.get("parent_span_id"))),
                name=text(span.get("name")) or "",
                start_ns=start,
                end_ns=counted(span.get("end_time_unix_nano"), 1) or 0,
                status=_status(status.get("code")),
                status_message=text(status.get("message")) or "",
                attributes=attributes,
                events=tuple(_events(span.get("events"))),
                scope=semconv.SCOPE if ours else "" if foreign else _SCOPE,
                resource=_resource(record.context.get("info")),
            )
        ]


def _traces(value: object) -> Iterator[tuple[str, list[object], Mapping[str, object]]]:
    """Each trace in the value: its place, its spans, and what is known of it."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            for where, spans, info in _traces(item):
                yield f"[{number}].{where}", spans, info
        return
    if not isinstance(value, Mapping):
        return
    trace = object_of(value.get("trace")) or value
    data = object_of(trace.get("data"))
    known = object_of(trace.get("trace_info")) or object_of(trace.get("info"))
    held = trace.get("spans") if data is None else data.get("spans")
    if known is not None and isinstance(held, list):
        yield "", held, known


def _id(value: object) -> object:
    """Bytes in base64 as hex digits; ``tr-`` is the prefix of MLflow's own name of a trace."""
    if not isinstance(value, str):
        return value
    plain = value.removeprefix("tr-").removeprefix("0x")
    if len(plain) in (12, 24) and plain.endswith("="):
        try:
            return base64.b64decode(plain, validate=True).hex()
        except binascii.Error:
            return value
    return plain


def _read(span: object) -> dict[str, object]:
    """A span's attributes as they were before MLflow took them apart."""
    given = span.get("attributes") if isinstance(span, Mapping) else None
    pairs: Iterable[tuple[object, object]] = ()
    if isinstance(given, Mapping):
        pairs = ((key, _coded(value)) for key, value in given.items())
    elif isinstance(given, list):
        pairs = ((item.get("key"), _any(item.get("value"))) for item in given if isinstance(item, Mapping))
    return {str(key): _attribute(str(key), value) for key, value in pairs if value is not None}


def _coded(value: object) -> object:
    """A value of ``Trace.to_json()``: JSON in a text."""
    if not isinstance(value, str):
        return value
    try:
        read: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read


def _attribute(key: str, value: object) -> object:
    if key.startswith(_OWN):
        return json_text(value)  # each of its own is JSON, a text too
    if isinstance(value, Mapping) or (
        isinstance(value, list)
        and (key.endswith(_TEXTS) or any(isinstance(item, Mapping | list) for item in value))
    ):
        return json_text(value)
    if isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str | bool | int | float))
    return json_text(value) if not isinstance(value, str) and key.endswith(_TEXTS) else value


def _any(value: object) -> object:
    """The value of an OTLP ``AnyValue`` in JSON with names in snake_case."""
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "kvlist_value":
        items = (object_of(inner) or {}).get("values")
        return {
            str(item.get("key")): _any(item.get("value"))
            for item in (items if isinstance(items, list) else [])
            if isinstance(item, Mapping)
        }
    if kind == "array_value":
        items = (object_of(inner) or {}).get("values")
        return [_any(item) for item in (items if isinstance(items, list) else [])]
    if kind == "int_value" and isinstance(inner, str):
        return int(inner) if len(inner) <= _DIGITS and inner.removeprefix("-").isdecimal() else inner
    return inner


def _marked(attributes: Mapping[str, object], span: object) -> bool:
    """Whether the span carries an attribute or event of redfirst's own."""
    events = span.get("events") if isinstance(span, Mapping) else None
    listed = events if isinstance(events, list) else ()
    names = [event.get("name") for event in listed if isinstance(event, Mapping)]
    return any(str(one).startswith("redfirst.") for one in (*attributes, *names))


def _status(code: object) -> StatusCode:
    name = str(code).removeprefix("STATUS_CODE_")
    return StatusCode[name] if name in StatusCode.__members__ else StatusCode.UNSET


def _events(value: object) -> Iterator[SpanEvent]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, Mapping):
            yield SpanEvent(
                name=text(item.get("name")) or "",
                time_ns=counted(item.get("time_unix_nano"), 1) or 0,
                attributes=_read(item),
            )


def _resource(info: object) -> dict[str, object]:
    tags = object_of(info.get("tags")) if isinstance(info, Mapping) else None
    service = text((tags or {}).get("service.name"))
    return {"service.name": service} if service else {}

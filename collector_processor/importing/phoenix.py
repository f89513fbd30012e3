"""Phoenix's spans, as ``client.spans.get_spans`` and ``GET /v1/projects/…/spans`` give them.

A file is ``{"data": [span, …]}``, a list, or a span a line; ``get_spans_dataframe(…).to_json(orient="records",
lines=True)`` is read too. Attributes are OpenInference's, flat or nested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import span_id_of, trace_id_of
from redfirst.collector_processor.importing.json_text import json_text
from redfirst.collector_processor.importing.times import moment
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import text
from redfirst.evaluators.span import Span, SpanEvent, StatusCode

_SCOPE = "openinference.instrumentation"
"""Phoenix does not keep the scope; all that it shows is in OpenInference's vocabulary. Spans of a trace that redfirst
left its marks on are its own again."""
_WHOLE = ("metadata", "tool.parameters", "llm.invocation_parameters", "llm.prompt_template.variables")
"""Attributes whose value is a JSON text, which Phoenix takes apart: ``tool.parameters.properties.order_id.type``."""


_FOREIGN = ("ai.", "gcp.vertex.agent.", "gen_ai.", "langfuse.", "logfire.", "mlflow.", "traceloop.")
"""Beginnings of other vocabularies: the kind of such a span is Phoenix's guess, and its own reader knows better."""


class Phoenix:
    """Phoenix's spans."""

    name = "phoenix"

    def claims(self, document: object) -> bool:
        return any(_ids(item) != (None, None) for item in _items(document)[:10])

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        items = (item for document in documents for item in _items(document.value))
        marked = {trace_id_of(_ids(item)[0]) for item in items if _marked(item)}
        for document in documents:
            many = not (isinstance(document.value, Mapping) and _ids(document.value) != (None, None))
            for number, item in enumerate(_items(document.value)):
                yield Record(
                    where=f"{document.where}[{number}]" if many else document.where,
                    value=item,
                    context={"marked": trace_id_of(_ids(item)[0]) in marked},
                )

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - a span has its own ids and times
        span = record.value
        trace, own = _ids(span)
        trace_id, span_id = trace_id_of(trace), span_id_of(own)
        if not isinstance(span, Mapping) or trace_id is None or span_id is None:
            raise BadRecord(f"expected a span with context.trace_id and context.span_id, found {found(span)}")
        start = moment(span.get("start_time"))
        if start is None:
            raise BadRecord("start_time is no time")
        attributes = _attributes(span)
        kind = text(span.get("span_kind"))
        ours = record.context.get("marked") is True and semconv.OPERATION in attributes
        foreign = not ours and any(key.startswith(_FOREIGN) for key in attributes)
        if kind and kind != "UNKNOWN" and not foreign:
            attributes.setdefault(semconv.OI_KIND, kind)
        return [
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=span_id_of(span.get("parent_id")),
                name=text(span.get("name")) or "",
                start_ns=start,
                end_ns=moment(span.get("end_time")) or 0,
                status=_status(span.get("status_code")),
                status_message=text(span.get("status_message")) or "",
                attributes=attributes,
                events=tuple(_events(span.get("events"))),
                scope=semconv.SCOPE if ours else "" if foreign else _SCOPE,
            )
        ]


def _items(value: object) -> list[object]:
    inner = value.get("data") if isinstance(value, Mapping) and isinstance(value.get("data"), list) else value
    return inner if isinstance(inner, list) else [inner]


def _ids(value: object) -> tuple[object, object]:
    """The ids of trace and span."""
    if not isinstance(value, Mapping):
        return None, None
    context = value.get("context")
    if isinstance(context, Mapping):
        return context.get("trace_id"), context.get("span_id")
    return value.get("context.trace_id"), value.get("context.span_id")


def _marked(value: object) -> bool:
    """Whether the span carries an attribute or event of redfirst's own."""
    if not isinstance(value, Mapping):
        return False
    attributes, events = value.get("attributes"), value.get("events")
    keys = [*value, *(attributes if isinstance(attributes, Mapping) else ())]
    names = (
        [event.get("name") for event in events if isinstance(event, Mapping)]
        if isinstance(events, list)
        else []
    )
    return any(str(one).removeprefix("attributes.").startswith("redfirst") for one in (*keys, *names))


def _status(value: object) -> StatusCode:
    return (
        StatusCode[value] if isinstance(value, str) and value in StatusCode.__members__ else StatusCode.UNSET
    )


def _attributes(span: Mapping[str, object]) -> dict[str, object]:
    nested = span.get("attributes")
    found: dict[str, object] = dict(_flat(nested)) if isinstance(nested, Mapping) else {}
    for key, value in span.items():
        if str(key).startswith("attributes."):
            inner = str(key).removeprefix("attributes.")
            found |= dict(_flat({inner: value}))
    return _put_together(found)


def _flat(value: Mapping[str, object], lead: str = "") -> Iterator[tuple[str, object]]:
    """Nested attributes by their dotted names; lists of objects by their numbers."""
    for key, item in value.items():
        name = f"{lead}{key}"
        if isinstance(item, Mapping):
            yield from _flat(item, f"{name}.")
        elif isinstance(item, list) and any(isinstance(part, Mapping) for part in item):
            for number, part in enumerate(item):
                if isinstance(part, Mapping):
                    yield from _flat(part, f"{name}.{number}.")
        elif isinstance(item, list):
            yield name, tuple(part for part in item if isinstance(part, str | bool | int | float))
        elif item is not None and (not isinstance(item, int) or -(2**63) <= item < 2**63):
            yield name, item


def _put_together(attributes: Mapping[str, object]) -> dict[str, object]:
    """The attributes with each JSON text that was taken apart as one text again."""
    out: dict[str, object] = {}
    trees: dict[str, dict[str, object]] = {}
    for key, value in attributes.items():
        whole = next((name for name in _WHOLE if key.startswith(f"{name}.")), None)
        if whole is None:
            out[key] = value
            continue
        *above, last = key[len(whole) + 1 :].split(".")
        place = trees.setdefault(whole, {})
        for step in above:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                break  # a key stands both alone and above others: the first of the two is kept
            place = inner
        else:
            place.setdefault(last, value)
    return out | {whole: json_text(_lists(tree)) for whole, tree in trees.items()}


def _lists(value: object) -> object:
    """Objects whose keys are numbers are lists."""
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(item) for key, item in value.items()}


def _events(value: object) -> Iterator[SpanEvent]:
    for item in value if isinstance(value, list) else []:
        if isinstance(item, Mapping):
            inner = item.get("attributes")
            yield SpanEvent(
                name=text(item.get("name")) or "",
                time_ns=moment(item.get("timestamp")) or 0,
                attributes=dict(_flat(inner)) if isinstance(inner, Mapping) else {},
            )

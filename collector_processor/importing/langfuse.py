"""Langfuse's observations: of the public API, of a trace downloaded from the page, and of the blob storage export.

A file is ``{"data": [observation, …]}``, a list, an observation a line, or a trace with ``observations``. Names
are in camelCase (API) or snake_case (blob storage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record, found
from redfirst.collector_processor.importing.identity import span_id_of, trace_id_of
from redfirst.collector_processor.importing.json_text import text_or_json
from redfirst.collector_processor.importing.times import nanoseconds
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import first_text, mapping, object_of, text
from redfirst.evaluators.span import Span, StatusCode

_LEAD = "langfuse.observation."
_SCOPE = "langfuse-sdk"
_NOTHING: Mapping[str, object] = {}


class Langfuse:
    """Langfuse's observations."""

    name = "langfuse"

    def claims(self, document: object) -> bool:
        items, _ = _items(document)
        return any(_is_observation(item) for item in items[:10])

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            items, trace = _items(document.value)
            for number, item in enumerate(items):
                single = item is document.value
                yield Record(
                    where=document.where if single else f"{document.where}[{number}]",
                    value=item,
                    context=trace,
                )

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - an observation has its own ids and times
        item, trace = record.value, record.context
        if not isinstance(item, Mapping):
            raise BadRecord(f"expected an observation, found {found(item)}")
        trace_id = trace_id_of(_get(item, "traceId") or trace.get("id"))
        span_id = span_id_of(item.get("id"))
        start = nanoseconds(_get(item, "startTime"))
        if trace_id is None or span_id is None or start is None:
            raise BadRecord("the observation lacks an id, a traceId or a startTime that can be read")
        failed = item.get("level") == "ERROR"
        return [
            Span(
                trace_id=trace_id,
                span_id=span_id,
                parent_id=span_id_of(_get(item, "parentObservationId")),
                name=text(item.get("name")) or "",
                start_ns=start,
                end_ns=nanoseconds(_get(item, "endTime")) or (start if item.get("type") == "EVENT" else 0),
                status=StatusCode.ERROR if failed else StatusCode.UNSET,
                status_message=(text(_get(item, "statusMessage")) or "") if failed else "",
                attributes=_attributes(item, trace),
                scope=_SCOPE,
            )
        ]


def _items(value: object) -> tuple[list[object], Mapping[str, object]]:
    """The observations, and the trace they stand in."""
    if isinstance(value, Mapping):
        inner = value.get("observations")
        if isinstance(inner, list):
            return inner, object_of(value.get("trace")) or value
        data = value.get("data")
        if isinstance(data, list):
            return data, _NOTHING
        return [value], _NOTHING
    return (value if isinstance(value, list) else []), _NOTHING


def _is_observation(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and "id" in value
        and isinstance(value.get("type"), str)
        and {"startTime", "start_time"} & set(value) != set()
        and {"traceId", "trace_id", "parentObservationId", "parent_observation_id"} & set(value) != set()
    )


def _get(item: Mapping[str, object], name: str) -> object:
    """The value by its name in camelCase or in snake_case."""
    if name in item:
        return item[name]
    return item.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _attributes(item: Mapping[str, object], trace: Mapping[str, object]) -> dict[str, object]:
    """The observation in the attributes by which Langfuse's SDK sends it."""
    usage = mapping(_get(item, "usageDetails")) or mapping(item.get("usage"))
    values: dict[str, object] = {
        f"{_LEAD}type": str(item.get("type")).lower(),
        f"{_LEAD}input": text_or_json(item.get("input")),
        f"{_LEAD}output": text_or_json(item.get("output")),
        f"{_LEAD}level": text(item.get("level")),
        f"{_LEAD}status_message": text(_get(item, "statusMessage")),
        f"{_LEAD}model.name": first_text(
            item.get("model"), _get(item, "providedModelName"), _get(item, "internalModel")
        ),
        f"{_LEAD}model.parameters": text_or_json(_get(item, "modelParameters")),
        f"{_LEAD}usage_details": text_or_json(_counts(usage)),
        f"{_LEAD}cost_details": text_or_json(_get(item, "costDetails")),
        semconv.SESSION_ID: first_text(_get(item, "sessionId"), _get(trace, "sessionId")),
        semconv.USER_ID: first_text(_get(item, "userId"), _get(trace, "userId")),
    }
    for key, value in (mapping(item.get("metadata")) or {}).items():
        values[f"{_LEAD}metadata.{key}"] = text_or_json(value)
    return {key: value for key, value in values.items() if value is not None}


def _counts(usage: Mapping[str, object] | None) -> dict[str, object] | None:
    return {key: value for key, value in (usage or {}).items() if isinstance(value, int | float)} or None

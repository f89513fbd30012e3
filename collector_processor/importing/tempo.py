"""Grafana Tempo's traces by id: ``{"batches": […]}`` (v1) and ``{"trace": {"resourceSpans": […]}}`` (v2).

What is inside is OTLP/JSON, in older versions with ``instrumentationLibrarySpans``; ids may be base64.
Jaeger's v3 API answers the same under ``result``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.importing.formats import BadRecord, Document, Place, Record
from redfirst.evaluators.dialects.values import object_of
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp_json import from_json
from redfirst.evaluators.span import Span


class Tempo:
    """Tempo's traces."""

    name = "tempo"

    def claims(self, document: object) -> bool:
        return _batches(document) is not None

    def records(self, documents: Sequence[Document]) -> Iterator[Record]:
        for document in documents:
            for b, batch in enumerate(_batches(document.value) or []):
                if not isinstance(batch, Mapping):
                    yield Record(where=f"{document.where} batches[{b}]".strip(), value=batch)
                    continue
                for where, scope, span in _spans(batch):
                    yield Record(
                        where=f"{document.where} batches[{b}]{where}".strip(),
                        value=span,
                        context={"resource": batch.get("resource"), "scope": scope},
                    )

    def spans(self, record: Record, place: Place) -> list[Span]:  # noqa: ARG002 - a span has its own ids and times
        scope_spans = {"scope": record.context.get("scope"), "spans": [record.value]}
        batch = {"resource": record.context.get("resource"), "scopeSpans": [scope_spans]}
        try:
            spans, _, refused = from_json({"resourceSpans": [batch]})
        except UnreadableInput as problem:
            raise BadRecord(str(problem)) from problem
        if refused:
            raise BadRecord(refused[0][0])
        return spans


def _batches(value: object) -> list[object] | None:
    """The groups of spans of a resource in the answer."""
    if not isinstance(value, Mapping):
        return None
    inner = object_of(value.get("trace")) or object_of(value.get("result")) or {}
    for found in (value.get("batches"), inner.get("batches"), inner.get("resourceSpans")):
        if isinstance(found, list):
            return found
    return None


def _spans(batch: Mapping[str, object]) -> Iterator[tuple[str, object, object]]:
    """Each span with its place and its scope."""
    groups = batch.get("scopeSpans", batch.get("instrumentationLibrarySpans"))
    for s, group in enumerate(groups if isinstance(groups, list) else []):
        if not isinstance(group, Mapping):
            continue
        spans = group.get("spans")
        for n, span in enumerate(spans if isinstance(spans, list) else []):
            yield (
                f".scopeSpans[{s}].spans[{n}]",
                group.get("scope", group.get("instrumentationLibrary")),
                span,
            )

"""Spans on their way out, redacted on every surface: ours once more, and those of other instrumentation."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, Status

from redfirst.evaluators import semconv
from redfirst.instrumentation.capture import to_json
from redfirst.instrumentation.fast_spans import FastSpan, PlainSpan
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.redaction import Redactor


def redacted(redactor: Redactor, spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    """The spans with nothing on them that must not leave. One that cannot be redacted is left out, and counted."""
    kept: list[ReadableSpan] = []
    resources: dict[int, tuple[Resource, Resource]] = {}
    """Before and after, by the number of the first: it is held, so that no other one gets that."""
    seen = _Seen(redactor.lately())
    for span in spans:
        with guarded("redact a span"):
            whole = span.resource
            if id(whole) not in resources:
                resources[id(whole)] = whole, _resource(redactor, whole)
            resource = resources[id(whole)][1]
            if resource is whole and _is_clean(redactor, span, seen):
                kept.append(span)
                continue
            kept.append(_redacted(redactor, span, resource))
            lately = redactor.lately()
            if lately != seen.lately:  # it held one that nobody had met
                seen = _Seen(lately)
    return kept


class _Seen:
    """What was looked at in a batch of spans."""

    def __init__(self, lately: Mapping[str, str]) -> None:
        self.lately = lately
        self.fine: set[int] = set()
        """Texts of ours, by number: the batch holds them, so that no other one gets theirs."""
        self.foreign: set[tuple[str, object]] = set()
        """Attributes of others that may leave."""


def _is_clean(redactor: Redactor, span: ReadableSpan, seen: _Seen) -> bool:
    """Whether a span of ours holds nothing to take out: what we wrote was looked through when we wrote it.

    Since then others may have written attributes, and a text of ours may quote what was taken out elsewhere.
    """
    if not isinstance(span, FastSpan) or span.redacted_by is not redactor or span.foreign is None:
        return False
    plain = span.plain()
    if plain is None or redactor.names_any(plain.attributes.keys()):
        return False
    if redactor.name(plain.name) != plain.name:  # processors of others assign it
        return False
    for key in span.foreign:
        value = plain.attributes.get(key)
        if type(value) is not str:
            if redactor.data(value)[1]:
                return False
        elif (key, value) not in seen.foreign:
            if redactor.free_text(value)[1]:
                return False
            seen.foreign.add((key, value))
    return not seen.lately or not _quotes(plain, seen)


def _quotes(span: PlainSpan, seen: _Seen) -> bool:
    for text in (span.name, *span.attributes.values()):
        if type(text) is str and id(text) not in seen.fine:
            if any(secret in text for secret in seen.lately):
                return True
            seen.fine.add(id(text))
    return False


def _resource(redactor: Redactor, resource: Resource) -> Resource:
    found: list[tuple[str, list[str]]] = []
    held = _attributes(redactor, resource.attributes, found)
    return Resource(held, resource.schema_url) if found else resource


def _redacted(redactor: Redactor, span: ReadableSpan, resource: Resource) -> ReadableSpan:
    notes: list[tuple[str, list[str]]] = []
    attributes = _attributes(redactor, span.attributes, notes)
    found: list[tuple[str, list[str]]] = []
    events = [
        Event(
            event.name if _clean(event.name) else _text(redactor, event.name, found, "event"),
            _attributes(redactor, event.attributes, found),
            event.timestamp,
        )
        for event in span.events
    ]
    links = [Link(link.context, _attributes(redactor, link.attributes, found)) for link in span.links]
    status = span.status
    if status.description:
        status = Status(status.status_code, _text(redactor, status.description, found, "status"))
    name = _text(redactor, span.name, found, "name")
    _attributes(redactor, span.resource.attributes, found)
    if notes or found:
        _note(attributes, notes + found)
    return _Redacted(
        span,
        name=name,
        context=span.context,
        parent=span.parent,
        resource=resource,
        attributes=attributes,
        events=events,
        links=links,
        kind=span.kind,
        status=status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class _Redacted(ReadableSpan):
    """A span as it may leave; what the SDK dropped of it is said as before."""

    def __init__(self, before: ReadableSpan, **given: Any) -> None:
        super().__init__(**given)
        self._dropped = before.dropped_attributes, before.dropped_events, before.dropped_links

    @property
    def dropped_attributes(self) -> int:
        return self._dropped[0]

    @property
    def dropped_events(self) -> int:
        return self._dropped[1]

    @property
    def dropped_links(self) -> int:
        return self._dropped[2]


def _clean(name: str) -> bool:
    return name in ("exception", semconv.STATE_EVENT, semconv.RUN_EVENT)


def _attributes(
    redactor: Redactor, attributes: Mapping[str, Any] | None, notes: list[tuple[str, list[str]]]
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in (attributes or {}).items():
        if redactor.names(key):
            made[key], by = redactor.whole(value)
            if by:
                notes.append((key, by))
        elif key in _OURS or (key == _INSTANCE and isinstance(value, str) and _UUID.fullmatch(value)):
            made[key] = value
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            made[key] = [_shown(redactor, one, notes, key) for one in value]
        else:
            made[key] = _shown(redactor, value, notes, key)
    return made


_OURS = frozenset({semconv.REDACTED, semconv.TRUNCATED})
_INSTANCE = "service.instance.id"
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What the SDK draws for each process; of a hundred one or two have digits like a card's."""


def _text(redactor: Redactor, text: str, notes: list[tuple[str, list[str]]], key: str) -> str:
    shown, by = redactor.free_text(text)
    if by:
        notes.append((key, by))
    return shown


def _shown(redactor: Redactor, value: Any, notes: list[tuple[str, list[str]]], key: str) -> Any:
    if isinstance(value, str):
        return _text(redactor, value, notes, key)
    shown, by = redactor.data(value)
    if by:
        notes.append((key, by))
    return shown


def _note(attributes: dict[str, Any], notes: list[tuple[str, list[str]]]) -> None:
    said = attributes.get(semconv.REDACTED)
    own = to_json([{"attribute": key, "by": sorted(set(by)), "count": len(by)} for key, by in notes])
    attributes[semconv.REDACTED] = (
        own if not isinstance(said, str) or said == "[]" else f"{said[:-1]},{own[1:]}"
    )

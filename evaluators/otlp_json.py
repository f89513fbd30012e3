"""OTLP/JSON requests, already parsed, into spans and log records.

Names are accepted in camelCase and in snake_case, 64-bit integers as strings and as numbers, enums
as numbers and as names. Unknown fields are ignored, as the protocol demands.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence

from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp_json_values import double, shown, wrong
from redfirst.evaluators.span import AttributeValue, LogRecord, Span, SpanEvent, SpanLink, StatusCode

Refusals = list[tuple[str, str]]
Record = Mapping[str, object]

MAX_DEPTH = 64
"""Deepest nesting of one attribute value."""

_TRACE_DIGITS = 32
_SPAN_DIGITS = 16
_BASE64_LENGTH = {_TRACE_DIGITS: 24, _SPAN_DIGITS: 12}
_CODES = {"UNSET": 0, "OK": 1, "ERROR": 2}
_KINDS = {"UNSPECIFIED": 0, "INTERNAL": 1, "SERVER": 2, "CLIENT": 3, "PRODUCER": 4, "CONSUMER": 5}
_SHOWN = 60


class NotOtlp(UnreadableInput):
    """The JSON is well formed and something else than OTLP."""


def from_json(document: object) -> tuple[list[Span], list[LogRecord], Refusals]:
    """Spans, log records and what was refused of one request, or of a list of requests.

    Raises:
        NotOtlp: it is no such request.
        UnreadableInput: a field has a value of the wrong type.
    """
    spans: list[Span] = []
    logs: list[LogRecord] = []
    refused: Refusals = []
    for request in document if isinstance(document, list) else [document]:
        if not isinstance(request, Mapping):
            raise NotOtlp(f"Expected an OTLP export request as a JSON object, found {shown(request)}.")
        resource_spans, resource_logs = _get(request, "resourceSpans"), _get(request, "resourceLogs")
        if (
            resource_spans is None
            and resource_logs is None
            and request
            and _get(request, "resourceMetrics") is None
        ):
            keys = ", ".join(sorted(map(str, request)))[:_SHOWN]
            raise NotOtlp(
                f"Expected a JSON object with resourceSpans or resourceLogs, found the keys {keys}."
            )
        spans.extend(_spans(resource_spans, refused))
        logs.extend(_logs(resource_logs))
    return spans, logs, refused


def _spans(groups: object, refused: Refusals) -> Iterator[Span]:
    for where, resource, scope, span in _records(groups, "resourceSpans", "scopeSpans", "spans"):
        trace_id = _identifier(_get(span, "traceId"), _TRACE_DIGITS)
        span_id = _identifier(_get(span, "spanId"), _SPAN_DIGITS)
        if not trace_id or not span_id:
            refused.append(("bad span id" if trace_id else "bad trace id", where))
            continue
        status = _mapping(_get(span, "status"), f"{where}.status")
        yield Span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=_identifier(_get(span, "parentSpanId"), _SPAN_DIGITS) or None,
            name=_text(_get(span, "name"), f"{where}.name"),
            kind=_enum(_get(span, "kind"), _KINDS, f"{where}.kind"),
            start_ns=_integer(_get(span, "startTimeUnixNano"), f"{where}.startTimeUnixNano"),
            end_ns=_integer(_get(span, "endTimeUnixNano"), f"{where}.endTimeUnixNano"),
            status=StatusCode(_enum(_get(status, "code"), _CODES, f"{where}.status.code")),
            status_message=_text(_get(status, "message"), f"{where}.status.message"),
            attributes=_attributes(_get(span, "attributes"), f"{where}.attributes"),
            events=tuple(_events(span, where)),
            links=tuple(_links(span, where)),
            scope=_text(_get(scope, "name"), f"{where}: scope.name"),
            scope_version=_text(_get(scope, "version"), f"{where}: scope.version"),
            resource=resource,
        )


def _events(span: Record, where: str) -> Iterator[SpanEvent]:
    for n, event in enumerate(_list(_get(span, "events"), f"{where}.events")):
        at = f"{where}.events[{n}]"
        event = _mapping(event, at)
        yield SpanEvent(
            name=_text(_get(event, "name"), f"{at}.name"),
            time_ns=_integer(_get(event, "timeUnixNano"), f"{at}.timeUnixNano"),
            attributes=_attributes(_get(event, "attributes"), f"{at}.attributes"),
        )


def _links(span: Record, where: str) -> Iterator[SpanLink]:
    for n, link in enumerate(_list(_get(span, "links"), f"{where}.links")):
        at = f"{where}.links[{n}]"
        link = _mapping(link, at)
        yield SpanLink(
            trace_id=_identifier(_get(link, "traceId"), _TRACE_DIGITS),
            span_id=_identifier(_get(link, "spanId"), _SPAN_DIGITS),
            attributes=_attributes(_get(link, "attributes"), f"{at}.attributes"),
        )


def _logs(groups: object) -> Iterator[LogRecord]:
    for where, resource, scope, record in _records(groups, "resourceLogs", "scopeLogs", "logRecords"):
        time = _integer(_get(record, "timeUnixNano"), f"{where}.timeUnixNano")
        yield LogRecord(
            trace_id=_identifier(_get(record, "traceId"), _TRACE_DIGITS),
            span_id=_identifier(_get(record, "spanId"), _SPAN_DIGITS),
            time_ns=time or _integer(_get(record, "observedTimeUnixNano"), f"{where}.observedTimeUnixNano"),
            event_name=_text(_get(record, "eventName"), f"{where}.eventName"),
            body=_value(_get(record, "body"), f"{where}.body", 0),
            attributes=_attributes(_get(record, "attributes"), f"{where}.attributes"),
            severity=_enum(_get(record, "severityNumber"), {}, f"{where}.severityNumber"),
            scope=_text(_get(scope, "name"), f"{where}: scope.name"),
            resource=resource,
        )


def _records(
    groups: object, outer: str, middle: str, inner: str
) -> Iterator[tuple[str, Mapping[str, AttributeValue], Record, Record]]:
    """Each record with its place, its resource's attributes and its scope."""
    for r, group in enumerate(_list(groups, outer)):
        at = f"{outer}[{r}]"
        group = _mapping(group, at)
        resource = _mapping(_get(group, "resource"), f"{at}.resource")
        attributes = _attributes(_get(resource, "attributes"), f"{at}.resource.attributes")
        for s, part in enumerate(_list(_get(group, middle), f"{at}.{middle}")):
            place = f"{at}.{middle}[{s}]"
            part = _mapping(part, place)
            scope = _mapping(_get(part, "scope"), f"{place}.scope")
            for n, record in enumerate(_list(_get(part, inner), f"{place}.{inner}")):
                where = f"{place}.{inner}[{n}]"
                yield where, attributes, scope, _mapping(record, where)


def _get(record: Record, name: str) -> object:
    """The field by its camelCase or its snake_case name."""
    if name in record:
        return record[name]
    return record.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _identifier(value: object, digits: int) -> str:
    """Lower-case hex, or empty when the value is no such id. Base64 only when its length proves it."""
    if not isinstance(value, str):
        return ""
    if len(value) == _BASE64_LENGTH[digits]:
        try:
            value = base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return ""
    if len(value) != digits or not value.strip("0"):
        return ""
    return value.lower() if all(c in "0123456789abcdefABCDEF" for c in value) else ""


def _attributes(pairs: object, where: str, depth: int = 0) -> dict[str, AttributeValue]:
    out: dict[str, AttributeValue] = {}
    for n, pair in enumerate(_list(pairs, where)):
        pair = _mapping(pair, f"{where}[{n}]")
        key = _text(_get(pair, "key"), f"{where}[{n}].key")
        out[key] = _value(_get(pair, "value"), f"{where}[{n}].value", depth)
    return out


def _value(value: object, where: str, depth: int) -> AttributeValue:
    if value is None:
        return None
    if depth > MAX_DEPTH:
        raise UnreadableInput(f"{where[:_SHOWN]}…: nested more than {MAX_DEPTH} levels deep.")
    record = _mapping(value, where)
    if (found := _get(record, "stringValue")) is not None:
        return _text(found, f"{where}.stringValue")
    if (found := _get(record, "boolValue")) is not None:
        if not isinstance(found, bool):
            raise wrong(f"{where}.boolValue", "true or false", found)
        return found
    if (found := _get(record, "intValue")) is not None:
        return _integer(found, f"{where}.intValue", negative=True)
    if (found := _get(record, "doubleValue")) is not None:
        return double(found, f"{where}.doubleValue")
    if (found := _get(record, "arrayValue")) is not None:
        items = _list(_get(_mapping(found, where), "values"), f"{where}.arrayValue.values")
        return tuple(_value(item, f"{where}[{n}]", depth + 1) for n, item in enumerate(items))
    if (found := _get(record, "kvlistValue")) is not None:
        return _attributes(_get(_mapping(found, where), "values"), f"{where}.kvlistValue.values", depth + 1)
    if (found := _get(record, "bytesValue")) is not None:
        try:
            return base64.b64decode(_text(found, f"{where}.bytesValue"), validate=True)
        except (binascii.Error, ValueError) as problem:
            raise wrong(f"{where}.bytesValue", "base64", found) from problem
    return None


def _mapping(value: object, where: str) -> Record:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong(where, "an object", value)
    return value


def _list(value: object, where: str) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise wrong(where, "an array", value)
    return value


def _text(value: object, where: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise wrong(where, "a string", value)
    # JSON may carry half of a surrogate pair, which no UTF-8 output can.
    return value if value.isascii() else value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _integer(value: object, where: str, *, negative: bool = False) -> int:
    if value is None:
        return 0
    number: int | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, float) and math.isfinite(value) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and len(value) <= len(str(-(2**63))):
        try:
            number = int(value)
        except ValueError:
            number = None
    if number is None or not (-(2**63) if negative else 0) <= number < 2**64:
        raise wrong(where, "a 64-bit integer", value)
    return number


def _enum(value: object, names: Mapping[str, int], where: str) -> int:
    """The number of an enum; a name or number this version does not know is 0, as for any unknown field."""
    if isinstance(value, str) and not value.lstrip("-").isdigit():
        return names.get(value.rsplit("_", 1)[-1], 0)
    number = _integer(value, where, negative=True)
    return number if not names or number in names.values() else 0

"""Finished spans and log records as plain data, whatever wire they came over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType

AttributeValue = object
"""str, bool, int, float, bytes, None, a tuple of these, or a mapping of these (OTLP AnyValue)."""

NO_ATTRIBUTES: Mapping[str, AttributeValue] = MappingProxyType({})


def _none() -> Mapping[str, AttributeValue]:
    return NO_ATTRIBUTES


class StatusCode(IntEnum):
    """OTLP ``Status.StatusCode``."""

    UNSET = 0
    OK = 1
    ERROR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened at one moment inside a span."""

    name: str
    time_ns: int
    attributes: Mapping[str, AttributeValue] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanLink:
    """A pointer from one span to another, possibly in another trace. Ids are lower-case hex."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=_none)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One finished span. Ids are lower-case hex (32 and 16 digits); times are Unix nanoseconds."""

    trace_id: str
    span_id: str
    parent_id: str | None = None
    name: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    status: StatusCode = StatusCode.UNSET
    status_message: str = ""
    attributes: Mapping[str, AttributeValue] = field(default_factory=_none)
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    scope: str = ""
    scope_version: str = ""
    resource: Mapping[str, AttributeValue] = field(default_factory=_none, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One OTLP log record; ``trace_id`` and ``span_id`` are empty when it belongs to no span."""

    trace_id: str = ""
    span_id: str = ""
    time_ns: int = 0
    event_name: str = ""
    body: AttributeValue = None
    attributes: Mapping[str, AttributeValue] = field(default_factory=_none)
    severity: int = 0
    scope: str = ""
    resource: Mapping[str, AttributeValue] = field(default_factory=_none, repr=False)

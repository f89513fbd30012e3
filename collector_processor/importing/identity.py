"""Trace and span ids of things that have other ids, or none."""

from __future__ import annotations

import hashlib
import json

_HEX = frozenset("0123456789abcdef")
_TRACE_DIGITS = 32
_SPAN_DIGITS = 16


def content_id(value: object, copy: int) -> str:
    """A trace id that follows from what a record says, and from which of equal records it is."""
    text = json.dumps([value, copy] if copy else value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_TRACE_DIGITS]


def child_id(trace_id: str, number: int) -> str:
    """The id of the span of that number in a trace."""
    return hashlib.sha256(f"{trace_id}/{number}".encode()).hexdigest()[:_SPAN_DIGITS]


def trace_id_of(value: object) -> str | None:
    """The trace id that a text or number is, or stands for: hex, a UUID, else a hash of it."""
    return _identifier(value, _TRACE_DIGITS)


def span_id_of(value: object) -> str | None:
    """The span id that a text or number is, or stands for: hex, else a hash of it."""
    return _identifier(value, _SPAN_DIGITS)


def _identifier(value: object, digits: int) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    text = str(value).strip().lower()
    if not text:
        return None
    plain = text.replace("-", "") if len(text) == 36 else text
    if len(plain) == digits and set(plain) <= _HEX and plain.strip("0"):
        return plain
    return hashlib.sha256(text.encode()).hexdigest()[:digits]

"""Times and counts as records write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from redfirst.evaluators.dialects.values import is_count, number

_FRACTION = re.compile(r"\.(\d+)")
_SECOND = 10**9
_MILLISECOND = 10**6
_LAST = 2**63 - 1


def nanoseconds(value: object) -> int | None:
    """The Unix nanoseconds of an ISO 8601 text; without an offset it is taken as UTC. ``None`` when it is no such text."""
    if not isinstance(value, str):
        return None
    fraction = _FRACTION.search(value)
    whole = value[: fraction.start()] + value[fraction.end() :] if fraction else value
    try:
        at = datetime.fromisoformat(whole.strip())
    except ValueError:
        return None
    seconds = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    digits = fraction.group(1)[:9].ljust(9, "0") if fraction else "0"
    return _within(seconds * _SECOND + int(digits))


def counted(value: object, unit: int) -> int | None:
    """A count of time since 1970 in units of so many nanoseconds; ``None`` when it is no such number."""
    if isinstance(value, str) and is_count(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) > 2**63:
        return None
    return _within(int(value * unit))


def moment(value: object) -> int | None:
    """The Unix nanoseconds of an ISO 8601 text, or of milliseconds since 1970, as pandas and JavaScript write them."""
    return nanoseconds(value) or counted(value, _MILLISECOND)


def count(value: object) -> int | None:
    """A count that an attribute can hold; ``None`` when it is no such number."""
    found = number(value)
    return found if found is not None and 0 <= found <= _LAST else None


def _within(time_ns: int) -> int | None:
    return time_ns if 0 < time_ns <= _LAST else None

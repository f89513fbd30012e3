"""A span of time as people write it."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from redfirst.evaluators.errors import ConfigurationError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_AGO = re.compile(r"(\d+)([smhdw])")


def begin_of(text: str, now_ns: int) -> int:
    """The beginning of a period that lasts until now, in Unix nanoseconds: ``24h``, ``7d``, or a date in ISO 8601.

    Raises:
        ConfigurationError: it is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_ns - int(ago[1]) * _SECONDS[ago[2]] * 10**9
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(
            f"--since {text}: give a number with s, m, h, d or w, as in 24h, or a date, as in 2026-11-29T08:00."
        ) from None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return int(moment.timestamp()) * 10**9

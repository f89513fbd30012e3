"""Letting go of verdicts that were kept for as long as was asked."""

from __future__ import annotations

import time
from collections.abc import Callable

from redfirst.collector_processor.storing.store import Store

_AT_ONCE = 50
_PAUSE = 0.01
"""Seconds between two transactions: the store is for others too."""


def expire(
    store: Store,
    before_ns: int,
    *,
    at_ns: int,
    seconds: float,
    at_once: int = _AT_ONCE,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Leave a tombstone for every run judged last before then, for so many seconds at most; how many there were."""
    until = clock() + seconds
    total = 0
    while True:
        gone = store.expire(before_ns, at_ns=at_ns, limit=at_once)
        total += gone
        if gone < at_once or clock() >= until:
            return total
        pause(_PAUSE)

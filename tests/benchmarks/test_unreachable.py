"""A slice of ``benchmarks/unreachable.py``."""

from __future__ import annotations

import unreachable


def test_with_no_collector_every_span_is_accounted_for_and_memory_is_bounded() -> None:
    """Failed, dropped or waiting: none is lost in silence."""
    found = unreachable.measure(2_000, 2)

    assert found["ended"] == 2_200
    assert found["ended"] == found["exported"] + found["failed"] + found["dropped"] + found["waiting"]
    assert found["grown_mb"] < unreachable.MOST_GROWTH_MB

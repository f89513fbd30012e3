"""When nothing came although something should have, and when too little of what came could be judged."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from redfirst.evaluators.intervals import wilson

HOUR_NS = 3600 * 1_000_000_000
WEEK_HOURS = 168
UNLIKELY = 0.001
"""Probability of seeing nothing by chance below which it is an alert."""
COVERED = 0.8
"""Share of runs that must have a verdict."""
_FEWEST = 20
_Z = 1.96
_WEEKS = 4


def hour_of(time_ns: int) -> int:
    """The hour since the epoch."""
    return time_ns // HOUR_NS


def expected_runs(counts: Mapping[int, int], *, begin_ns: int, end_ns: int, first_hour: int) -> float:
    """How many runs this stretch of time should bring: by the hour of the week, the median of up to four weeks before.

    ``counts`` are runs by hour since the epoch, ``first_hour`` the hour in which the stream was seen first; hours of
    weeks before it are unknown, not empty. 0 where no week before is known.
    """
    expected = 0.0
    for hour in range(hour_of(begin_ns), hour_of(end_ns - 1) + 1):
        known = [counts.get(earlier, 0) for earlier in _weeks_before(hour) if earlier > first_hour]
        if not known:
            return 0.0
        overlap = min(end_ns, (hour + 1) * HOUR_NS) - max(begin_ns, hour * HOUR_NS)
        expected += median(known) * overlap / HOUR_NS
    return expected


def absent(expected: float, seen: int) -> bool:
    """Whether seeing nothing is less likely than 1 in 1,000: e^-expected, the Poisson probability of none."""
    return seen == 0 and math.exp(-expected) < UNLIKELY


def uncovered(judged: int, ended: int) -> bool:
    """Whether too few of the runs that ended have a verdict: the upper Wilson bound is below 80 %, of 20 at least."""
    return ended >= _FEWEST and wilson(judged, ended, z=_Z)[1] < COVERED


def _weeks_before(hour: int) -> Sequence[int]:
    return [hour - week * WEEK_HOURS for week in range(1, _WEEKS + 1)]

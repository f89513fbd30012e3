"""When nothing came although something should have, and when too little of what came could be judged."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from statistics import median

from redfirst.collector_processor.alerting.policy import WEEK_NS, Sample
from redfirst.evaluators.statistics.proportions import wilson

UNLIKELY = 0.001
"""Probability of seeing nothing by chance below which it is an alert."""
COVERED = 0.8
"""Share of runs that must have a verdict."""
FEWEST = 20
"""Runs below which nothing is said of coverage."""
_WEEKS = 4


def expected_runs(samples: Sequence[Sample], begin_ns: int, end_ns: int) -> float:
    """How many runs the time after ``begin_ns`` and up to ``end_ns`` should bring: the median of the same time in up to
    four weeks before. ``samples`` are in order; a week that began before the first of them is unknown, not empty.
    0 where no week before is known."""
    counts = []
    for week in range(1, _WEEKS + 1):
        first, last = begin_ns - week * WEEK_NS, end_ns - week * WEEK_NS
        if not samples or first < samples[0].at_ns:
            break
        counts.append(_until(samples, last) - _until(samples, first))
    return median(counts) if counts else 0.0


def absent(samples: Sequence[Sample], now_ns: int) -> bool:
    """Whether it is too quiet since the last run: seeing nothing for so long is less likely than 1 in 1,000.

    The probability of none is e^-expected (Poisson); 6.91 expected runs are the fewest of which none may come.
    """
    if not samples:
        return False
    return math.exp(-expected_runs(samples, samples[-1].at_ns, now_ns)) < UNLIKELY


def uncovered(samples: Sequence[Sample], now_ns: int, window_ns: int) -> bool:
    """Whether too few runs have a verdict: of those in the window, of the last 20 at least, the upper Wilson bound
    (95 %) of the share that has one is below 80 %. A sample is bad when it has none."""
    recent = samples[min(_until(samples, now_ns - window_ns), max(0, len(samples) - FEWEST)) :]
    judged = sum(not sample.bad for sample in recent)
    return len(recent) >= FEWEST and wilson(judged, len(recent)).high < COVERED


def _until(samples: Sequence[Sample], time_ns: int) -> int:
    """How many there are up to this time."""
    return bisect_right(samples, time_ns, key=lambda sample: sample.at_ns)

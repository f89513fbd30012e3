"""Observations by size, as Prometheus and OTLP count them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from math import inf

BOUNDS: Mapping[str, tuple[float, ...]] = {
    "redfirst_evaluation_score": (0.1, 0.25, 0.5, 0.75, 0.9, 1.0),
    # settle time is 10 s by default; an hour is a run that waited for a scorer that was down
    "redfirst_trace_score_duration_seconds": (0.1, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 3600),
}
"""Upper bounds of the buckets, by name; the last bucket has none."""


class Histogram:
    """Counts of observations up to each bound and beyond the last one, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0
        self.least, self.most = inf, -inf

    def add(self, value: float) -> None:
        """Count an observation; one at a bound is below it (Prometheus' ``le``, OTLP's bucket)."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self.least, self.most = min(self.least, value), max(self.most, value)

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """Each bound as text, and how many were at most that."""
        names = [*(f"{bound:g}" for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))

    def copy(self) -> Histogram:
        """As it is now."""
        other = Histogram(self.bounds)
        other.counts, other.sum = list(self.counts), self.sum
        other.least, other.most = self.least, self.most
        return other

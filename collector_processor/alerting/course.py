"""Where a stream stands over time, by all that is asked of it: a pure function of its runs, the policy and the time.

A run counts where at least one check that could flag it came to an answer; a run of which all are inconclusive is no
observation. A later version of a run replaces what was counted, as if it had been so from the start. Every moment at
which a run came or left a window, or at which time alone changes something, is judged, so that the same runs end in
the same state, however they came and whenever it was asked before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redfirst.collector_processor.alerting import drift, objective
from redfirst.collector_processor.alerting.drift import Drift
from redfirst.collector_processor.alerting.objective import Objective
from redfirst.collector_processor.alerting.policy import Count, Policy, Sample, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a stream stood at a moment, and since when."""

    at_ns: int = 0
    standing: Standing = Standing.NO_DATA
    since_ns: int = 0
    objective: Objective = field(default_factory=Objective)
    drift: Drift = field(default_factory=Drift)

    @property
    def causes(self) -> tuple[str, ...]:
        """Why it fires: ``objective``, ``drop``."""
        by = {"objective": self.objective.standing, "drop": self.drift.standing}
        return tuple(name for name, standing in by.items() if standing is Standing.FIRING)


class _Window:
    """The runs of the last so many nanoseconds; counts while a pointer walks over the samples."""

    def __init__(self, samples: Sequence[Sample], length_ns: int) -> None:
        self._samples = samples
        self._length = length_ns
        self._entering = self._leaving = self._flagged = 0

    def move(self, now_ns: int) -> None:
        """To this moment: runs up to it are in, runs as old as the window are out."""
        samples = self._samples
        while self._entering < len(samples) and samples[self._entering].at_ns <= now_ns:
            self._flagged += samples[self._entering].bad
            self._entering += 1
        while self._leaving < self._entering and samples[self._leaving].at_ns + self._length <= now_ns:
            self._flagged -= samples[self._leaving].bad
            self._leaving += 1

    def leaves_ns(self) -> int | None:
        """When the oldest of its runs is out."""
        if self._leaving == self._entering:
            return None
        return self._samples[self._leaving].at_ns + self._length

    def count(self) -> Count:
        """Of the runs in it."""
        return Count(flagged=self._flagged, judged=self._entering - self._leaving)


def followed(samples: Sequence[Sample], mark: Mark, policy: Policy, now_ns: int) -> Mark:
    """Where a stream stands now, from where it stood.

    ``samples`` are in order and reach back ``Policy.reach_ns`` before the mark.
    """
    long, short = _Window(samples, policy.window_ns), _Window(samples, policy.short_ns)
    for window in (long, short):
        window.move(mark.at_ns)
    place = next((n for n, sample in enumerate(samples) if sample.at_ns > mark.at_ns), len(samples))
    while True:
        coming = [
            samples[place].at_ns if place < len(samples) else None,
            long.leaves_ns(),
            short.leaves_ns(),
            *objective.due(mark.objective, policy),
            *drift.due(mark.drift, policy),
        ]
        moments = [moment for moment in coming if moment is not None and mark.at_ns < moment <= now_ns]
        moment = min(moments, default=now_ns)
        past = mark.drift
        while place < len(samples) and samples[place].at_ns <= moment:
            if policy.false_alarms_a_week is not None:
                past = drift.seen(past, samples, place, policy)
            place += 1
        for window in (long, short):
            window.move(moment)
        mark = _turned(
            replace(
                mark,
                at_ns=moment,
                objective=objective.judged(mark.objective, long.count(), short.count(), policy, moment),
                drift=drift.waited(past, policy, moment),
            )
        )
        if not moments:
            return mark


def _turned(mark: Mark) -> Mark:
    both = (mark.objective.standing, mark.drift.standing)
    standing = next(
        (one for one in (Standing.FIRING, Standing.OK, Standing.NO_DATA) if one in both), Standing.NO_DATA
    )
    return mark if standing is mark.standing else replace(mark, standing=standing, since_ns=mark.at_ns)

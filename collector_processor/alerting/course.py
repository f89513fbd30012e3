"""Where a stream stands over time, by all that is asked of it: a pure function of its runs, the policy and the time.

A run counts where at least one check that could flag it came to an answer; a run of which all are inconclusive is no
observation. A later version of a run replaces what was counted, as if it had been so from the start. Every moment at
which a run came or left a window, or at which time alone changes something, is judged, so that the same runs end in
the same state, however they came and whenever it was asked before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from redfirst.collector_processor.alerting import canary, drift, objective
from redfirst.collector_processor.alerting.absence import absent, uncovered
from redfirst.collector_processor.alerting.canary import Versions
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
    versions: Versions = field(default_factory=Versions)
    quiet: tuple[str, ...] = ()
    """Of a stream about coverage: ``absence``, ``coverage``."""

    @property
    def causes(self) -> tuple[str, ...]:
        """Why it fires: ``objective``, ``drop``, ``version``; ``absence``, ``coverage``."""
        by = {
            "objective": self.objective.standing,
            "drop": self.drift.standing,
            "version": self.versions.standing,
        }
        return (*(name for name, standing in by.items() if standing is Standing.FIRING), *self.quiet)


class _Window:
    """The runs of the last so many nanoseconds; counts while a pointer walks over the samples from a moment on."""

    def __init__(self, samples: Sequence[Sample], length_ns: int, begin_ns: int) -> None:
        self._samples = samples
        self._length = length_ns
        self._leaving = _until(samples, begin_ns - length_ns)
        self._entering = _until(samples, begin_ns)
        self._flagged = sum(sample.bad for sample in samples[self._leaving : self._entering])

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


def _until(samples: Sequence[Sample], time_ns: int) -> int:
    """How many there are up to this time."""
    return bisect_right(samples, time_ns, key=lambda sample: sample.at_ns)


def followed(samples: Sequence[Sample], mark: Mark, policy: Policy, now_ns: int) -> Mark:
    """Where a stream stands now, from where it stood.

    ``samples`` are in order and reach back ``Policy.reach_ns`` before the mark.
    """
    long, short = (_Window(samples, length, mark.at_ns) for length in (policy.window_ns, policy.short_ns))
    place = _until(samples, mark.at_ns)
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
        past, versions = mark.drift, mark.versions
        while place < len(samples) and samples[place].at_ns <= moment:
            if policy.false_alarms_a_week is not None:
                past = drift.seen(past, samples, place, policy)
                versions = canary.seen(versions, samples[place].version, bad=samples[place].bad)
            place += 1
        for window in (long, short):
            window.move(moment)
        mark = _turned(
            replace(
                mark,
                at_ns=moment,
                objective=objective.judged(mark.objective, long.count(), short.count(), policy, moment),
                drift=drift.waited(past, policy, moment),
                versions=versions,
            )
        )
        if not moments:
            return mark


def _turned(mark: Mark) -> Mark:
    all_of = (mark.objective.standing, mark.drift.standing, mark.versions.standing)
    standing = next((one for one in (Standing.FIRING, Standing.OK) if one in all_of), Standing.NO_DATA)
    return mark if standing is mark.standing else replace(mark, standing=standing, since_ns=mark.at_ns)


def covered(samples: Sequence[Sample], mark: Mark, policy: Policy, now_ns: int) -> Mark:
    """Where a stream about coverage stands now: whether runs come, and whether they can be judged.

    Without any runs there is nothing to say; that is what becomes of a silence when the runs before it are forgotten.
    """
    quiet = []
    if absent(samples, now_ns):
        quiet.append("absence")
    if uncovered(samples, now_ns, policy.window_ns):
        quiet.append("coverage")
    standing = Standing.FIRING if quiet else Standing.OK if samples else Standing.NO_DATA
    since = mark.since_ns if standing is mark.standing else now_ns
    return Mark(at_ns=now_ns, standing=standing, since_ns=since, quiet=tuple(quiet))

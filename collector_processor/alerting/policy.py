"""When the flagged runs of an agent are an alert: a pure function of the runs, the policy and the time.

A stream is what one alert speaks of: an agent, or one check of an agent. Of the runs that were judged for the first
time within the window, ``k`` of ``n`` were flagged. The alert fires when ``n`` is at least ``min_runs`` and the lower
Wilson bound of k/n (at ``z``) is above the threshold. It resolves when the upper Wilson bound (at ``resolve_z``) is
below the threshold: between the two lies the hysteresis, in which a state stays what it is. Too few runs, or none,
are ``no_data``: no failure and no page. A firing alert outlives a lull; after ``stale`` without enough runs it is
given up as ``no_data``.

A run counts where at least one check that could flag it came to an answer; a run of which all are inconclusive is no
observation. A later version of a run replaces what was counted, as if it had been so from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from redfirst.collector_processor.settings import AlertSettings
from redfirst.evaluators.statistics.proportions import wilson_bounds

_NS = 1_000_000_000


class Standing(StrEnum):
    """What is said of a stream."""

    OK = "ok"
    FIRING = "firing"
    NO_DATA = "no_data"


class Stream(NamedTuple):
    """What an alert speaks of; ``check`` is empty where all flagged runs count."""

    tenant: str
    agent: str
    check: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """``AlertSettings`` in nanoseconds."""

    window_ns: int
    min_runs: int
    threshold: float
    z: float
    resolve_z: float
    stale_ns: int
    per_check: bool = False

    @classmethod
    def of(cls, settings: AlertSettings) -> Policy:
        """The policy of a configuration."""
        return cls(
            window_ns=int(settings.window_seconds * _NS),
            min_runs=settings.min_runs,
            threshold=settings.threshold,
            z=settings.z,
            resolve_z=settings.resolve_z,
            stale_ns=int(settings.stale_seconds * _NS),
            per_check=settings.per == "check",
        )


class Sample(NamedTuple):
    """One run in one stream, ordered by time."""

    at_ns: int
    run_id: str
    bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a stream stood at a moment, and since when."""

    at_ns: int = 0
    standing: Standing = Standing.NO_DATA
    since_ns: int = 0
    thin_since_ns: int | None = None
    """Since when a firing stream has had too few runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The runs in a window."""

    flagged: int
    judged: int

    def interval(self, z: float) -> tuple[float, float] | None:
        """The Wilson interval of the flagged share; None when nothing was judged."""
        return wilson_bounds(self.flagged, self.judged, z) if self.judged else None


def judged(count: Count, mark: Mark, policy: Policy, now_ns: int) -> Mark:
    """The next mark of a stream with this count at this time."""
    thin = mark.thin_since_ns
    if mark.standing is Standing.FIRING and thin is not None and now_ns >= thin + policy.stale_ns:
        mark = Mark(standing=Standing.NO_DATA, since_ns=thin + policy.stale_ns)
    mark = replace(mark, at_ns=now_ns)
    firing = mark.standing is Standing.FIRING
    k, n, tolerated = count.flagged, count.judged, policy.threshold
    if n < policy.min_runs:
        if firing:
            return replace(mark, thin_since_ns=mark.thin_since_ns or now_ns)
        return mark if mark.standing is Standing.NO_DATA else _turned(Standing.NO_DATA, now_ns)
    # the bounds lie on either side of k/n, so most windows need no square root
    if firing:
        resolved = k < tolerated * n and wilson_bounds(k, n, policy.resolve_z)[1] < tolerated
        return _turned(Standing.OK, now_ns) if resolved else replace(mark, thin_since_ns=None)
    if k > tolerated * n and wilson_bounds(k, n, policy.z)[0] > tolerated:
        return _turned(Standing.FIRING, now_ns)
    return mark if mark.standing is Standing.OK else _turned(Standing.OK, now_ns)


def _turned(standing: Standing, now_ns: int) -> Mark:
    return Mark(at_ns=now_ns, standing=standing, since_ns=now_ns)


def followed(samples: Sequence[Sample], mark: Mark, policy: Policy, now_ns: int) -> Mark:
    """Where a stream stands now, from where it stood: every moment at which a run came or left the window is judged.

    ``samples`` are in order and reach back a window before the mark. The same samples give the same mark, however
    they came and whenever it was asked before.
    """
    window = policy.window_ns
    entering = leaving = flagged = 0
    while entering < len(samples) and samples[entering].at_ns <= mark.at_ns:
        flagged += samples[entering].bad
        entering += 1
    while leaving < entering and samples[leaving].at_ns + window <= mark.at_ns:
        flagged -= samples[leaving].bad
        leaving += 1
    while True:
        arrives = samples[entering].at_ns if entering < len(samples) else None
        departs = samples[leaving].at_ns + window if leaving < entering else None
        moments = [moment for moment in (arrives, departs) if moment is not None and moment <= now_ns]
        if not moments:
            return judged(Count(flagged=flagged, judged=entering - leaving), mark, policy, now_ns)
        moment = min(moments)
        while entering < len(samples) and samples[entering].at_ns == moment:
            flagged += samples[entering].bad
            entering += 1
        while leaving < entering and samples[leaving].at_ns + window == moment:
            flagged -= samples[leaving].bad
            leaving += 1
        mark = judged(Count(flagged=flagged, judged=entering - leaving), mark, policy, moment)


def counted(samples: Iterable[Sample]) -> Count:
    """How many of these runs were flagged."""
    found = list(samples)
    return Count(flagged=sum(sample.bad for sample in found), judged=len(found))


def alert_id(stream: Stream, since_ns: int) -> str:
    """The name of one alert: the same for the same stream and beginning, in every process."""
    text = "\0".join((*stream, str(since_ns))).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=12, person=b"redfirst alert").hexdigest()

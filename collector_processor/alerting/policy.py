"""What an alert speaks of, what it counts, and when it is told: the words that all of the layers share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from redfirst.collector_processor.settings import AlertSettings
from redfirst.evaluators.statistics.proportions import wilson_bounds

_NS = 1_000_000_000
HOUR_NS = 3600 * _NS
WEEK_NS = 168 * HOUR_NS
COVERAGE = "coverage"
INFRASTRUCTURE = "infrastructure"
ABANDONED = "abandoned"


class Standing(StrEnum):
    """What is said of a stream."""

    OK = "ok"
    FIRING = "firing"
    NO_DATA = "no_data"
    """Too few runs to say anything."""
    LEARNING = "learning"
    """Too few runs of the past to compare with."""


class Stream(NamedTuple):
    """What an alert speaks of; ``check`` is empty where all flagged runs count."""

    tenant: str
    agent: str
    check: str = ""
    about: str = ""
    """Not whether runs are good, but, with ``COVERAGE``, whether they come and are judged, and with ``INFRASTRUCTURE``
    or ``ABANDONED`` whether that is how they ended."""
    task: str = ""
    """The hash of the words that its runs began with; empty: of any."""

    @property
    def parent(self) -> Stream:
        """The same of all tasks; itself where it is that."""
        return self._replace(task="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """``AlertSettings`` in nanoseconds."""

    window_ns: int
    short_ns: int
    min_runs: int
    threshold: float | None
    """None: no objective, only the stream's own past."""
    z: float
    resolve_z: float
    stale_ns: int
    hold_ns: int
    reference_ns: int
    settle_ns: int
    """The newest part of the past, which is no reference yet."""
    revision_ns: int
    """How long after a run was judged first its later versions change what was counted."""
    false_alarms_a_week: float | None
    """Of one stream, by its own past; None: the past is not compared with."""
    per_check: bool = False

    @property
    def reach_ns(self) -> int:
        """How far back runs can matter to what is said now."""
        past = self.reference_ns + HOUR_NS if self.false_alarms_a_week else 0
        return max(self.window_ns, past)

    def for_stream(self, stream: Stream) -> Policy:
        """What holds for this stream: one task has no objective of its own, only its past."""
        return replace(self, threshold=None) if stream.task else self

    @classmethod
    def of(cls, settings: AlertSettings) -> Policy:
        """The policy of a configuration."""
        return cls(
            window_ns=int(settings.window_seconds * _NS),
            short_ns=int((settings.short_window_seconds or settings.window_seconds / 12) * _NS),
            min_runs=settings.min_runs,
            threshold=settings.threshold,
            z=settings.z,
            resolve_z=settings.resolve_z,
            stale_ns=int(settings.stale_seconds * _NS),
            hold_ns=int(settings.hold_seconds * _NS),
            reference_ns=int(settings.reference_seconds * _NS),
            settle_ns=int(settings.reference_settle_seconds * _NS),
            revision_ns=int(max(settings.revision_seconds, 2 * settings.window_seconds) * _NS),
            false_alarms_a_week=settings.false_alarms_a_week,
            per_check=settings.per == "check",
        )


class Sample(NamedTuple):
    """One run in one stream, ordered by time."""

    at_ns: int
    run_id: str
    bad: bool
    session: str = ""
    """Runs of one session share their luck; empty: a session of its own."""
    version: str = ""
    """The agent's version; empty: it names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The runs in a window."""

    flagged: int
    judged: int

    def interval(self, z: float) -> tuple[float, float] | None:
        """The Wilson interval of the flagged share; None when nothing was judged."""
        return wilson_bounds(self.flagged, self.judged, z) if self.judged else None


def counted(samples: Iterable[Sample]) -> Count:
    """How many of these runs were flagged."""
    found = list(samples)
    return Count(flagged=sum(sample.bad for sample in found), judged=len(found))


def alert_id(stream: Stream, since_ns: int) -> str:
    """The name of one alert: the same for the same stream and beginning, in every process."""
    named = (*stream[:3], *filter(None, (stream.about, stream.task)), str(since_ns))
    text = "\0".join(named).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=12, person=b"redfirst alert").hexdigest()

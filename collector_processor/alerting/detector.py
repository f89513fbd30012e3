"""The state of every stream over time, and the changes that people are told of. No clock and no files of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from redfirst.collector_processor.alerting.course import Mark, covered, followed
from redfirst.collector_processor.alerting.policy import (
    ABANDONED,
    COVERAGE,
    INFRASTRUCTURE,
    Count,
    Policy,
    Standing,
    Stream,
    alert_id,
    counted,
)
from redfirst.collector_processor.alerting.reference import KNOWN
from redfirst.collector_processor.alerting.runs import Began, Observations, Observed

_SETTLING_NS = 5 * 10**9
"""By then the runs of a time are counted, unless a later version of one changes what was."""


class Status(StrEnum):
    """What people are told."""

    FIRING = "firing"
    RESOLVED = "resolved"
    NO_DATA = "no_data"
    """It fired and was given up, because for too long there were too few runs to tell."""


class Told(NamedTuple):
    """The alert that people know of."""

    alert: str
    since_ns: int
    causes: tuple[str, ...] = ()
    """Why it fired, as in ``Mark.causes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing to tell; said once."""

    stream: Stream
    status: Status
    alert: str
    since_ns: int
    """When the alert began to fire."""
    at_ns: int
    count: Count
    failing: tuple[Observed, ...]
    """The flagged runs of the window, oldest first."""
    causes: tuple[str, ...]
    """Why it fired, as in ``Mark.causes``."""
    mark: Mark
    """Where the stream stands now."""
    last_ns: int
    """When the last run of the stream was judged; 0 when none is known."""
    retracted: bool = False
    """It resolved because later versions of its runs took back what it fired for."""
    infrastructure: int = 0
    """Runs of the agent in the same time that infrastructure ended."""
    abandoned: int = 0
    """And those that stopped without an end."""
    began: tuple[Began, ...] = ()
    """New versions and models of the agent within a window of the change of its rate, oldest first."""

    @property
    def id(self) -> str:
        """The same whenever this change is found again."""
        return f"{self.alert}.{self.status.value}"


class Detector:
    """Takes runs in and says what changed."""

    def __init__(
        self,
        policy: Policy,
        *,
        bases: Mapping[Stream, Mark] | None = None,
        told: Mapping[Stream, Told] | None = None,
        silenced: Callable[[Stream, int], bool] = lambda _stream, _now_ns: False,
    ) -> None:
        """``bases`` and ``told`` are those of a detector before; its runs since ``horizon`` are to be taken again.
        ``silenced`` says whether alerts of a stream are not to begin at a time."""
        self._silenced = silenced
        self.policy = policy
        self.bases = dict(bases or {})
        """Where each stream stood some time ago: later versions of runs change what came since."""
        self.told = dict(told or {})
        """The alerts that people know to be firing."""
        self.now: dict[Stream, Mark] = {}
        self._settled: dict[Stream, Mark] = {}
        """Where it stood a little before: runs that are stored while others are counted do not ask for everything again."""
        self._runs = Observations(policy.per_check)

    def horizon(self, now_ns: int) -> int:
        """Runs judged up to this time no longer matter."""
        since = now_ns - self.policy.revision_ns
        return min([since, *(mark.at_ns for mark in self.bases.values())]) - self.policy.reach_ns

    def take(self, seen: Observed) -> None:
        """Take in a version of a run. The order does not matter, nor how often."""
        self._runs.take(seen)

    def tick(self, now_ns: int) -> list[Change]:
        """Judge every stream at this time; gives what changed since people were told last."""
        half = self.policy.revision_ns // 2
        for stream in {*self._runs.streams(), *self.bases, *self.told}:
            if stream.about == COVERAGE:
                told = self.told.get(stream)
                mark = self.now.get(stream) or Mark(
                    standing=Standing.FIRING if told else Standing.NO_DATA,
                    since_ns=told.since_ns if told else 0,
                )
                self.now[stream] = covered(self._runs.samples(stream), mark, self.policy, now_ns)
                continue
            base = self.bases.get(stream, Mark())
            samples = self._runs.samples(stream)
            policy = self.policy.for_stream(stream)
            if base.at_ns < now_ns - 3 * half:
                base = self.bases[stream] = followed(samples, base, policy, now_ns - 2 * half)
            start = self.now.get(stream, base)
            changed = self._runs.changed(stream)
            if changed is not None and changed <= start.at_ns:
                start = self._settled.get(stream, base)
                if changed <= start.at_ns or start.at_ns < base.at_ns:
                    start = base
                if start.at_ns < now_ns - _SETTLING_NS:
                    start = self._settled[stream] = followed(samples, start, policy, now_ns - _SETTLING_NS)
            self.now[stream] = followed(samples, start, policy, now_ns)
        changes = [
            change for stream in sorted(self.now) if (change := self._change(stream, now_ns)) is not None
        ]
        self._forget(now_ns)
        return changes

    def _change(self, stream: Stream, now_ns: int) -> Change | None:
        mark, told = self.now[stream], self.told.get(stream)
        if (mark.standing is Standing.FIRING) == (told is not None):
            return None
        if (
            told is None
            and stream.about != COVERAGE
            and (self._blind(stream) or self._said_by_parent(stream))
        ):
            return None
        if told is None and self._silenced(stream, now_ns):
            return None
        status = {Standing.FIRING: Status.FIRING, Standing.OK: Status.RESOLVED}.get(
            mark.standing, Status.NO_DATA
        )
        retracted = told is not None and mark.since_ns <= told.since_ns
        if told is None:
            told = self.told[stream] = Told(alert_id(stream, mark.since_ns), mark.since_ns, mark.causes)
        else:
            del self.told[stream]
        since_ns = _counted_since(mark, self.policy, now_ns)
        window = self._runs.within(stream, since_ns, now_ns)
        changed_ns, near_ns = mark.drift.rise_ns or told.since_ns, self.policy.window_ns
        return Change(
            stream=stream,
            status=Status.RESOLVED if retracted else status,
            alert=told.alert,
            since_ns=told.since_ns,
            at_ns=now_ns,
            count=counted(window),
            failing=tuple(self._runs.run(sample.run_id) for sample in window if sample.bad),
            causes=told.causes,
            mark=mark,
            last_ns=max((sample.at_ns for sample in self._runs.samples(stream)[-1:]), default=0),
            retracted=retracted,
            infrastructure=self._ended(stream, INFRASTRUCTURE, since_ns, now_ns),
            abandoned=self._ended(stream, ABANDONED, since_ns, now_ns),
            began=tuple(self._runs.began(stream, changed_ns - near_ns, changed_ns + near_ns)),
        )

    def _ended(self, stream: Stream, about: str, since_ns: int, now_ns: int) -> int:
        ends = Stream(stream.tenant, stream.agent, about=about)
        return sum(sample.bad for sample in self._runs.within(ends, since_ns, now_ns))

    def _said_by_parent(self, stream: Stream) -> bool:
        """Whether a task is no news: its agent's alert says it, or too little of its past is known."""
        if not stream.task:
            return False
        parent = self.now.get(stream.parent)
        known = self.now[stream].drift.known >= KNOWN
        return not known or (parent is not None and parent.standing is Standing.FIRING)

    def _blind(self, stream: Stream) -> bool:
        """Whether too few runs of the agent can be judged: what the others say is no news then."""
        mark = self.now.get(Stream(stream.tenant, stream.agent, about=COVERAGE))
        return mark is not None and "coverage" in mark.quiet

    def _forget(self, now_ns: int) -> None:
        """Let go of streams and runs that can change nothing any more."""
        self._runs.forget(self.horizon(now_ns))
        there = set(self._runs.streams())
        for stream, mark in list(self.now.items()):
            if stream not in there and stream not in self.told and mark.standing is not Standing.FIRING:
                del self.now[stream]
                self._settled.pop(stream, None)
                self.bases.pop(stream, None)


def _counted_since(mark: Mark, policy: Policy, now_ns: int) -> int:
    """From when on runs are shown: those of the window, or since the rate changed where that is why it fires."""
    if mark.causes == ("drop",):
        return mark.drift.rise_ns - 1
    return now_ns - policy.window_ns

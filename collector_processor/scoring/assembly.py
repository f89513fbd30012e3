"""When a live trace is complete enough to be judged: a state machine over heads and arrival times.

Pure: it knows no clock, no file and no store. Memory holds a trace's span heads and where its records lie.
"""

from __future__ import annotations

import heapq
from array import array
from collections import OrderedDict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.receiving.request import HEAD

_NO_SPAN = bytes(8)
_NEVER = float("inf")
_OFFSET_BITS = 40


class CutReason(StrEnum):
    """Why a trace was released to be judged."""

    ROOT_ENDED = "root_ended"
    """Its root ended, every parent is here, and nothing came for the settle time."""
    WENT_QUIET = "went_quiet"
    """No root, or a parent that never came, and nothing for the idle time."""
    TOO_OLD = "too_old"
    """Spans kept coming beyond the age cap; what comes later makes another version."""
    CAME_LATE = "came_late"
    """Spans came after it was judged."""
    WENT_ON = "went_on"
    """Spans came for a run that was parked, or that was judged only because of its age, and it rests again."""
    ABANDONED = "abandoned"
    """It went quiet without a root, and nothing came for the abandon time after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyLimits:
    """Seconds, all of arrival time."""

    settle: float = 10.0
    idle: float = 180.0
    age: float = 86_400.0
    age_again: float = 3_600.0
    """How often a run that does not end is judged once it was beyond the age cap."""
    abandon: float = 3_600.0
    """After a run that has no root was judged: when it is told to be abandoned."""
    park: float = 86_400.0
    """How long a parked run may go on as if it had never been judged."""
    seal: float = 7 * 86_400.0
    """After a run was judged last: when spans that come make no further version."""
    grace: float = 30.0
    """After a start that found a journal: for so long nothing is said to have gone quiet."""
    spans: int = 100_000
    """Spans of one run whose ids are held; the ids of what comes beyond them are not."""
    again: tuple[float, ...] = (1.0, 6.0, 60.0, 360.0, 2160.0)
    """What late spans wait for, as multiples of ``settle``, by how often the run was judged already."""
    remembered: int = 100_000
    """Judged traces whose late spans are recognised without asking the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """How a judged trace stands to what still comes for it."""

    late: int = 0
    """How often it was judged again because of late spans."""
    parked_until: float = 0.0
    """Until then what comes is no late span: the run waited for a person."""
    aged: bool = False
    """It was judged because of its age alone, and has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A trace as it was when it was released. Until ``landed`` it is not released again."""

    trace_id: bytes
    reason: CutReason
    positions: tuple[Position, ...]
    spans: int
    first_at: float
    last_at: float
    due_at: float


@dataclass(slots=True, eq=False)
class _Open:
    """One trace that is being assembled."""

    first_at: float
    last_at: float
    timer_at: float
    """When it is looked at next; other timers of it are stale."""
    root_ended: bool
    heads: bytearray
    places: array[int]
    left_out: int = 0
    """Spans whose heads are not held."""

    def whole(self) -> bool:
        """Whether its root has ended and nothing is known to be still out."""
        return self.root_ended and (self.left_out > 0 or not (self.missing_parent() or self.pending()))

    def missing_parent(self) -> bool:
        """Whether a span names a parent that is not here."""
        ids = set()
        parents = set()
        for span_id, parent_id, _ in HEAD.iter_unpack(self.heads):
            ids.add(span_id)
            parents.add(parent_id)
        parents.discard(_NO_SPAN)
        return not parents <= ids

    def pending(self) -> bool:
        """Whether a span was announced and has not ended."""
        ended: dict[bytes, bool] = {}
        for span_id, _, done in HEAD.iter_unpack(self.heads):
            ended[span_id] = ended.get(span_id, False) or bool(done)
        return not all(ended.values())


class Assembly:
    """All open traces. Not safe for two threads at once."""

    def __init__(self, limits: AssemblyLimits) -> None:
        self.limits = limits
        self._open: dict[bytes, _Open] = {}
        self._away: dict[bytes, Cut] = {}
        self._judged: OrderedDict[bytes, Judged] = OrderedDict()
        self._timers: list[tuple[float, bytes]] = []
        self._rootless: dict[bytes, float] = {}
        self._rootless_timers: list[tuple[float, bytes]] = []
        self._quiet_from = -_NEVER

    def __len__(self) -> int:
        return len(self._open)

    @property
    def away(self) -> int:
        """How many traces were released and have not landed."""
        return len(self._away)

    def add(self, heads: Mapping[bytes, bytes], position: Position, now: float, *, age: float = 0.0) -> None:
        """The heads of one record. ``age`` is how long ago it arrived, when the journal is read again."""
        place = (position.segment << _OFFSET_BITS) | position.offset
        soonest = now + min(self.limits.settle, self.limits.idle)
        for trace_id, packed in heads.items():
            trace = self._open.get(trace_id)
            if trace is None:
                trace = _Open(now - age, now, _NEVER, root_ended=False, heads=bytearray(), places=array("Q"))
                self._open[trace_id] = trace
            if trace.timer_at > soonest:
                self._look_again(trace_id, trace, soonest)
            trace.last_at = now
            self._keep(trace, packed)
            trace.places.append(place)
            if not trace.root_ended:
                trace.root_ended = any(
                    done and parent == _NO_SPAN for _, parent, done in HEAD.iter_unpack(packed)
                )

    def began(self, now: float) -> None:
        """This process reads on where another stopped: silence counts from now, and not before the grace time."""
        self._quiet_from = now + self.limits.grace

    def remember(self, judged: Iterable[tuple[bytes, Judged]]) -> None:
        """Traces that were judged before this process began."""
        for trace_id, standing in judged:
            self._judged[trace_id] = standing

    def watch(self, trace_id: bytes, at: float) -> None:
        """A trace that was judged without a root is abandoned at this time, if nothing comes for it."""
        self._rootless[trace_id] = at
        heapq.heappush(self._rootless_timers, (at, trace_id))

    def due(self, now: float, *, limit: int = 256) -> list[Cut]:
        """The traces to judge now, at most ``limit``."""
        cuts: list[Cut] = []
        while self._timers and self._timers[0][0] <= now and len(cuts) < limit:
            timer_at, trace_id = heapq.heappop(self._timers)
            trace = self._open.get(trace_id)
            if trace is None or trace.timer_at != timer_at:
                continue
            reason, at = self._when(trace_id, trace)
            if trace_id in self._away:
                at = now + self.limits.settle
            if at > now:
                self._look_again(trace_id, trace, at)
                continue
            cuts.append(self._cut(trace_id, trace, reason, at))
        while self._rootless_timers and self._rootless_timers[0][0] <= now and len(cuts) < limit:
            cuts.extend(self._abandoned(*heapq.heappop(self._rootless_timers), now))
        return cuts

    def landed(self, trace_id: bytes, judged: Judged) -> None:
        """A released trace has its verdict in the store."""
        self._away.pop(trace_id, None)
        self._rootless.pop(trace_id, None)
        self._judged[trace_id] = judged
        self._judged.move_to_end(trace_id)
        while len(self._judged) > self.limits.remembered:
            self._judged.popitem(last=False)

    def next_due(self) -> float | None:
        """When ``due`` may have something; None when nothing is open."""
        return min((timers[0][0] for timers in (self._timers, self._rootless_timers) if timers), default=None)

    def oldest(self, *, without: Container[bytes] = ()) -> Position | None:
        """The first record that a trace without a stored verdict needs; None when there is none.

        ``without`` are released traces that are being stored with this very answer.
        """
        held = [
            cut.positions[0]
            for trace_id, cut in self._away.items()
            if cut.positions and trace_id not in without
        ]
        first = next(iter(self._open.values()), None)
        if first is not None:  # traces are held in the order in which their first records came
            held.append(_position(first.places[0]))
        return min(held, default=None)

    def _look_again(self, trace_id: bytes, trace: _Open, at: float) -> None:
        trace.timer_at = at
        heapq.heappush(self._timers, (at, trace_id))

    def _keep(self, trace: _Open, packed: bytes) -> None:
        room = self.limits.spans * HEAD.size - len(trace.heads)
        if len(packed) > room:
            trace.left_out += (len(packed) - max(room, 0)) // HEAD.size
            packed = packed[: max(room, 0)]
        trace.heads += packed

    def _when(self, trace_id: bytes, trace: _Open) -> tuple[CutReason, float]:
        """The reason for which the trace is released next, and when."""
        limits = self.limits
        judged = self._judged.get(trace_id)
        if judged is not None and (judged.aged or trace.first_at < judged.parked_until):
            return self._when_gone_on(trace, judged)
        if judged is not None:
            wait = limits.settle * limits.again[min(judged.late, len(limits.again) - 1)]
            return CutReason.CAME_LATE, trace.last_at + wait
        too_old = trace.first_at + limits.age
        reason, at = (
            (CutReason.ROOT_ENDED, trace.last_at + limits.settle)
            if trace.whole()
            else (CutReason.WENT_QUIET, self._quiet_at(trace))
        )
        return (CutReason.TOO_OLD, too_old) if too_old < at else (reason, at)

    def _when_gone_on(self, trace: _Open, judged: Judged) -> tuple[CutReason, float]:
        """Its earlier spans are not held, so that a parent that is not among the new ones says nothing."""
        ended = trace.root_ended and not trace.pending()
        at = trace.last_at + self.limits.settle if ended else self._quiet_at(trace)
        too_old = trace.first_at + (self.limits.age_again if judged.aged else self.limits.age)
        return (CutReason.TOO_OLD, too_old) if too_old < at else (CutReason.WENT_ON, at)

    def _quiet_at(self, trace: _Open) -> float:
        return max(trace.last_at + self.limits.idle, self._quiet_from)

    def _abandoned(self, at: float, trace_id: bytes, now: float) -> Iterable[Cut]:
        """The cut of a trace that nothing came for; none when something did, or the timer is an old one."""
        if self._rootless.get(trace_id) != at:
            return
        if now < self._quiet_from:
            self.watch(trace_id, self._quiet_from)
            return
        del self._rootless[trace_id]
        if trace_id in self._open or trace_id in self._away:
            return
        cut = Cut(
            trace_id=trace_id,
            reason=CutReason.ABANDONED,
            positions=(),
            spans=0,
            first_at=at,
            last_at=at,
            due_at=at,
        )
        self._away[trace_id] = cut
        yield cut

    def _cut(self, trace_id: bytes, trace: _Open, reason: CutReason, at: float) -> Cut:
        del self._open[trace_id]
        cut = Cut(
            trace_id=trace_id,
            reason=reason,
            positions=tuple(_position(place) for place in dict.fromkeys(trace.places)),
            spans=len(trace.heads) // HEAD.size + trace.left_out,
            first_at=trace.first_at,
            last_at=trace.last_at,
            due_at=at,
        )
        self._away[trace_id] = cut
        return cut


def _position(place: int) -> Position:
    return Position(place >> _OFFSET_BITS, place & ((1 << _OFFSET_BITS) - 1))

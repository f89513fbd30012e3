"""From durable requests to stored verdicts: one thread that feeds the assembler, the scorer and the store.

Its cursor is the first record that a run without a stored verdict needs. It is stored in the transaction of the
verdicts, so that a start after any stop reads on from there and finds every run either stored or still to come.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.journal.format import START, Position
from redfirst.collector_processor.journal.writing import Durable, Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.request import Heads, heads_of
from redfirst.collector_processor.scoring.access import StoreAccess
from redfirst.collector_processor.scoring.assembly import Assembly, AssemblyLimits, Cut, CutReason, Judged
from redfirst.collector_processor.scoring.counting import Counting
from redfirst.collector_processor.scoring.joining import Joining
from redfirst.collector_processor.scoring.judgements import Judgements
from redfirst.collector_processor.scoring.process import Job, Scoring
from redfirst.collector_processor.storing.sqlite import ASSEMBLY
from redfirst.collector_processor.storing.store import Landed, Landing, Store
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.trajectory import Stop

Json = Any

_AT_SCORER = 512
"""Runs that may be at the scorer at once; the others wait in the assembler, as heads."""
_TICK = 0.25
_GATHER = 0.02
"""Seconds that a verdict waits for others at the scorer, to share a transaction with them."""
_QUEUE = 64
"""Runs at the scorer that make a queue; the verdicts of a queue are late already, and are stored in fewer transactions."""
_GATHER_QUEUED = 0.1
_CHUNK = 32 << 20
_SAVE_EVERY = 1.0
_ID_DIGITS = 32
_AGAIN = 64
"""Runs that are judged again at once, behind those that are new."""


@dataclass(frozen=True, slots=True)
class _Answered:
    job: Job
    answer: Mapping[str, Json]


class Pipeline:
    """Owns the assembler. ``durable`` and ``answered`` may be called from any thread."""

    def __init__(
        self,
        journal: Callable[[], Journal],
        store: Store,
        *,
        limits: AssemblyLimits,
        metrics: Metrics,
        destinations: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """``destinations`` are the names that get an outbox row for every version of a run. Silence is measured by
        ``clock``; ``wall_ns`` says when a run was judged, and how long ago that was for an earlier process."""
        self.assembly = Assembly(limits)
        self.replaying = True
        """True until the journal has been read up to where this process began."""
        self._journal = journal
        self._store = store
        self._metrics = metrics
        self._access = StoreAccess(metrics)
        self._destinations = tuple(destinations)
        self._clock, self._wall_ns = clock, wall_ns
        self._scoring: Scoring | None = None
        self._lock = threading.Condition()
        self._fed = self._begun_at = START
        self._saved: Position | None = None
        self._saved_at = 0.0
        self._batches: list[list[tuple[Position, Position, Heads]]] = []
        self._answers: list[_Answered] = []
        self._joining = Joining(store, self._access, metrics, settle=limits.settle)
        self._counting = Counting(metrics)
        self._judgements = Judgements(
            self.assembly, self._joining, store, self._access, metrics, clock=clock, wall_ns=wall_ns
        )
        self._looked_at = -_SAVE_EVERY
        self._draining = False
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    def start(self, scoring: Scoring) -> None:
        """Read the journal from the cursor and go on from there. Call it before anything is appended."""
        self._begin(scoring)
        self._thread.start()

    def begin(self, scoring: Scoring) -> None:
        """As ``start``, without a thread: whoever calls ``step`` again and again has the pipeline work."""
        self._begin(scoring)
        self._replay()

    def _begin(self, scoring: Scoring) -> None:
        self._scoring = scoring
        self._begun_at = self._journal().end

    def durable(self, batch: Durable) -> None:
        """A batch that the journal has made durable, in its order."""
        without_bodies = [(placed.position, placed.following, _heads(note)) for placed, note in batch]
        with self._lock:
            self._batches.append(without_bodies)
            self._lock.notify_all()

    def answered(self, job: Job, answer: Mapping[str, Json]) -> None:
        """The scorer's answer to a job."""
        with self._lock:
            self._answers.append(_Answered(job, answer))
            self._lock.notify_all()

    def drain(self, timeout: float) -> bool:
        """Judge and store what is due, then stop; False when the time ran out before it was all done."""
        with self._lock:
            self._draining = True
            self._lock.notify_all()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def store_trouble(self) -> str | None:
        """Why the store cannot be used at the moment."""
        return self._access.trouble

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def lag(self) -> float:
        """Seconds that the oldest due trace has waited for its verdict."""
        due = self._judgements.due_times()
        waiting = self.assembly.next_due()
        if waiting is not None:
            due.append(waiting)
        return max(0.0, self._clock() - min(due)) if due else 0.0

    def _run(self) -> None:
        if not self._replay():
            return
        while self.step():
            with self._lock:
                self._lock.wait_for(self._something, self._until_next(self._clock()))

    def step(self) -> bool:
        """Do what there is to do now; False when everything is stored and it was told to drain."""
        with self._lock:
            batches, self._batches = self._batches, []
            answers, self._answers = self._answers, []
            draining = self._draining
        now = self._clock()
        for batch in batches:
            for position, following, heads in batch:
                self._feed(position, following, heads, now)
        for answered in answers:
            self._counting.answered(answered.answer)
            self._judgements.take(answered.job, answered.answer)
        self._look(now)
        self._send(now)
        self._land(now)
        if draining and not self._busy() and not self._batches:
            self._save(now, force=True)
            return False
        return True

    def _gather(self) -> float:
        """How long a verdict waits for others: a commit costs as much as storing several runs."""
        return _GATHER_QUEUED if self.assembly.away > _QUEUE else _GATHER

    def _busy(self) -> bool:
        return self._judgements.busy or len(self._joining) > 0

    def _something(self) -> bool:
        """Whether there is something to do before the time comes for it."""
        return bool(self._batches or self._answers or (self._draining and not self._busy()))

    def _look(self, now: float) -> None:
        """Take up what others asked of the store: runs to judge again, and meetings of which one was erased."""
        if now - self._looked_at < _SAVE_EVERY or self._draining:
            return
        self._looked_at = now
        self._joining.look(now, self._wall_ns())
        if self._judgements.judging_again or self.assembly.away > _AT_SCORER // 2 or self._scoring is None:
            return
        jobs = self._judgements.again(_AGAIN)
        if jobs:
            self._looked_at = now - _SAVE_EVERY  # there may be more
            self._scoring.submit(jobs)

    def _until_next(self, now: float) -> float:
        if self._judgements.found:
            return self._gather()
        waiting = [at for at in (self.assembly.next_due(), self._joining.next_due()) if at is not None]
        due = min(waiting, default=None)
        if due is None or self.assembly.away >= _AT_SCORER:
            return _TICK
        return min(_TICK, max(0.001, due - now))

    def _replay(self) -> bool:
        """Read what no stored verdict covers; False when it was told to stop meanwhile. Timers begin anew: time that
        the service was down is no silence."""
        self._remember(self._clock(), self._wall_ns())
        journal = self._journal()
        position = self._access.patiently(lambda: self._store.cursor(ASSEMBLY)) or START
        end = self._begun_at
        while position < end:
            if self._draining:
                return False
            chunk = journal.read_from(position, limit_bytes=_CHUNK)
            now, wall = self._clock(), self._wall_ns()
            for placed in chunk:
                if placed.position >= end:
                    break  # accepted by this process: it comes by itself
                try:
                    heads = heads_of(placed.record.body, placed.record.signal)
                except UnreadableInput:
                    self._metrics.add("redfirst_assembly_failures_total")
                    heads = {}
                age = max(0.0, (wall - placed.record.arrival_ns) / 1e9)
                self._feed(placed.position, placed.following, heads, now, age=age)
            if not chunk or chunk[-1].position >= end:
                break
            position = chunk[-1].following
        self._fed = max(self._fed, end)
        self.replaying = False
        return True

    def _feed(
        self, position: Position, following: Position, heads: Heads, now: float, *, age: float = 0.0
    ) -> None:
        self.assembly.add(heads, position, now, age=age)
        self._fed = max(self._fed, following)

    def _remember(self, now: float, now_ns: int) -> None:
        """What the assembler should know of runs that an earlier process judged."""
        limits, journal = self.assembly.limits, self._journal()
        recent = self._access.patiently(lambda: self._store.recent(limits.remembered))
        self.assembly.remember(
            (bytes.fromhex(run.run_id), self._judgements.standing(run, now, now_ns))
            for run in recent
            if len(run.run_id) == _ID_DIGITS
        )
        for run_id, due_ns in self._access.patiently(self._store.rootless):
            wait = min(max(0.0, (due_ns - now_ns) / 1e9), limits.abandon)  # the clock may have been set
            self.assembly.watch(bytes.fromhex(run_id), now + wait)
        if recent or journal.read_from(START, limit_bytes=1):
            self.assembly.began(now)

    def _send(self, now: float) -> None:
        """Release what is due and give it to the scorer, with what the store has of it already."""
        room = _AT_SCORER - self.assembly.away
        jobs: list[Job] = []
        for cut in self.assembly.due(now, limit=room) if room > 0 else ():
            self._metrics.add("redfirst_cuts_total", reason=cut.reason.value)
            job = self._judgements.job(cut)
            if job is not None:
                jobs.append(job)
        if room > 0 and not self._draining:
            jobs.extend(self._joining.due(now))
        if jobs and self._scoring is not None:
            self._scoring.submit(jobs)

    def _land(self, now: float) -> None:
        """Store what was found. A transaction that fails is tried again, and nothing is forgotten meanwhile."""
        found = self._judgements.found
        if not found:
            self._save(now)
            return
        if self._judgements.away and now - self._judgements.gathering_since < self._gather():
            return
        cursor = self._cursor(without={one.cut.trace_id for one in found if one.cut is not None})
        whole = [one for one in found if one.landing is not None]
        try:
            landed = self._store.land(
                [one.landing for one in whole if one.landing is not None],
                cursor=cursor,
                outbox=self._destinations,
                joined=[name for one in found for name in one.joined],
            )
        except sqlite3.Error as problem:
            self._access.failed("written", problem)
            time.sleep(_TICK)
            return
        self._access.worked()
        self._saved, self._saved_at = cursor, now
        found.clear()
        for one, result in zip(whole, landed, strict=True):
            if one.landing is not None:
                self._landed(one.landing, one.cut, result)

    def _landed(self, landing: Landing, cut: Cut | None, result: Landed) -> None:
        now = self._clock()
        if cut is not None:
            parked = landing.ending == Stop.PARKED
            standing = Judged(
                late=landing.late if not landing.only_positions else len(self.assembly.limits.again) - 1,
                parked_until=now + self.assembly.limits.park if parked else 0.0,
                aged=cut.reason is CutReason.TOO_OLD,
            )
            self.assembly.landed(cut.trace_id, standing)
            if landing.due_ns is not None and result.new:
                self.assembly.watch(cut.trace_id, now + self.assembly.limits.abandon)
        if not landing.only_positions:
            self._counting.landed(landing, result, None if cut is None else now - cut.last_at)

    def _cursor(self, without: Container[bytes] = ()) -> Position:
        oldest = self.assembly.oldest(without=without)
        return self._fed if oldest is None else min(oldest, self._fed)

    def _save(self, now: float, *, force: bool = False) -> None:
        """Keep the cursor now and then, also when nothing is judged."""
        if not force and now - self._saved_at < _SAVE_EVERY:
            return
        cursor = self._cursor()
        self._saved_at = now
        if cursor == self._saved:
            return
        try:
            self._store.save_cursor(ASSEMBLY, cursor)
        except sqlite3.Error as problem:
            self._access.failed("written", problem)
        else:
            self._access.worked()
            self._saved = cursor


def _heads(note: object) -> Heads:
    return note if isinstance(note, dict) else {}

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
from redfirst.collector_processor.scoring.assembly import Assembly, AssemblyLimits, Cut
from redfirst.collector_processor.scoring.counting import scored
from redfirst.collector_processor.scoring.landing import landing_of, only_positions
from redfirst.collector_processor.scoring.process import Job, Scoring
from redfirst.collector_processor.storing.sqlite import ASSEMBLY
from redfirst.collector_processor.storing.store import Landing, RunState, Store
from redfirst.evaluators.errors import UnreadableInput

Json = Any

_AT_SCORER = 512
"""Runs that may be at the scorer at once; the others wait in the assembler, as heads."""
_TICK = 0.25
_GATHER = 0.02
"""Seconds that a verdict waits for others at the scorer, to share a transaction with them."""
_CHUNK = 32 << 20
_SAVE_EVERY = 1.0


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
    ) -> None:
        """``destinations`` are the names that get an outbox row for every version of a run."""
        self.assembly = Assembly(limits)
        self.replaying = True
        """True until the journal has been read up to where this process began."""
        self._journal = journal
        self._store = store
        self._metrics = metrics
        self._access = StoreAccess(metrics)
        self._destinations = tuple(destinations)
        self._scoring: Scoring | None = None
        self._lock = threading.Condition()
        self._fed = self._begun_at = START
        self._saved: Position | None = None
        self._saved_at = 0.0
        self._batches: list[list[tuple[Position, Position, Heads]]] = []
        self._answers: list[_Answered] = []
        self._cuts: dict[str, Cut] = {}
        self._landings: list[tuple[Landing, Cut]] = []
        self._gathering_since = 0.0
        self._draining = False
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)

    def start(self, scoring: Scoring) -> None:
        """Read the journal from the cursor and go on from there. Call it before anything is appended."""
        self._scoring = scoring
        self._begun_at = self._journal().end
        self._thread.start()

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
        due = [cut.due_at for cut in list(self._cuts.values())]
        waiting = self.assembly.next_due()
        if waiting is not None:
            due.append(waiting)
        return max(0.0, time.monotonic() - min(due)) if due else 0.0

    def _run(self) -> None:
        if not self._replay():
            return
        while True:
            with self._lock:
                self._lock.wait_for(self._something, self._until_next(time.monotonic()))
                batches, self._batches = self._batches, []
                answers, self._answers = self._answers, []
                draining = self._draining
            now = time.monotonic()
            for batch in batches:
                for position, following, heads in batch:
                    self._feed(position, following, heads, now)
            for answered in answers:
                self._take(answered)
            self._send(now)
            self._land(now)
            if draining and not self._cuts and not self._landings and not self._batches:
                self._save(now, force=True)
                return

    def _something(self) -> bool:
        """Whether there is something to do before the time comes for it."""
        return bool(self._batches or self._answers or (self._draining and not self._cuts))

    def _until_next(self, now: float) -> float:
        if self._landings:
            return _GATHER
        due = self.assembly.next_due()
        if due is None or self.assembly.away >= _AT_SCORER:
            return _TICK
        return min(_TICK, max(0.001, due - now))

    def _replay(self) -> bool:
        """Read what no stored verdict covers; False when it was told to stop meanwhile. Timers begin anew: time that
        the service was down is no silence."""
        recent = self._access.patiently(lambda: self._store.recent(self.assembly.limits.remembered))
        self.assembly.remember((bytes.fromhex(run_id), times) for run_id, times in recent)
        journal = self._journal()
        position = self._access.patiently(lambda: self._store.cursor(ASSEMBLY)) or START
        end = self._begun_at
        while position < end:
            if self._draining:
                return False
            chunk = journal.read_from(position, limit_bytes=_CHUNK)
            now, wall = time.monotonic(), time.time_ns()
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

    def _send(self, now: float) -> None:
        """Release what is due and give it to the scorer, with what the store has of it already."""
        room = _AT_SCORER - self.assembly.away
        jobs: list[Job] = []
        for cut in self.assembly.due(now, limit=room) if room > 0 else ():
            self._metrics.add("redfirst_cuts_total", reason=cut.reason.value)
            job = self._job(cut)
            if job is not None:
                jobs.append(job)
        if jobs and self._scoring is not None:
            self._scoring.submit(jobs)

    def _job(self, cut: Cut) -> Job | None:
        run_id = cut.trace_id.hex()
        known = self._access.patiently(lambda: self._store.known(run_id))
        positions = set(cut.positions)
        if known is not None:
            nothing_new = positions <= known.positions
            if known.state is RunState.DELETED or nothing_new:
                outcome = "stored_before" if nothing_new and known.positions else "deleted"
                self._metrics.add("redfirst_late_total", outcome=outcome)
                self.assembly.landed(cut.trace_id, known.version)
                return None
            if known.version >= len(self.assembly.limits.again):
                self._metrics.add("redfirst_late_total", outcome="version_cap")
                self._landings.append((only_positions(cut), cut))
                return None
            self._metrics.add("redfirst_late_total", outcome="rescored")
            positions |= known.positions
        job = Job(run_id=run_id, positions=sorted(positions))
        self._cuts[run_id] = cut
        return job

    def _take(self, answered: _Answered) -> None:
        cut = self._cuts.pop(answered.job.run_id)
        answer = answered.answer
        if answer["state"] == RunState.UNSCORED:
            self._metrics.add("redfirst_unscored_total", reason=answer.get("reason", "unknown"))
        now_ns = time.time_ns()
        age_ns = int((time.monotonic() - cut.first_at) * 1e9)
        landing = landing_of(cut, answered.job, answer, arrived_ns=now_ns - age_ns, judged_ns=now_ns)
        if not self._landings:
            self._gathering_since = time.monotonic()
        self._landings.append((landing, cut))

    def _land(self, now: float) -> None:
        """Store what was found. A transaction that fails is tried again, and nothing is forgotten meanwhile."""
        if not self._landings:
            self._save(now)
            return
        if self._cuts and now - self._gathering_since < _GATHER:
            return
        away = {cut.trace_id for _, cut in self._landings}
        cursor = self._cursor(without=away)
        try:
            landed = self._store.land(
                [landing for landing, _ in self._landings], cursor=cursor, outbox=self._destinations
            )
        except sqlite3.Error as problem:
            self._access.failed("written", problem)
            time.sleep(_TICK)
            return
        self._access.worked()
        self._saved, self._saved_at = cursor, now
        done = time.monotonic()
        for (landing, cut), result in zip(self._landings, landed, strict=True):
            self.assembly.landed(cut.trace_id, result.version)
            if landing.only_positions:
                continue
            self._metrics.add("redfirst_landed_total", state=landing.state.value)
            self._metrics.observe("redfirst_trace_score_duration_seconds", done - cut.last_at)
            if landing.state is RunState.SCORED and result.new:
                self._count(landing, result.was_flagged)
        self._landings = []

    def _count(self, landing: Landing, was_flagged: bool | None) -> None:
        if was_flagged is None:
            scored(self._metrics, landing)
        else:
            changed = str(was_flagged != landing.flagged).lower()
            self._metrics.add("redfirst_traces_rescored_total", changed=changed)

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

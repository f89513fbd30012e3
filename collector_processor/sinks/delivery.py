"""Telling backends: one thread for each, from its rows in the store's outbox, until it took them.

A run is told as it is now: a row of a version that was superseded meanwhile is done without being sent. What a
backend may hold of a run is kept before it is sent, so that whatever this process dies of, it can be taken back.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import wait_before
from redfirst.collector_processor.scoring.slices import joined
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.sinks.backends import Backend
from redfirst.collector_processor.sinks.root import NoSpans, Root, root_of
from redfirst.collector_processor.sinks.scores import scores_of
from redfirst.collector_processor.sinks.sending import Sending
from redfirst.collector_processor.sinks.sink import NotTaken, Send, Told
from redfirst.collector_processor.storing.store import OutboxRow, RunState, Store, StoredRun, StoreReader
from redfirst.evaluators.errors import UnreadableInput

_TICK = 0.25
_ROWS = 64


class Teller:
    """The worker of one backend."""

    def __init__(
        self,
        backend: Backend,
        store: Store,
        reader: StoreReader,
        spans: Callable[[], SpanSource],
        metrics: Metrics,
        *,
        say: Callable[[str], None] = lambda _: None,
        send: Send | None = None,
    ) -> None:
        """``send`` stands for the connection to the backend."""
        self.backend = backend
        self._store = store
        self._reader = reader
        self._spans = spans
        self._metrics = metrics
        self._say = say
        self._sending = Sending(backend.url, backend.headers, timeout=backend.timeout)
        self._send: Send = send or self._sending
        self._failures = 0
        self._paused_until = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink {backend.name}", daemon=True)

    def begin(self) -> None:
        """Start."""
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the run it is at."""
        self._stop.set()

    def join(self, timeout: float) -> None:
        """Wait until it has ended, so long at most."""
        self._thread.join(timeout)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        source = self._spans()
        try:
            while not self._stop.is_set():
                try:
                    busy = self.round(source, time.time())
                except sqlite3.Error:
                    # a row that was sent and not ticked off is sent again, which changes nothing
                    self._metrics.add("redfirst_store_failures_total")
                    busy = False
                if not busy:
                    self._stop.wait(_TICK)
        finally:
            source.close()
            self._sending.close()

    def round(self, source: SpanSource, now: float) -> bool:
        """Tell what is due at this time (Unix seconds), as far as the backend takes it; whether anything was due."""
        if now < self._paused_until:
            return False
        rows = self._store.outbox_due(self.backend.destination, int(now * 1e9), _ROWS)
        for row in rows:
            if self._stop.is_set() or not self._deliver(row, source, now):
                break
        return bool(rows)

    def _deliver(self, row: OutboxRow, source: SpanSource, now: float) -> bool:
        """Tell one run; False when the backend cannot be had for now."""
        try:
            outcome = self._tell(row, source)
        except NotTaken as problem:
            return self._failed(row, problem, now)
        except (RecordLost, UnreadableInput, NoSpans) as problem:
            self._give_up(row, "no_spans", str(problem))
            return True
        except sqlite3.Error:
            raise
        except Exception as problem:  # noqa: BLE001 - one run that cannot be told must not end the telling of the others
            said = f"{type(problem).__name__}: {problem}"
            return self._failed(row, NotTaken("our_fault", again=True, said=said), now)
        self._count(outcome, "ok")
        self._store.outbox_done([row.seq])
        if self._failures:
            self._failures = 0
            self._say(f"sink {self.backend.name}: takes scores again")
        return True

    def _tell(self, row: OutboxRow, source: SpanSource) -> str:
        sink, name = self.backend.sink, self.backend.destination
        kept = self._store.told(name, row.run_id)
        before = None if kept is None else Told.from_json(kept)
        latest = self._latest(row.run_id)
        if latest is None or latest.record is None:
            if before is None:
                return "gone"
            sink.withdraw(before, self._send)
            self._store.tell(name, row.run_id, None)
            return "withdrawn"
        if self.backend.tenants is not None and latest.tenant not in self.backend.tenants:
            return "other_tenant"
        if latest.version > row.version:
            return "superseded"
        about = scores_of(latest, self._root(row.run_id, source))
        now = sink.told(about)
        if before is not None and before.moved(now):
            sink.withdraw(before, self._send)
            before = None
        held = now if before is None else _both(before, now)
        self._store.tell(name, row.run_id, held.to_json())
        sink.tell(about, held, self._send)
        self._store.tell(name, row.run_id, now.to_json())
        return "delivered"

    def _root(self, run_id: str, source: SpanSource) -> Root:
        """The root of the run's last trace."""
        traces = self._reader.traces_of(run_id)
        if not traces:
            raise NoSpans(f"The traces of run {run_id} are not there any more.")
        pieces = source.slices(bytes.fromhex(traces[-1]), self._reader.positions(traces[-1]))
        return root_of(joined(pieces["traces"]))

    def _latest(self, run_id: str) -> StoredRun | None:
        versions = self._reader.versions(run_id)
        judged = versions and versions[-1].state in (RunState.SCORED, RunState.UNSCORED)
        return versions[-1] if judged else None

    def _failed(self, row: OutboxRow, problem: NotTaken, now: float) -> bool:
        age = now - row.created_ns / 1e9
        if not problem.again or age > self.backend.hold:
            self._give_up(row, problem.reason, str(problem))
            return True
        self._count("again", problem.reason)
        if problem.whole:
            if not self._failures:
                self._say(f"sink {self.backend.name}: not delivered ({problem.reason}); trying again")
            self._failures += 1
            wait = self._wait(self._failures, problem.after)
            self._paused_until = now + wait
            return False
        wait = self._wait(row.attempts + 1, problem.after)
        self._store.outbox_later(row.seq, int((now + wait) * 1e9), problem.reason)
        return True

    def _wait(self, attempt: int, after: float | None) -> float:
        return max(min(self.backend.longest_wait, wait_before(attempt, None)), after or 0.0)

    def _give_up(self, row: OutboxRow, reason: str, what: str) -> None:
        self._count("given_up", reason)
        self._say(f"sink {self.backend.name}: run {row.run_id} is not told: {what}")
        self._store.outbox_done([row.seq])

    def _count(self, outcome: str, reason: str) -> None:
        self._metrics.add("redfirst_sink_runs_total", sink=self.backend.name, outcome=outcome, reason=reason)


def _both(before: Told, now: Told) -> Told:
    """What a backend may hold while ``now`` is being sent to it."""
    return replace(
        now,
        names=tuple(dict.fromkeys((*before.names, *now.names))),
        places=tuple(dict.fromkeys((*before.places, *now.places))),
    )


class Sinks:
    """All backends, as a ``Companion`` of the service."""

    def __init__(self, backends: Sequence[Backend], *, say: Callable[[str], None] = lambda _: None) -> None:
        self.destinations = tuple(backend.destination for backend in backends)
        self._backends = tuple(backends)
        self._say = say
        self._tellers: tuple[Teller, ...] = ()

    def start(self, parts: Parts) -> None:
        """Start every worker."""
        self._tellers = tuple(
            Teller(backend, parts.store, parts.reader, parts.spans, parts.metrics, say=self._say)
            for backend in self._backends
        )
        for teller in self._tellers:
            teller.begin()

    def stop(self, timeout: float) -> None:
        """End every worker; what was not taken is told after the next start."""
        for teller in self._tellers:
            teller.stop()
        deadline = time.monotonic() + timeout
        for teller in self._tellers:
            teller.join(max(0.0, deadline - time.monotonic()))

    def trouble(self) -> str | None:
        """A worker that has ended; a backend that is down is no trouble of ours."""
        ended = [teller.backend.name for teller in self._tellers if not teller.alive]
        return f"telling {', '.join(ended)} has ended" if ended else None

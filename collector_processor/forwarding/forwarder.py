"""Every accepted request to every destination, byte for byte: a cursor and a worker each, so that none waits for
another. A cursor moves after delivery, so that whatever this process dies of, each request is sent at least once.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.forwarding.destinations import CURSOR, Destination
from redfirst.collector_processor.forwarding.export import Export
from redfirst.collector_processor.forwarding.refused import FOLDER, DeadLetters, halves
from redfirst.collector_processor.journal.format import START, Position, Signal
from redfirst.collector_processor.journal.reading import JournalCursor, Placed
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.posting.answers import Fate, Reading, wait_before
from redfirst.collector_processor.storing.sqlite import ASSEMBLY

RETIRED = Position(2**62, 0)
"""The cursor of a destination that is configured no more: beyond every record, so that retention need not wait."""
_CHUNK = 4 << 20
_TICK = 0.25
_SAVE_EVERY = 0.5
_PARTS = 64
"""How often one journalled request may be halved: a destination that refuses everything is not asked for ever."""


class Cursors(Protocol):
    """Keeps positions, durably. What ``Store`` does."""

    def cursor(self, name: str) -> Position | None: ...

    def save_cursor(self, name: str, position: Position) -> None: ...


class Forwarder:
    """The worker of one destination."""

    def __init__(
        self,
        destination: Destination,
        journal: JournalCursor,
        cursors: Cursors,
        letters: DeadLetters,
        metrics: Metrics,
        *,
        say: Callable[[str], None] = lambda _: None,
        wait: Callable[[int, float | None], float] = wait_before,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``wait`` gives the seconds before another try, from its number and what the destination asked for; ``clock`` is
        the one that requests' arrivals are dated by."""
        self.destination = destination
        self.waiting_since_ns: int | None = None
        """Arrival of the oldest request that it has not taken."""
        self._journal = journal
        self._cursors = cursors
        self._letters = letters
        self._metrics = metrics
        self._say = say
        self._wait = wait
        self._clock = clock
        self._export = Export(destination)
        self._position = START
        self._saved = START
        self._saved_at = 0.0
        self._lag = 0.0
        self._in_trouble = False
        self._promised = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"forward {destination.name}", daemon=True)

    def begin(self) -> None:
        """Find where to go on and start. A new destination gets all of the runs that are not judged yet, and what
        comes after them; its place is kept before anything more is accepted."""
        known = self._cursors.cursor(self.destination.cursor)
        if known is None or known >= RETIRED:
            judged = START if self.destination.backlog else self._cursors.cursor(ASSEMBLY)
            known = judged or START
            self._cursors.save_cursor(self.destination.cursor, known)
        self._position = self._saved = known
        self._thread.start()

    def stop(self) -> None:
        """Ask it to end after the request it is at."""
        self._stop.set()

    def join(self, timeout: float) -> bool:
        """Wait until it has ended; False when it has not."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._step()
        finally:
            self._save(force=True)
            self._export.close()

    def _step(self) -> None:
        try:
            chunk = self._journal.read_from(self._position, limit_bytes=_CHUNK)
        except OSError as problem:
            self._count("redfirst_forward_failures_total", reason="journal")
            self._trouble(f"the journal cannot be read: {problem.strerror or type(problem).__name__}")
            self._stop.wait(_TICK)
            return
        if not chunk:
            self._behind(None)
            self._save(force=True)
            if self._promised:
                self._stop.wait(
                    _TICK
                )  # there was said to be something: it is damaged, or the journal is closing
            self._promised = self._journal.wait_beyond(self._position, _TICK)
            return
        self._promised = False
        missing = chunk[0].position.segment - self._position.segment - 1
        if self._position > START and missing > 0:
            self._count("redfirst_forward_missing_segments_total", missing)
        for placed in chunk:
            if self.destination.takes(placed.record):
                self._behind(placed.record.arrival_ns)
                if not self._deliver(placed):
                    return
            self._position = placed.following
            self._save()

    def _deliver(self, placed: Placed) -> bool:
        """Send one request, in parts where it is refused as a whole; False when told to stop before it was done."""
        signal = placed.record.signal
        parts, halvings = [placed.record.body], 0
        while parts:
            body = parts.pop()
            reading = self._answer(body, signal)
            if reading is None and self._stop.is_set():
                return False
            if reading is None:
                self._count("redfirst_forward_dropped_total", reason="held_too_long")
                continue
            if reading.fate is Fate.DELIVERED:
                if reading.rejected:
                    self._count("redfirst_forward_rejected_total", reading.rejected, signal=signal)
                continue
            split = halves(body, signal) if reading.divisible and halvings < _PARTS else None
            if split is not None:
                halvings += 1
                parts += reversed(split)
                continue
            self._letters.keep(placed, body, reading, at_ns=time.time_ns())
            self._trouble(f"refused for good ({reading.reason}); kept in {self._letters.folder}")
        return True

    def _answer(self, body: bytes, signal: Signal) -> Reading | None:
        """The final answer to one request, after as many tries as it takes; None when told to stop, or when a
        destination that takes nothing was waited for long enough."""
        packed = self._export.packed(body)
        attempt = 0
        while not self._stop.is_set() and not (self._in_trouble and self._lag > self.destination.hold):
            attempt += 1
            reading = self._export.send(packed, signal)
            self._count("redfirst_forward_requests_total", outcome=reading.fate.value, reason=reading.reason)
            if reading.fate is Fate.DELIVERED:
                self._well()
                return reading
            if reading.fate is Fate.REFUSED or (reading.tries is not None and attempt >= reading.tries):
                return reading
            self._trouble(f"not delivered ({reading.reason}); trying again")
            self._stop.wait(self._wait(attempt, reading.after))
            self._behind(self.waiting_since_ns)
        return None

    def _save(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if self._position == self._saved or (not force and now - self._saved_at < _SAVE_EVERY):
            return
        try:
            self._cursors.save_cursor(self.destination.cursor, self._position)
        except sqlite3.Error:
            # what was delivered since is delivered again after a crash, and only then
            self._count("redfirst_forward_failures_total", reason="store")
            return
        self._saved, self._saved_at = self._position, now

    def _behind(self, arrival_ns: int | None) -> None:
        self.waiting_since_ns = arrival_ns
        lag = 0.0 if arrival_ns is None else max(0.0, self._clock() - arrival_ns / 1e9)
        name, labels = "redfirst_forward_lag_seconds", {"destination": self.destination.name}
        self._count(name, lag - self._metrics.value(name, **labels))
        self._lag = lag

    def _trouble(self, what: str) -> None:
        """Said once until a request is delivered again; the counters have every one."""
        if not self._in_trouble:
            self._in_trouble = True
            self._say(f"forwarding to {self.destination.name}: {what}")

    def _well(self) -> None:
        if self._in_trouble:
            self._in_trouble = False
            self._say(f"forwarding to {self.destination.name}: delivering again")

    def _count(self, name: str, value: float = 1, **labels: str) -> None:
        self._metrics.add(name, value, destination=self.destination.name, **labels)


class Forwarding:
    """All destinations, as a ``Companion`` of the service."""

    destinations: tuple[str, ...] = ()
    """None in the store's outbox: forwarding reads the journal."""

    def __init__(
        self, wanted: Sequence[Destination], home: Path, *, say: Callable[[str], None] = lambda _: None
    ) -> None:
        self._wanted = tuple(wanted)
        self._home = home
        self._say = say
        self._forwarders: tuple[Forwarder, ...] = ()

    def start(self, parts: Parts) -> None:
        """Start every worker. A destination that is configured no more holds nothing in the journal any longer."""
        configured = {destination.cursor for destination in self._wanted}
        for name, position in parts.store.cursors().items():
            if name.startswith(CURSOR) and name not in configured and position < RETIRED:
                parts.store.save_cursor(name, RETIRED)
        self._forwarders = tuple(
            Forwarder(
                destination,
                parts.journal,
                parts.store,
                DeadLetters(self._home / FOLDER / destination.name, destination.name, parts.metrics),
                parts.metrics,
                say=self._say,
            )
            for destination in self._wanted
        )
        for forwarder in self._forwarders:
            forwarder.begin()

    def stop(self, timeout: float) -> None:
        """End every worker; what one is still sending when the time is over is sent again after the next start."""
        for forwarder in self._forwarders:
            forwarder.stop()
        deadline = time.monotonic() + timeout
        for forwarder in self._forwarders:
            forwarder.join(max(0.0, deadline - time.monotonic()))

    def trouble(self) -> str | None:
        """A worker that has ended; a destination that is down is no trouble of ours."""
        ended = [one.destination.name for one in self._forwarders if not one.alive]
        return f"forwarding to {', '.join(ended)} has ended" if ended else None

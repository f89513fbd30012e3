"""The journal: what was acknowledged is on the disk.

Appends from any thread are gathered by one writer; a batch is written and synced once, and only then is the
caller told. A segment whose write or sync failed is never written again: the kernel may have dropped its pages.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.disk import sync_file, sync_folder, write_all
from redfirst.collector_processor.journal.format import (
    SEGMENT_HEADER,
    START,
    Position,
    Record,
    frame,
    segment_path,
    segments,
)
from redfirst.collector_processor.journal.reading import JournalFiles, Placed, end_of_whole_records
from redfirst.collector_processor.metrics import Metrics
from redfirst.evaluators.errors import RedfirstError

QUARANTINE = "quarantine"


class JournalUnavailable(RedfirstError):
    """Nothing can be made durable now; the sender should try again soon."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason
        """A short name for the counter: ``disk``, ``busy``, ``full`` or ``stopping``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalLimits:
    """How the journal batches and how large it may grow."""

    linger: float = 0.005
    """Seconds that a busy writer waits for more before it syncs; an idle one does not wait."""
    batch_bytes: int = 8 << 20
    segment_bytes: int = 64 << 20
    waiting_bytes: int = 256 << 20
    """Accepted but unsynced bytes above which further appends are refused."""
    retry_after: float = 1.0
    """Seconds between attempts to open a new segment after a failure."""


@dataclass(slots=True, eq=False)
class _Entry:
    record: Record
    note: object
    framed: bytes
    done: Future[Position]


Durable = Sequence[tuple[Placed, object]]
"""A synced batch, in order, each with the note it was appended with."""


class Journal:
    """Appends records and gives their positions once they are durable."""

    def __init__(
        self,
        folder: Path,
        *,
        limits: JournalLimits | None = None,
        metrics: Metrics | None = None,
        on_durable: Callable[[Durable], None] | None = None,
    ) -> None:
        """``on_durable`` is called by the writer with every batch, before its senders are told."""
        self.folder = folder
        self.limits = limits or JournalLimits()
        self.metrics = metrics or Metrics()
        self.trouble: str | None = None
        """Why nothing can be written at the moment."""
        self.full: str | None = None
        """Why nothing more may be written until space is made; set by whoever watches the disk."""
        self._on_durable = on_durable
        self._lock = threading.Condition()
        self._waiting: list[_Entry] = []
        self._waiting_bytes = 0
        self._stopping = False
        self._busy = False
        self._file: int | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self._number = max(segments(folder), default=0)
        self._last = Position(self._number, self._salvage(self._number)) if self._number else START
        """Where the newest durable record ends."""
        self._end = Position(self._number + 1, 0)
        self._reader = JournalFiles(folder)
        self._reading = threading.Lock()
        self._writer = threading.Thread(target=self._run, name="journal", daemon=True)
        self._writer.start()

    def append(self, record: Record, note: object = None) -> Future[Position]:
        """Queue a record. The result is there once it is durable; the exception is ``JournalUnavailable``.

        Raises:
            JournalUnavailable: it was not even queued.
        """
        framed = frame(record)
        done: Future[Position] = Future()
        with self._lock:
            if self._stopping:
                raise JournalUnavailable("stopping", "the service is stopping")
            if self.trouble is not None:
                raise JournalUnavailable("disk", self.trouble)
            if self.full is not None:
                raise JournalUnavailable("full", self.full)
            if self._waiting and self._waiting_bytes + len(framed) > self.limits.waiting_bytes:
                raise JournalUnavailable("busy", "too many bytes are waiting to be written")
            self._waiting.append(_Entry(record, note, framed, done))
            self._waiting_bytes += len(framed)
            self._lock.notify_all()
        return done

    @property
    def alive(self) -> bool:
        """Whether its writer runs."""
        return self._writer.is_alive()

    @property
    def end(self) -> Position:
        """Every record before this position is durable."""
        return self._end

    def read_from(self, position: Position, *, limit_bytes: int) -> list[Placed]:
        """Durable records from a position on: at least one, where there is one, then up to the limit."""
        found: list[Placed] = []
        taken = 0
        with self._reading:
            for placed in self._reader.scan(position, self._end):
                found.append(placed)
                taken += len(placed.record.body)
                if taken >= limit_bytes:
                    break
        return found

    def wait_beyond(self, position: Position, timeout: float) -> bool:
        """Wait until something at or after the position is durable; False when the time ran out."""
        with self._lock:
            return self._lock.wait_for(lambda: self._last > position or self._stopping, timeout)

    @property
    def damaged(self) -> int:
        """Stretches of bytes that readers had to pass over."""
        return self._reader.damaged

    def remove(self, number: int) -> None:
        """Remove a segment that is not being written to."""
        if number < self._end.segment:
            segment_path(self.folder, number).unlink(missing_ok=True)

    def close(self) -> None:
        """Write what is waiting, then stop. Later appends are refused."""
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        self._writer.join()
        with self._reading:
            self._reader.close()

    def _run(self) -> None:
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._waiting or self._stopping or self.trouble is not None)
                if self.trouble is not None and not self._waiting and not self._stopping:
                    self._lock.wait(self.limits.retry_after)
                if self._busy and not self._stopping:
                    self._lock.wait_for(self._enough, self.limits.linger)
                waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
                # A sender that has gone has cancelled; from here on it cannot.
                batch = [entry for entry in waiting if entry.done.set_running_or_notify_cancel()]
                finished = self._stopping and not batch
            if finished:
                self._close_segment()
                return
            if self.trouble is not None and not self._mend():
                self._refuse(batch, self.trouble)
            elif batch:
                self._commit(batch)
            self._busy = len(batch) > 1

    def _enough(self) -> bool:
        return self._waiting_bytes >= self.limits.batch_bytes or self._stopping

    def _commit(self, batch: list[_Entry]) -> None:
        begun = time.perf_counter()
        try:
            file = self._segment()
            write_all(file, b"".join(entry.framed for entry in batch))
            written = time.perf_counter()
            sync_file(file)
        except OSError as problem:
            self._abandon(problem)
            self._refuse(batch, self.trouble or "")
            return
        synced = time.perf_counter()
        self.metrics.observe("redfirst_journal_write_seconds", written - begun)
        self.metrics.observe("redfirst_journal_fsync_seconds", synced - written)
        self.metrics.add("redfirst_journal_records_total", len(batch))
        position = self._end
        durable: list[tuple[Placed, object]] = []
        for entry in batch:
            following = Position(position.segment, position.offset + len(entry.framed))
            durable.append((Placed(position, entry.record, following), entry.note))
            position = following
        with self._lock:
            self._end = self._last = position
            self._lock.notify_all()
        if self._on_durable is not None:
            self._on_durable(durable)
        for entry, (placed, _) in zip(batch, durable, strict=True):
            entry.done.set_result(placed.position)
        if position.offset >= self.limits.segment_bytes:
            self._close_segment()

    def _segment(self) -> int:
        """The file that is written to; a new one is durable itself before anything is written to it."""
        if self._file is None:
            number = self._number + 1
            file = os.open(
                segment_path(self.folder, number),
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0),
                0o600,
            )
            self._number = number
            try:
                write_all(file, SEGMENT_HEADER)
                sync_file(file)
                sync_folder(self.folder)
            except OSError:
                os.close(file)
                raise
            self._file = file
            with self._lock:
                self._end = Position(number, len(SEGMENT_HEADER))
        return self._file

    def _abandon(self, problem: OSError) -> None:
        """Give the segment up, with what was not acknowledged cut off where the disk still allows it."""
        self.metrics.add("redfirst_journal_failures_total", reason=problem.strerror or type(problem).__name__)
        with self._lock:
            self.trouble = f"the journal cannot be written: {problem.strerror or problem}"
        if self._file is not None:
            try:
                os.ftruncate(self._file, self._end.offset)
            except OSError:
                self.metrics.add("redfirst_journal_failures_total", reason="truncate")
            self._close_segment()

    def _mend(self) -> bool:
        try:
            self._segment()
        except OSError as problem:
            self._abandon(problem)
            return False
        with self._lock:
            self.trouble = None
        return True

    def _refuse(self, batch: list[_Entry], what: str) -> None:
        for entry in batch:
            entry.done.set_exception(JournalUnavailable("disk", what))

    def _close_segment(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
            with self._lock:
                self._end = Position(self._number + 1, 0)

    def _salvage(self, number: int) -> int:
        """Cut a torn tail off a segment and keep it aside; gives where its whole records end."""
        files = JournalFiles(self.folder)
        end = end_of_whole_records(files, number)
        files.close()
        path = segment_path(self.folder, number)
        size = path.stat().st_size
        if size <= end:
            return end
        aside = self.folder / QUARANTINE
        aside.mkdir(exist_ok=True)
        with path.open("r+b") as file:
            file.seek(end)
            (aside / f"{number:010d}-{end}.bin").write_bytes(file.read())
            file.truncate(end)
            sync_file(file.fileno())
        self.metrics.add("redfirst_journal_quarantined_bytes_total", size - end)
        return end

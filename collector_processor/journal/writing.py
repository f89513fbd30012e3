"""The journal: what was acknowledged is on the disk.

Appends from any thread are gathered by one writer; a batch is written and synced once, and only then is the
caller told. A segment whose write or sync failed is never written again: the kernel may have dropped its pages.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.disk import make_folder
from redfirst.collector_processor.journal.budget import DiskBudget
from redfirst.collector_processor.journal.format import (
    SEGMENT_START,
    START,
    Position,
    Record,
    format_of,
    frame,
    segment_path,
    segments,
)
from redfirst.collector_processor.journal.quarantine import Quarantine
from redfirst.collector_processor.journal.reading import JournalFiles, Placed
from redfirst.collector_processor.journal.segment import OpenSegment
from redfirst.collector_processor.metrics import Metrics
from redfirst.evaluators.errors import RedfirstError


class JournalRefused(RedfirstError):
    """The folder cannot be used as a journal."""


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
    """Bodies that share a sync; a larger one is synced alone."""
    segment_bytes: int = 64 << 20
    waiting_bytes: int = 256 << 20
    """Accepted but unsynced bytes above which further appends are refused."""
    retry_after: float = 1.0
    """Seconds between attempts to open a new segment after a failure."""
    most_bytes: int | None = None
    """Size of all segments above which appends are refused."""
    min_free: int = 0
    """Free bytes of the disk below which appends are refused."""


@dataclass(slots=True, eq=False)
class _Entry:
    record: Record
    note: object
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
        after: Position = START,
    ) -> None:
        """``on_durable`` is called by the writer with every batch, before its senders are told. Records are placed
        beyond ``after``, where readers have been, even when the segments are gone.

        Raises:
            JournalTooNew: a segment was written by a newer version.
            JournalRefused: the folder cannot be used.
        """
        self.folder = folder
        self.limits = limits or JournalLimits()
        self.metrics = metrics or Metrics()
        self.quarantine = Quarantine(folder, self.metrics)
        self.trouble: str | None = None
        """Why nothing can be written at the moment."""
        self._on_durable = on_durable
        self._lock = threading.Condition()
        self._waiting: deque[_Entry] = deque()
        self._waiting_bytes = 0
        self._wanted = 1
        self._stopping = False
        self._busy = False
        self._segment: OpenSegment | None = None
        self._budget = DiskBudget(folder, most=self.limits.most_bytes, min_free=self.limits.min_free)
        self.bytes = 0
        """Size of all segments."""
        self._last = self._taken_over()
        """Where the newest durable record ends."""
        self._number = max(self._last.segment, after.segment if after.offset else after.segment - 1)
        self._end = Position(self._number + 1, 0)
        self._reader = JournalFiles(folder, on_damage=self.quarantine.keep_quietly)
        self._reading = threading.Lock()
        self._writer = threading.Thread(target=self._run, name="journal", daemon=True)
        self._writer.start()

    def append(self, record: Record, note: object = None) -> Future[Position]:
        """Queue a record. The result is there once it is durable; the exception is ``JournalUnavailable``.

        Raises:
            JournalUnavailable: it was not even queued.
        """
        done: Future[Position] = Future()
        size = len(record.body)
        full = self._budget.refusal(self.bytes, self._waiting_bytes + size)
        with self._lock:
            if self._stopping:
                raise JournalUnavailable("stopping", "the service is stopping")
            if self.trouble is not None:
                raise JournalUnavailable("disk", self.trouble)
            self._wanted = size if full is not None else 1
            if full is not None:
                raise JournalUnavailable("full", full)
            if self._waiting and self._waiting_bytes + size > self.limits.waiting_bytes:
                raise JournalUnavailable("busy", "too many bytes are waiting to be written")
            self._waiting.append(_Entry(record, note, done))
            self._waiting_bytes += size
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

    @property
    def full(self) -> str | None:
        """Why what was refused last may still not be written; None when there is room for it."""
        return self._budget.refusal(self.bytes, self._wanted)

    @property
    def room(self) -> int:
        """Bytes that may be written before senders are asked to wait."""
        return self._budget.room(self.bytes)

    @property
    def damaged(self) -> int:
        """Stretches of bytes that readers had to pass over."""
        return self._reader.damaged

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

    def remove(self, number: int) -> None:
        """Remove a segment that is not being written to."""
        path = segment_path(self.folder, number)
        if number < self._end.segment and path.exists():
            size = path.stat().st_size
            path.unlink()
            with self._lock:
                self.bytes -= size

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
                batch = self._taken()
                finished = self._stopping and not batch and not self._waiting
            if finished:
                self._close_segment()
                return
            if self.trouble is not None and not self._mend():
                self._refuse(batch, "disk", self.trouble)
            elif batch:
                self._commit(batch)
            self._busy = len(batch) > 1

    def _enough(self) -> bool:
        return self._waiting_bytes >= self.limits.batch_bytes or self._stopping

    def _taken(self) -> list[_Entry]:
        """What is written next. A sender that has gone has cancelled; from here on it cannot."""
        batch: list[_Entry] = []
        size = 0
        while self._waiting and (
            not size or size + len(self._waiting[0].record.body) <= self.limits.batch_bytes
        ):
            entry = self._waiting.popleft()
            self._waiting_bytes -= len(entry.record.body)
            if entry.done.set_running_or_notify_cancel():
                batch.append(entry)
                size += len(entry.record.body)
        return batch

    def _commit(self, batch: list[_Entry]) -> None:
        try:
            segment = self._opened()
            durable, frames = _placed(batch, segment.end)
            length = sum(map(len, frames))
            full = self._budget.refusal(self.bytes, length)
            if full is not None:
                self._refuse(batch, "full", full)
                return
            self._write(segment, frames, length)
        except OSError as problem:
            self._abandon(problem)
            self._refuse(batch, "disk", self.trouble or "")
            return
        self.metrics.add("redfirst_journal_records_total", len(batch))
        self.metrics.add("redfirst_journal_written_bytes_total", length)
        self.metrics.add("redfirst_journal_body_bytes_total", sum(len(entry.record.body) for entry in batch))
        with self._lock:
            self.bytes += length
            self._end = self._last = segment.end
            self._lock.notify_all()
        if self._on_durable is not None:
            self._on_durable(durable)
        for entry, (placed, _) in zip(batch, durable, strict=True):
            entry.done.set_result(placed.position)
        if segment.durable >= self.limits.segment_bytes:
            self._close_segment()

    def _write(self, segment: OpenSegment, frames: list[bytes], length: int) -> None:
        begun = time.perf_counter()
        segment.write(b"".join(frames))
        written = time.perf_counter()
        segment.sync(length)
        synced = time.perf_counter()
        self.metrics.observe("redfirst_journal_write_seconds", written - begun)
        self.metrics.observe("redfirst_journal_fsync_seconds", synced - written)

    def _opened(self) -> OpenSegment:
        if self._segment is None:
            number = self._number + 1
            try:
                segment = self._segment = OpenSegment(self.folder, number)
            finally:
                if segment_path(self.folder, number).exists():
                    self._number = number  # what was begun and could not be removed is left alone
            with self._lock:
                self._end = segment.end
                self.bytes += segment.durable
        return self._segment

    def _abandon(self, problem: OSError) -> None:
        """Give the segment up, with what was not acknowledged cut off where the disk still allows it."""
        self.metrics.add("redfirst_journal_failures_total", reason=problem.strerror or type(problem).__name__)
        with self._lock:
            self.trouble = f"the journal cannot be written: {problem.strerror or problem}"
        segment, self._segment = self._segment, None
        if segment is None:
            return
        removed = False
        try:
            removed = segment.abandon()
        except OSError:
            self.metrics.add("redfirst_journal_failures_total", reason="truncate")
        with self._lock:
            if removed:
                self._number -= 1
                self.bytes -= segment.durable
            self._end = Position(self._number + 1, 0)

    def _mend(self) -> bool:
        try:
            self._opened().probe()
        except OSError as problem:
            self._abandon(problem)
            return False
        with self._lock:
            self.trouble = None
        return True

    def _refuse(self, batch: list[_Entry], reason: str, what: str) -> None:
        for entry in batch:
            entry.done.set_exception(JournalUnavailable(reason, what))

    def _close_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None
            with self._lock:
                self._end = Position(self._number + 1, 0)

    def _taken_over(self) -> Position:
        """Take over what earlier processes left; gives where its last whole record ends."""
        try:
            make_folder(self.folder)
            there = segments(self.folder)
            sizes = [_checked(self.folder, number) for number in there]
            end = self.quarantine.cut_tail(there[-1]) if there else START
        except OSError as problem:
            raise JournalRefused(
                f"Journal {self.folder} cannot be used ({problem.strerror}): see that it is a folder on a disk that works, "
                "or give another --home."
            ) from problem
        self.bytes = sum(sizes[:-1]) + (min(sizes[-1], end.offset) if sizes else 0)
        return end


def _placed(batch: list[_Entry], position: Position) -> tuple[list[tuple[Placed, object]], list[bytes]]:
    """The records of a batch where they will be, with their notes; and their bytes."""
    durable: list[tuple[Placed, object]] = []
    frames: list[bytes] = []
    for entry in batch:
        framed = frame(entry.record, position)
        following = Position(position.segment, position.offset + len(framed))
        durable.append((Placed(position, entry.record, following), entry.note))
        frames.append(framed)
        position = following
    return durable, frames


def _checked(folder: Path, number: int) -> int:
    """The size of a segment.

    Raises:
        JournalTooNew: it was written by a newer version.
    """
    path = segment_path(folder, number)
    with path.open("rb") as file:
        format_of(file.read(SEGMENT_START), number)
    return path.stat().st_size

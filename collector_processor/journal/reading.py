"""Reading the journal: by position, or onwards from one, past what is damaged."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from redfirst.collector_processor.journal.format import (
    FRAME_HEADER,
    MARK,
    SEGMENT_HEADER,
    BrokenFrame,
    Position,
    Record,
    frame_length,
    segment_path,
    segments,
    unframe,
)
from redfirst.evaluators.errors import RedfirstError

_OPEN_FILES = 16
_STEP = 1 << 20


class RecordLost(RedfirstError):
    """A position that no longer holds a record: retention removed its segment, or the disk damaged it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A record, where it begins, and where the next one does."""

    position: Position
    record: Record
    following: Position


class JournalCursor(Protocol):
    """Reads the journal onwards, as a forwarder does. Any number of cursors may read at once.

    ``read_from`` gives only what is durable, in the order it was accepted, each record whole; the position to
    keep (``Store.save_cursor``) is ``following`` of the last record that was dealt with. A position whose segment
    retention removed continues at the oldest record there is. ``wait_beyond`` returns at once when there is
    something to read.
    """

    def read_from(self, position: Position, *, limit_bytes: int) -> list[Placed]: ...

    def wait_beyond(self, position: Position, timeout: float) -> bool: ...


class JournalFiles:
    """The segments of a folder, from this or any other process. Not safe for two threads at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.damaged = 0
        """Stretches of bytes that held no whole record and were passed over."""
        self._files: OrderedDict[int, int] = OrderedDict()

    def at(self, position: Position) -> Placed:
        """The record at a position.

        Raises:
            RecordLost: there is none.
        """
        try:
            return self._read(position)
        except FileNotFoundError as problem:
            raise RecordLost(
                f"Journal segment {position.segment} is gone: retention has removed it."
            ) from problem
        except BrokenFrame as problem:
            raise RecordLost(
                f"Journal segment {position.segment} is damaged at byte {position.offset}: {problem}."
            ) from problem

    def scan(self, start: Position, end: Position | None = None) -> Iterator[Placed]:
        """Every whole record from a position on, and before ``end`` where that is given.

        What is broken is passed over and counted, except at the end of the last segment, where a record may
        still be being written.
        """
        numbers = [number for number in segments(self.folder) if number >= start.segment]
        for number in numbers:
            position = max(start, Position(number, len(SEGMENT_HEADER)))
            while end is None or position < end:
                try:
                    placed = self._read(position)
                except FileNotFoundError:
                    break  # removed by retention while we read
                except BrokenFrame as problem:
                    again = self._next_mark(position)
                    if again is None:
                        last = number == numbers[-1]
                        self.damaged += not (problem.torn and last) and not self._at_end(position)
                        break
                    self.damaged += 1
                    position = again
                    continue
                yield placed
                position = placed.following

    def close(self) -> None:
        """Close the files; they are opened again when read."""
        while self._files:
            os.close(self._files.popitem()[1])

    def _read(self, position: Position) -> Placed:
        file = self._file(position.segment)
        head = os.pread(file, FRAME_HEADER, position.offset)
        length = frame_length(head)
        record = unframe(head, os.pread(file, length, position.offset + FRAME_HEADER))
        return Placed(position, record, Position(position.segment, position.offset + FRAME_HEADER + length))

    def _file(self, number: int) -> int:
        file = self._files.get(number)
        if file is None:
            if len(self._files) >= _OPEN_FILES:
                os.close(self._files.popitem(last=False)[1])
            file = os.open(segment_path(self.folder, number), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            self._files[number] = file
        self._files.move_to_end(number)
        return file

    def _at_end(self, position: Position) -> bool:
        return os.fstat(self._file(position.segment)).st_size <= position.offset

    def _next_mark(self, position: Position) -> Position | None:
        """The next place after a broken one where a whole record begins."""
        file, offset = self._file(position.segment), position.offset + 1
        while block := os.pread(file, _STEP, offset):
            at = block.find(MARK)
            if at < 0:
                if len(block) < _STEP:
                    return None
                offset += _STEP - len(MARK) + 1
                continue
            candidate = Position(position.segment, offset + at)
            try:
                self._read(candidate)
            except BrokenFrame:
                offset += at + 1
                continue
            return candidate
        return None


def end_of_whole_records(files: JournalFiles, number: int) -> int:
    """Where the last whole record of a segment ends."""
    start = Position(number, len(SEGMENT_HEADER))
    end = start.offset
    for placed in files.scan(start):
        if placed.position.segment != number:
            break
        end = placed.following.offset
    return end

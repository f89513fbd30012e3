"""Reading the journal: by position, or onwards from one, past what is damaged."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from redfirst.collector_processor.journal.format import (
    LONGEST_FRAME_HEADER,
    MARK,
    SEGMENT_HEADER,
    SEGMENT_START,
    BrokenFrame,
    Damage,
    Position,
    Record,
    format_of,
    frame_head,
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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes of a segment that hold no whole record, and why."""

    start: Position
    length: int
    damage: Damage


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

    def __init__(self, folder: Path, *, on_damage: Callable[[Stretch], None] | None = None) -> None:
        """``on_damage`` is told of every stretch that is passed over, once."""
        self.folder = folder
        self._on_damage = on_damage
        self._files: OrderedDict[int, tuple[int, int | None]] = OrderedDict()
        self._passed: set[Position] = set()

    @property
    def damaged(self) -> int:
        """Stretches of bytes that held no whole record and were passed over."""
        return len(self._passed)

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

    def damage_at(self, position: Position) -> Damage | None:
        """Why no record is at a position; None when one is."""
        try:
            self._read(position)
        except BrokenFrame as problem:
            return problem.damage
        return None

    def scan(self, start: Position, end: Position | None = None) -> Iterator[Placed]:
        """Every whole record from a position on, and before ``end`` where that is given.

        What is broken is passed over and counted, except at the end of the last segment, where a record may
        still be being written.
        """
        numbers = [number for number in segments(self.folder) if number >= start.segment]
        for number in numbers:
            position: Position | None = max(start, Position(number, len(SEGMENT_HEADER)))
            while position is not None and (end is None or position < end):
                try:
                    placed = self._read(position)
                except FileNotFoundError:
                    break  # removed by retention while we read
                except BrokenFrame as problem:
                    position = self._beyond(position, problem, last=number == numbers[-1])
                    continue
                yield placed
                position = placed.following

    def close(self) -> None:
        """Close the files; they are opened again when read."""
        while self._files:
            os.close(self._files.popitem()[1][0])

    def _read(self, position: Position) -> Placed:
        file, version = self._file(position.segment)
        head = frame_head(os.pread(file, LONGEST_FRAME_HEADER, position.offset), position, version)
        begins = position.offset + head.size
        if begins + head.length > os.fstat(file).st_size:
            raise BrokenFrame(Damage.TORN, "the payload is cut short")
        record = unframe(head, os.pread(file, head.length, begins))
        return Placed(position, record, Position(position.segment, begins + head.length))

    def _file(self, number: int) -> tuple[int, int | None]:
        found = self._files.get(number)
        if found is None:
            if len(self._files) >= _OPEN_FILES:
                os.close(self._files.popitem(last=False)[1][0])
            file = os.open(segment_path(self.folder, number), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            try:
                found = (file, format_of(os.pread(file, SEGMENT_START, 0), number))
            except BaseException:
                os.close(file)
                raise
            self._files[number] = found
        self._files.move_to_end(number)
        return found

    def _beyond(self, position: Position, problem: BrokenFrame, *, last: bool) -> Position | None:
        """Where to go on after a broken frame; None at the end of the segment. What is passed over is reported."""
        size = os.fstat(self._file(position.segment)[0]).st_size
        if position.offset >= size:
            return None
        if problem.length is not None:
            following: Position | None = Position(position.segment, position.offset + problem.length)
        else:
            following = self._next_record(position)
        if following is None and problem.damage is Damage.TORN and last:
            return None
        if position not in self._passed:
            self._passed.add(position)
            length = (size if following is None else following.offset) - position.offset
            if self._on_damage is not None:
                self._on_damage(Stretch(position, length, problem.damage))
        return following

    def _next_record(self, position: Position) -> Position | None:
        """The next place after a broken one where a whole record begins."""
        file, offset = self._file(position.segment)[0], position.offset + 1
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
    for placed in files.scan(start, Position(number + 1, 0)):
        end = placed.following.offset
    return end

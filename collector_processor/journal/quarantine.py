"""Bytes of the journal that are no record: kept aside, counted, and out of the way of what can be read."""

from __future__ import annotations

import os
import time
from pathlib import Path

from redfirst.collector_processor.disk import make_folder, sync_file, sync_folder, write_all
from redfirst.collector_processor.journal.format import Position, segment_path
from redfirst.collector_processor.journal.reading import JournalFiles, Stretch, end_of_whole_records
from redfirst.collector_processor.metrics import Metrics

FOLDER = "quarantine"
_STEP = 1 << 20


class Quarantine:
    """Copies of damaged stretches, below the journal. Each is named ``SEGMENT-OFFSET.REASON``."""

    def __init__(self, journal: Path, metrics: Metrics) -> None:
        self.folder = journal / FOLDER
        self._journal = journal
        self._metrics = metrics

    def keep(self, stretch: Stretch) -> None:
        """Copy a stretch; the copy is durable on return. One that was kept before is only counted.

        Raises:
            OSError: it could not be copied.
        """
        number, offset = stretch.start
        self._metrics.add(
            "redfirst_journal_quarantined_bytes_total", stretch.length, reason=stretch.damage.value
        )
        path = self.folder / f"{number:010d}-{offset}.{stretch.damage.value}"
        if path.exists() and path.stat().st_size == stretch.length:
            return
        make_folder(self.folder)
        with segment_path(self._journal, number).open("rb") as source, path.open("wb") as copy:
            source.seek(offset)
            left = stretch.length
            while left > 0 and (block := source.read(min(left, _STEP))):
                left -= write_all(copy.fileno(), block)
            sync_file(copy.fileno())
        sync_folder(self.folder)

    def keep_quietly(self, stretch: Stretch) -> None:
        """The same for a reader, who has no use for the reason why it could not be done."""
        try:
            self.keep(stretch)
        except OSError:
            # nothing is lost by it: the bytes stay in their segment
            self._metrics.add("redfirst_journal_failures_total", reason="quarantine")

    def expire(self, before: float) -> None:
        """Remove what was kept before that time (Unix seconds)."""
        for path in self.folder.glob("*-*.*"):
            if path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def cut_tail(self, number: int) -> Position:
        """Cut what is not whole off the end of a segment that a process died over, and make the rest durable: it may
        have been written and not synced. Gives where its whole records end.

        Raises:
            OSError: the disk does not allow it.
        """
        files = JournalFiles(self._journal)
        end = Position(number, end_of_whole_records(files, number))
        damage = files.damage_at(end)
        files.close()
        path = segment_path(self._journal, number)
        size = path.stat().st_size
        if size > end.offset and damage is not None:
            self.keep(Stretch(end, size - end.offset, damage))
        with path.open("r+b") as file:
            if size > end.offset:
                modified = path.stat().st_mtime
                file.truncate(end.offset)
                os.utime(path, (time.time(), modified))  # its age is that of its records
            sync_file(file.fileno())
        return end

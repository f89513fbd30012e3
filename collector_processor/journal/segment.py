"""The segment that is being written to. One whose write or sync failed is never written again."""

from __future__ import annotations

import os
from pathlib import Path

from redfirst.collector_processor.disk import sync_file, sync_folder, write_all
from redfirst.collector_processor.journal.format import SEGMENT_HEADER, Position, segment_path


class OpenSegment:
    """A new file. Its name is durable; its header is with the first record."""

    def __init__(self, folder: Path, number: int) -> None:
        """Make it.

        Raises:
            OSError: the disk does not allow it.
        """
        self.number = number
        self.durable = len(SEGMENT_HEADER)
        """Bytes that are synced."""
        self._folder = folder
        self._file = os.open(
            segment_path(folder, number),
            os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0),
            0o600,
        )
        try:
            write_all(self._file, SEGMENT_HEADER)
            sync_folder(folder)
        except OSError:
            os.close(self._file)
            segment_path(folder, number).unlink(missing_ok=True)
            raise

    @property
    def end(self) -> Position:
        """Where the next record goes."""
        return Position(self.number, self.durable)

    def write(self, data: bytes) -> None:
        """Append; nothing of it is durable yet.

        Raises:
            OSError: it could not be written, or in part.
        """
        write_all(self._file, data)

    def probe(self) -> None:
        """See whether the disk syncs at all.

        Raises:
            OSError: it does not.
        """
        sync_file(self._file)

    def sync(self, length: int) -> None:
        """Make the last ``length`` bytes durable.

        Raises:
            OSError: it is not known what of them is on the disk.
        """
        sync_file(self._file)
        self.durable += length

    def abandon(self) -> bool:
        """Cut off what was never acknowledged, where the disk still allows it, and close. One without any record is
        removed: then True.

        Raises:
            OSError: the disk does not allow it; the file is closed all the same.
        """
        try:
            if self.durable > len(SEGMENT_HEADER):
                os.ftruncate(self._file, self.durable)
                return False
            segment_path(self._folder, self.number).unlink()
            return True
        finally:
            os.close(self._file)

    def close(self) -> None:
        """Close it; the next one has another number."""
        os.close(self._file)

"""How much more may be written: senders are asked to wait before the disk, or the journal's share of it, is full."""

from __future__ import annotations

import os
from pathlib import Path


class DiskBudget:
    """What the journal may grow by, from its own limit and from what is free on its disk."""

    def __init__(self, folder: Path, *, most: int | None, min_free: int) -> None:
        """``most`` bytes for all segments together, where that is limited; ``min_free`` bytes are left to others."""
        self.most = most
        self._folder = folder
        self._min_free = min_free

    def room(self, size: int) -> int:
        """Bytes that may be added to a journal of that size; not below zero."""
        return max(0, min(self._own(size), self._free()))

    def refusal(self, size: int, more: int) -> str | None:
        """Why so many more bytes may not be written; None when they may."""
        if self._own(size) < more:
            return f"the journal has reached its {_mib(self.most or 0)} MiB (max_journal_bytes) and all of it is needed"
        if self._free() < more:
            left = self._free() + self._min_free
            return f"only {_mib(left)} MiB are free on the disk of the journal (min_free_bytes)"
        return None

    def _own(self, size: int) -> int:
        return (1 << 62) if self.most is None else self.most - size

    def _free(self) -> int:
        space = os.statvfs(self._folder)
        return space.f_bavail * space.f_frsize - self._min_free


def _mib(size: int) -> int:
    return size >> 20

"""Which journal segments go: by age and by size, never because they were read, and never what is still needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.journal.format import Position, segment_path, segments
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """When segments go."""

    seconds: float
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment as retention sees it."""

    number: int
    bytes: int
    age: float


def to_remove(
    found: Iterable[Segment], limits: RetentionLimits, *, needed_from: int, pinned: Collection[int]
) -> list[tuple[int, str]]:
    """The segments to remove, oldest first, each with the reason. What a reader still needs, and what flagged runs
    lie in, stays; so does the newest, whose number says where the next start goes on."""
    ordered = sorted(found, key=lambda segment: segment.number)
    total = sum(segment.bytes for segment in ordered)
    gone: list[tuple[int, str]] = []
    for segment in ordered[:-1]:
        if segment.number >= needed_from or segment.number in pinned:
            continue
        reason = "age" if segment.age > limits.seconds else "size" if total > limits.bytes else None
        if reason is not None:
            gone.append((segment.number, reason))
            total -= segment.bytes
    return gone


class Retention:
    """Applies the limits to a journal.

    ``floors`` gives the positions of every reader; ``pins`` the segments that must stay whatever their age.
    """

    def __init__(
        self,
        journal: Journal,
        limits: RetentionLimits,
        *,
        floors: Callable[[], Iterable[Position]],
        pins: Callable[[], Collection[int]],
        metrics: Metrics,
    ) -> None:
        self.pinned = 0
        self._journal = journal
        self._limits = limits
        self._floors = floors
        self._pins = pins
        self._metrics = metrics

    def apply(self, now: float) -> None:
        """Remove what is due at this time (Unix seconds)."""
        folder = self._journal.folder
        found = [
            segment for number in segments(folder) if (segment := _segment(folder, number, now)) is not None
        ]
        pinned = frozenset(self._pins())
        needed = min((position.segment for position in self._floors()), default=0)
        for number, reason in to_remove(found, self._limits, needed_from=needed, pinned=pinned):
            self._journal.remove(number)
            self._metrics.add("redfirst_journal_removed_segments_total", reason=reason)
        self.pinned = len(pinned & {segment.number for segment in found})
        self._journal.quarantine.expire(now - self._limits.seconds)


def _segment(folder: Path, number: int, now: float) -> Segment | None:
    try:
        found = segment_path(folder, number).stat()
    except FileNotFoundError:
        return None
    return Segment(number=number, bytes=found.st_size, age=now - found.st_mtime)

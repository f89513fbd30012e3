"""The journal's limits, out of the service's settings and what the store says of its readers."""

from __future__ import annotations

from collections.abc import Iterable

from redfirst.collector_processor.forwarding.forwarder import RETIRED
from redfirst.collector_processor.journal.format import START, Position
from redfirst.collector_processor.journal.retention import RetentionLimits
from redfirst.collector_processor.journal.writing import JournalLimits
from redfirst.collector_processor.settings import ServeSettings

_SEGMENTS = 16
"""How many segments a limited journal is made of at least: only whole ones can be removed."""


def journal_limits(settings: ServeSettings) -> JournalLimits:
    """How the journal batches and how large it may grow."""
    most = settings.max_journal_bytes
    usual = JournalLimits().segment_bytes
    return JournalLimits(
        segment_bytes=usual if most is None else min(usual, most // _SEGMENTS),
        most_bytes=most,
        min_free=settings.min_free_bytes,
    )


def retention_limits(settings: ServeSettings) -> RetentionLimits:
    """When segments go: early enough for a limited journal that senders are asked to wait only when it is all needed."""
    most = settings.max_journal_bytes
    size = settings.retain_bytes
    return RetentionLimits(
        seconds=settings.retain_days * 86_400, bytes=size if most is None else min(size, most * 3 // 4)
    )


def read_up_to(cursors: Iterable[Position]) -> Position:
    """The furthest that a reader has been."""
    return max((position for position in cursors if position < RETIRED), default=START)

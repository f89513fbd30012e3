"""What goes, what stays, and why."""

from __future__ import annotations

from redfirst.collector_processor.journal.retention import RetentionLimits, Segment, to_remove

LIMITS = RetentionLimits(seconds=100, bytes=250)


def found(*ages: float) -> list[Segment]:
    return [Segment(number=n, bytes=100, age=age) for n, age in enumerate(ages, 1)]


def test_old_segments_go_by_age_and_then_the_oldest_by_size():
    """Each with its reason."""
    assert to_remove(found(200, 50, 40, 30), LIMITS, needed_from=9, pinned=()) == [(1, "age"), (2, "size")]


def test_what_a_reader_needs_and_what_is_pinned_stays():
    """Neither age nor size takes what was not read, or what a flagged run lies in."""
    assert to_remove(found(200, 200, 200, 200), LIMITS, needed_from=3, pinned={1}) == [(2, "age")]


def test_the_newest_segment_stays_whatever_its_age():
    """Its number says where the next start goes on: readers have been beyond everything before it."""
    assert to_remove(found(200, 200), LIMITS, needed_from=9, pinned=()) == [(1, "age")]


def test_nothing_goes_because_it_was_read():
    """Read and young, and there is room: it stays."""
    assert to_remove(found(50, 40), LIMITS, needed_from=9, pinned=()) == []

"""When a live trace is released, and that each release has its name."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.receiving.request import HEAD
from redfirst.collector_processor.scoring.assembly import Assembly, AssemblyLimits, CutReason, Judged

TRACE = b"t" * 16
ROOT = b"r" * 8
LIMITS = AssemblyLimits(settle=10, idle=180, age=1000)
_places = itertools.count(8)


def head(span: bytes, parent: bytes = bytes(8), *, ended: bool = True) -> bytes:
    return HEAD.pack(span, parent, ended)


def fed(*parts: tuple[bytes, float], limits: AssemblyLimits = LIMITS) -> Assembly:
    assembly = Assembly(limits)
    for heads, now in parts:
        assembly.add({TRACE: heads}, Position(1, next(_places)), now)
    return assembly


def test_a_run_is_released_when_its_root_ended_and_it_settled():
    """The settle time counts from the last span, root or not."""
    assembly = fed((head(b"a" * 8, ROOT), 0.0), (head(ROOT), 2.0))

    assert assembly.due(11.9) == []
    (cut,) = assembly.due(12.0)
    assert (cut.reason, cut.spans, len(cut.positions)) == (CutReason.ROOT_ENDED, 2, 2)


def test_without_a_root_it_is_released_when_it_went_quiet():
    """A crashed agent's run does not stay open for ever."""
    assembly = fed((head(b"a" * 8, ROOT), 0.0))

    assert assembly.due(179.9) == []
    assert [cut.reason for cut in assembly.due(180.0)] == [CutReason.WENT_QUIET]


def test_a_parent_that_never_came_keeps_it_waiting_like_a_missing_root():
    """A root alone does not make a run whole when spans name a parent that is not there."""
    assembly = fed((head(ROOT) + head(b"a" * 8, b"x" * 8), 0.0))

    assert assembly.due(10.0) == []
    assert [cut.reason for cut in assembly.due(180.0)] == [CutReason.WENT_QUIET]


def test_a_span_that_has_not_ended_keeps_it_open():
    """A span announced at its start is awaited; its end releases the run."""
    assembly = fed((head(ROOT) + head(b"a" * 8, ROOT, ended=False), 0.0))
    assert assembly.due(10.0) == []

    assembly.add({TRACE: head(b"a" * 8, ROOT)}, Position(1, next(_places)), 20.0)
    assert [cut.reason for cut in assembly.due(30.0)] == [CutReason.ROOT_ENDED]


def test_a_root_that_comes_long_after_its_spans_releases_the_run_at_once():
    """A long run is judged a settle time after its end, not when a timer of its beginning happens to end."""
    assembly = fed((head(b"a" * 8, ROOT), 0.0))
    assert assembly.due(10.0) == []
    assembly.add({TRACE: head(ROOT)}, Position(1, next(_places)), 60.0)

    assert assembly.due(69.9) == []
    assert [cut.reason for cut in assembly.due(70.0)] == [CutReason.ROOT_ENDED]
    assert assembly.next_due() in (None, 180.0)
    assert assembly.due(500.0) == []


def test_a_run_that_never_rests_is_released_at_the_age_cap():
    """Spans that keep coming do not keep a verdict away beyond the cap."""
    assembly = fed(*((head(n.to_bytes(8, "big"), ROOT), float(n)) for n in range(1, 1000, 9)))

    assert assembly.due(1000.9) == []
    assert [cut.reason for cut in assembly.due(1001.0)] == [CutReason.TOO_OLD]


def test_age_counts_from_the_arrival_before_a_restart():
    """A run that is read again from the journal is as old as its first record."""
    assembly = Assembly(LIMITS)
    assembly.add({TRACE: head(b"a" * 8, ROOT)}, Position(1, 8), 0.0, age=990.0)

    assert [cut.reason for cut in assembly.due(10.0)] == [CutReason.TOO_OLD]


def test_a_late_span_is_released_again_and_waits_longer_each_time():
    """Late spans make another version; a run that is judged often is judged less and less often."""
    assembly = fed((head(ROOT), 0.0))
    assembly.due(10.0)
    assembly.landed(TRACE, Judged())

    assembly.add({TRACE: head(b"a" * 8, ROOT)}, Position(1, next(_places)), 20.0)
    assert [cut.reason for cut in assembly.due(30.0)] == [CutReason.CAME_LATE]
    assembly.landed(TRACE, Judged(late=1))
    assembly.add({TRACE: head(b"b" * 8, ROOT)}, Position(1, next(_places)), 40.0)
    assert assembly.due(99.0) == []
    assert len(assembly.due(100.0)) == 1


def test_nothing_is_released_twice_at_once():
    """While one version is being judged the next one waits."""
    assembly = fed((head(ROOT), 0.0))
    assert len(assembly.due(10.0)) == 1
    assembly.add({TRACE: head(b"a" * 8, ROOT)}, Position(1, next(_places)), 11.0)

    assert assembly.due(25.0) == []
    assembly.landed(TRACE, Judged())
    assert len(assembly.due(40.0)) == 1


def test_the_oldest_record_is_kept_until_its_run_has_landed():
    """The position to read on from never passes a run without a stored verdict."""
    assembly = Assembly(LIMITS)
    assembly.add({TRACE: head(ROOT)}, Position(1, 8), 0.0)
    assembly.add({b"u" * 16: head(ROOT)}, Position(1, 50), 1.0)
    assert assembly.oldest() == Position(1, 8)

    (cut,) = assembly.due(10.0)
    assert assembly.oldest() == Position(1, 8)
    assert assembly.oldest(without={cut.trace_id}) == Position(1, 50)
    assembly.landed(TRACE, Judged())
    assert assembly.oldest() == Position(1, 50)


@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=4))
def test_order_and_split_of_the_spans_decide_nothing(order, again):
    """Any order, any repetition: one release, for the same reason, with every span."""
    heads = [head(ROOT), *(head(bytes([n]) * 8, ROOT) for n in range(1, 6))]
    assembly = Assembly(LIMITS)
    for place, n in enumerate([*order, *again]):
        assembly.add({TRACE: heads[n]}, Position(1, 8 + place), 0.0)

    (cut,) = assembly.due(10.0)
    assert cut.reason is CutReason.ROOT_ENDED
    assert len(cut.positions) == len(order) + len(again)
    assert len(assembly) == 0

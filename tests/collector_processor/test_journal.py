"""The journal holds what it acknowledged, whatever happened to the rest."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.collector_processor import disk
from redfirst.collector_processor.journal.format import START, Position, Record, segment_path, segments
from redfirst.collector_processor.journal.quarantine import FOLDER as QUARANTINE
from redfirst.collector_processor.journal.reading import JournalFiles, RecordLost
from redfirst.collector_processor.journal.writing import (
    Journal,
    JournalLimits,
    JournalUnavailable,
)


def record(body: bytes, arrival_ns: int = 7) -> Record:
    return Record(signal="traces", tenant="default", arrival_ns=arrival_ns, body=body)


def bodies(folder: Path) -> list[bytes]:
    files = JournalFiles(folder)
    found = [placed.record.body for placed in files.scan(START)]
    files.close()
    return found


def write(folder: Path, *items: bytes, limits: JournalLimits | None = None) -> list[Position]:
    journal = Journal(folder, limits=limits)
    positions = [journal.append(record(item)).result(10) for item in items]
    journal.close()
    return positions


def test_a_record_is_read_back_as_it_was_written(tmp_path):
    """Signal, tenant, arrival and every byte of the body, at the position that was given."""
    journal = Journal(tmp_path)
    kept = Record(signal="logs", tenant="acme", arrival_ns=2**63, body=bytes(range(256)))
    position = journal.append(kept).result(10)
    journal.close()

    files = JournalFiles(tmp_path)
    assert files.at(position).record == kept
    files.close()


def test_appends_that_meet_share_one_sync(tmp_path, monkeypatch):
    """A hundred senders at once do not cost a hundred syncs."""
    count = 0

    def slow_sync(file: int) -> None:
        nonlocal count
        count += 1
        time.sleep(0.02)

    monkeypatch.setattr("redfirst.collector_processor.journal.segment.sync_file", slow_sync)
    journal = Journal(tmp_path)
    waiting = [journal.append(record(b"x")) for _ in range(100)]
    for one in waiting:
        one.result(10)
    journal.close()

    assert count < 10


def test_an_idle_journal_does_not_linger(tmp_path):
    """A single sender waits for the disk and for nothing else."""
    journal = Journal(tmp_path, limits=JournalLimits(linger=5.0))
    for _ in range(3):
        begun = time.monotonic()
        journal.append(record(b"x")).result(10)
        assert time.monotonic() - begun < 2
    journal.close()


def test_nothing_is_acknowledged_before_it_is_synced(tmp_path, monkeypatch):
    """The answer waits for the sync."""
    entered, go_on = threading.Event(), threading.Event()

    def held(file: int) -> None:
        entered.set()
        assert go_on.wait(10)

    journal = Journal(tmp_path)
    journal.append(record(b"first")).result(10)
    monkeypatch.setattr("redfirst.collector_processor.journal.segment.sync_file", held)
    waiting = journal.append(record(b"x"))
    assert entered.wait(10)
    assert not waiting.done()
    assert journal.read_from(START, limit_bytes=1 << 20)[-1].record.body == b"first"
    go_on.set()
    waiting.result(10)
    journal.close()


def test_a_failed_sync_is_not_acknowledged_and_its_segment_not_used_again(tmp_path, monkeypatch):
    """The kernel may have dropped the pages: senders are told to try again, and what follows goes elsewhere."""
    broken = True

    def failing(file: int) -> None:
        if broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        disk.sync_file(file)

    journal = Journal(tmp_path, limits=JournalLimits(retry_after=0.05))
    before = journal.append(record(b"before")).result(10)
    monkeypatch.setattr("redfirst.collector_processor.journal.segment.sync_file", failing)
    with pytest.raises(JournalUnavailable) as refused:
        journal.append(record(b"lost")).result(10)
    assert refused.value.reason == "disk"
    assert journal.trouble is not None
    with pytest.raises(JournalUnavailable):
        journal.append(record(b"refused at once"))

    broken = False
    deadline = time.monotonic() + 10
    while journal.trouble is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    after = journal.append(record(b"after")).result(10)
    journal.close()

    assert after.segment > before.segment
    assert bodies(tmp_path) == [b"before", b"after"]


def test_a_torn_tail_is_cut_off_and_kept_aside(tmp_path):
    """Half a record after a crash is no record; what is whole before it stays, and nothing is thrown away."""
    first, second = write(tmp_path, b"one", b"two")
    path = segment_path(tmp_path, first.segment)
    with path.open("r+b") as file:
        file.truncate(second.offset + 5)

    journal = Journal(tmp_path)
    assert journal.metrics.value("redfirst_journal_quarantined_bytes_total", reason="torn") == 5
    journal.append(record(b"three")).result(10)
    journal.close()

    assert bodies(tmp_path) == [b"one", b"three"]
    assert path.stat().st_size == second.offset
    assert [kept.name for kept in (tmp_path / QUARANTINE).iterdir()] == [f"0000000001-{second.offset}.torn"]


def test_a_damaged_record_costs_itself_alone(tmp_path):
    """Records before and after it are read, and the damage is counted."""
    _, second, _ = write(tmp_path, b"one", b"two" * 10, b"three")
    path = segment_path(tmp_path, second.segment)
    data = bytearray(path.read_bytes())
    data[second.offset + 30] ^= 0xFF
    path.write_bytes(data)

    files = JournalFiles(tmp_path)
    assert [placed.record.body for placed in files.scan(START)] == [b"one", b"three"]
    assert files.damaged == 1
    with pytest.raises(RecordLost, match="damaged"):
        files.at(second)
    files.close()


def test_an_empty_segment_is_no_obstacle(tmp_path):
    """A crash between making a file and writing to it leaves nothing to read and nothing to repair."""
    write(tmp_path, b"one")
    segment_path(tmp_path, 2).touch()

    assert write(tmp_path, b"two")[0].segment == 3
    assert bodies(tmp_path) == [b"one", b"two"]


def test_segments_end_at_their_size(tmp_path):
    """A large journal is many files, so that retention can remove the old ones."""
    write(tmp_path, *[bytes(100)] * 10, limits=JournalLimits(segment_bytes=300))

    assert len(segments(tmp_path)) > 2
    assert len(bodies(tmp_path)) == 10


def test_a_cursor_reads_on_across_segments_and_waits_for_more(tmp_path):
    """What a forwarder does: read, keep the position, wait."""
    journal = Journal(tmp_path, limits=JournalLimits(segment_bytes=1))
    for item in (b"a", b"b", b"c"):
        journal.append(record(item)).result(10)

    position, seen = START, []
    while chunk := journal.read_from(position, limit_bytes=1):
        seen += [placed.record.body for placed in chunk]
        position = chunk[-1].following
    assert seen == [b"a", b"b", b"c"]
    assert not journal.wait_beyond(position, 0.05)
    threading.Timer(0.05, lambda: journal.append(record(b"d"))).start()
    assert journal.wait_beyond(position, 10)
    assert [placed.record.body for placed in journal.read_from(position, limit_bytes=1)] == [b"d"]
    journal.close()


def test_a_sender_that_gave_up_harms_nobody(tmp_path):
    """A cancelled append is no fault of the writer's, and the next one is acknowledged."""
    journal = Journal(tmp_path)
    for _ in range(20):
        journal.append(record(b"x" * 1000)).cancel()
    journal.append(record(b"kept")).result(10)
    journal.close()

    assert bodies(tmp_path)[-1] == b"kept"


def test_a_disk_that_stays_broken_leaves_no_litter(tmp_path, monkeypatch):
    """Attempt after attempt to open another segment leaves no file, and numbers go on without a hole."""

    def failing(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    journal = Journal(tmp_path, limits=JournalLimits(retry_after=0.01))
    journal.append(record(b"before")).result(10)
    with monkeypatch.context() as patched:
        patched.setattr("redfirst.collector_processor.journal.segment.sync_file", failing)
        with pytest.raises(JournalUnavailable):
            journal.append(record(b"lost")).result(10)
        time.sleep(0.1)
        assert segments(tmp_path) in ([1], [1, 2])  # the second is there while an attempt is under way
    deadline = time.monotonic() + 10
    while journal.trouble is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert journal.append(record(b"after")).result(10).segment == 2
    assert segments(tmp_path) == [1, 2]
    journal.close()
    assert journal.bytes == sum(segment_path(tmp_path, number).stat().st_size for number in (1, 2))


def test_a_journal_refuses_before_its_share_is_full_and_goes_on_when_there_is_room(tmp_path):
    """Senders are told to wait while all of it is needed; removing a segment is enough, no start."""
    limits = JournalLimits(segment_bytes=400, most_bytes=1000)
    journal = Journal(tmp_path, limits=limits)
    kept = 0
    with contextlib.suppress(JournalUnavailable):
        while True:
            journal.append(record(os.urandom(100))).result(10)
            kept += 1
    with pytest.raises(JournalUnavailable) as refused:
        journal.append(record(os.urandom(100))).result(10)
    assert refused.value.reason == "full"
    assert "max_journal_bytes" in str(refused.value)
    assert 4 <= kept <= 7  # 100 bytes and a frame's 38 each
    assert sum(segment_path(tmp_path, n).stat().st_size for n in segments(tmp_path)) == journal.bytes <= 1000

    journal.remove(1)
    assert journal.room > 400
    journal.append(record(os.urandom(100))).result(10)
    journal.close()


def test_a_full_disk_refuses_and_recovers(tmp_path, monkeypatch):
    """Below the free space that is left to others nothing is written, and what is asked is said."""
    free = {"bytes": 10_000}
    real = os.statvfs

    def told(path: Path) -> os.statvfs_result:
        found = list(real(path))
        found[1], found[4] = 1, free["bytes"]
        return os.statvfs_result(found)

    monkeypatch.setattr("os.statvfs", told)
    journal = Journal(tmp_path, limits=JournalLimits(min_free=5_000))
    journal.append(record(b"fits")).result(10)
    free["bytes"] = 5_000
    with pytest.raises(JournalUnavailable, match="min_free_bytes"):
        journal.append(record(b"does not"))
    assert journal.full is not None
    assert journal.room == 0
    free["bytes"] = 10_000
    assert journal.full is None
    journal.append(record(b"fits again")).result(10)
    journal.close()

    assert bodies(tmp_path) == [b"fits", b"fits again"]


def test_a_journal_whose_segments_are_gone_goes_on_behind_its_readers(tmp_path):
    """Positions never come twice: a reader that has been at segment 7 would pass over what is put before it."""
    for after, first in ((Position(7, 0), 7), (Position(7, 80), 8)):
        folder = tmp_path / str(after.offset)
        journal = Journal(folder, after=after)
        assert journal.append(record(b"x")).result(10).segment == first
        journal.close()


def test_too_much_that_waits_is_refused(tmp_path, monkeypatch):
    """Memory is bounded: beyond the limit senders are pushed back."""
    go_on = threading.Event()
    monkeypatch.setattr("redfirst.collector_processor.journal.segment.sync_file", lambda file: go_on.wait(10))
    journal = Journal(tmp_path, limits=JournalLimits(waiting_bytes=1000))

    def flood() -> None:
        for _ in range(50):
            journal.append(record(bytes(100)))

    with pytest.raises(JournalUnavailable) as refused:
        flood()
    go_on.set()
    journal.close()

    assert refused.value.reason == "busy"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=6), st.data())
def test_any_cut_leaves_a_prefix(tmp_path_factory, items, data):
    """However many bytes of the file survive, the records before the cut are there, whole and in order."""
    folder = tmp_path_factory.mktemp("cut")
    positions = write(folder, *items)
    if not positions:
        return
    path = segment_path(folder, positions[0].segment)
    length = data.draw(st.integers(0, path.stat().st_size))
    with path.open("r+b") as file:
        file.truncate(length)

    whole = [
        item
        for item, start in zip(items, positions, strict=True)
        if start.offset + 16 + 22 + len(item) <= length
    ]
    Journal(folder).close()
    assert bodies(folder) == whole

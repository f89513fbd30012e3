"""Fault 2: what was acknowledged is on the disk, not only in the kernel. Fault 6: a disk that fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader

from .conftest import Disk, journalled, names_of

RECORDS = Path(__file__).with_name("records.py")
PROTOBUF = {"content_type": "application/x-protobuf"}


def acknowledged_records(disk: Disk, home: Path, *, first: int = 0, count: int, skip: int = 0) -> set[int]:
    """Journal so many records on that disk, each in a segment of its own, and fail the power after the last."""
    process = subprocess.Popen(
        [sys.executable, str(RECORDS), str(home), str(first), str(count)],
        env={**os.environ, **disk.environment(DISK_SKIP=str(skip))},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    acknowledged = {int(process.stdout.readline()) for _ in range(count)}
    process.kill()
    process.communicate()
    disk.lose_power(home)
    return acknowledged


def records_in(home: Path) -> set[int]:
    files = JournalFiles(home / "journal")
    found = {int(placed.record.body.split()[0]) for placed in files.scan(START)}
    files.close()
    return found


def test_with_any_one_sync_removed_an_acknowledged_record_is_lost(disk, tmp_path):
    """From an empty folder on, over three segments: with every sync there all is kept; power that fails right after an
    answer takes the record with it when any one of the syncs before it is left out."""
    home = tmp_path / "home"

    def lost(count: int, *, skip: int) -> set[int]:
        shutil.rmtree(home, ignore_errors=True)
        disk.log.unlink(missing_ok=True)
        return acknowledged_records(disk, home, count=count, skip=skip) - records_in(home)

    before = 0
    for count, needed in (
        (1, 4),
        (2, 2),
        (3, 2),
    ):  # the home's and the journal's name; a segment's name, a record
        assert lost(count, skip=0) == set()
        assert disk.journal_syncs() - before == needed
        numbers = range(before + 1, before + needed + 1)
        assert [number for number in numbers if not lost(count, skip=number)] == []
        before += needed


def test_a_power_loss_after_another_keeps_what_was_acknowledged_before(disk, tmp_path):
    """The second process begins on what the first loss left, and what both acknowledged is there."""
    home = tmp_path / "home"
    first = acknowledged_records(disk, home, count=2)
    second = acknowledged_records(disk, home, first=2, count=2)

    assert records_in(home) == first | second == {0, 1, 2, 3}


def test_what_was_judged_can_be_read_after_a_power_loss(stopped, tools, disk):
    """A record that a dead process wrote and did not sync is read by the next one: it is made durable before anything
    is concluded from it."""
    run = tools.a_run()
    stopped.start(**disk.environment(DISK_KILL="before .segment 1"))
    with pytest.raises(OSError, match=r"."):
        stopped.post("/v1/traces", tools.body_of(run), **PROTOBUF)
    stopped.kill()
    assert names_of(run) <= journalled(stopped.home)  # in the kernel: nobody was told

    stopped.start(**disk.environment())
    name = f"{run[0].context.trace_id:032x}"
    tools.eventually(lambda: name in stopped.stored(), within=60)
    stopped.kill()
    disk.lose_power(stopped.home)
    reader = SqliteReader(stopped.home / "store.sqlite3")
    source = SpanSource(stopped.home / "journal")
    assert len(source.slices(bytes.fromhex(name), reader.positions(name))["traces"]) == len(run)
    source.close()
    reader.close()


@pytest.mark.parametrize("fault", ["DISK_BROKEN", "DISK_FULL"])
def test_a_disk_that_fails_is_never_acknowledged(stopped, tools, disk, fault):
    """While syncing or writing fails senders are told to try again and the service says that it is not ready; then it goes
    on by itself, in another segment, and everything that was acknowledged is there."""
    broken = stopped.home.parent / "broken"
    stopped.start(**disk.environment(**{fault: str(broken)}))
    runs = [tools.a_run() for _ in range(3)]
    assert stopped.post("/v1/traces", tools.body_of(runs[0]), **PROTOBUF)[0] == 200

    broken.touch()
    status, headers, answer = stopped.post("/v1/traces", tools.body_of(runs[1]), **PROTOBUF)
    assert status == 503, (status, answer)
    assert headers["retry-after"] == "1"
    assert stopped.metrics()["redfirst_ready"] == 0
    before = sorted((stopped.home / "journal").glob("*.segment"))

    broken.unlink()
    tools.eventually(lambda: stopped.metrics()["redfirst_ready"] == 1)
    assert stopped.post("/v1/traces", tools.body_of(runs[2]), **PROTOBUF)[0] == 200
    assert sorted((stopped.home / "journal").glob("*.segment"))[-1] not in before
    acknowledged = {f"{run[0].context.trace_id:032x}" for run in (runs[0], runs[2])}
    tools.eventually(lambda: acknowledged <= set(stopped.stored()), within=60)
    assert {trace_id for trace_id, _ in journalled(stopped.home)} == acknowledged

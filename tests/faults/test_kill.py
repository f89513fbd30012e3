"""Faults 1, 2 and 3: killed at any moment, nothing acknowledged is lost and nothing is judged twice.

``REDFIRST_FAULT_KILLS`` kills of each kind; ``make faults`` sets it so that there are a hundred in all.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, StoredRun

from .conftest import Disk, SpanName, journalled, load

KILLS = int(os.environ.get("REDFIRST_FAULT_KILLS", "2"))
POINTS = [
    ("before", ".segment"),
    ("after", "store.sqlite3"),
    ("after", ".segment"),
    ("before", "store.sqlite3"),
]
"""Between write and sync, between sync and answer, before and after the commit of verdicts and cursor."""


def judged(home: Path) -> dict[str, StoredRun]:
    """Every stored run, however many there are."""
    reader = SqliteReader(home / "store.sqlite3")
    runs = reader.runs(Query(limit=10**6))
    reader.close()
    return {run.run_id: run for run in runs}


def all_judged_once(stopped, tools, acknowledged: set[SpanName]) -> None:
    """After a start every run that was wholly acknowledged gets its verdict: one version, over its four spans."""
    stopped.start()
    wanted = {trace_id for trace_id, _ in acknowledged}
    tools.eventually(lambda: wanted <= set(judged(stopped.home)), within=120)
    found = judged(stopped.home)
    assert {(found[name].spans, found[name].version) for name in wanted} == {(4, 1)}
    assert stopped.stop() == 0


def test_killed_at_random_nothing_acknowledged_is_lost(stopped, tools, disk: Disk):
    """Under load over HTTP and gRPC, round after round; in every other one the power fails with it, and every file is cut
    to what was synced."""
    moments = random.Random(7)
    acknowledged: set[SpanName] = set()
    for number in range(KILLS):
        stopped.start(**disk.environment())
        acknowledged |= load(stopped, tools, until=lambda: time.sleep(moments.uniform(0.4, 1.2)))
        if number % 2 == 0:
            disk.lose_power(stopped.home)
        assert acknowledged <= journalled(stopped.home)
    all_judged_once(stopped, tools, acknowledged)


def test_without_syncing_acknowledged_spans_are_lost(stopped, tools, disk):
    """The test before fails when syncing does nothing: it is the sync that keeps the promise."""
    stopped.start(**disk.environment(DISK_NOTHING="1"))
    acknowledged = load(stopped, tools, until=lambda: time.sleep(0.8))
    disk.lose_power(stopped.home)

    assert not acknowledged <= journalled(stopped.home)


def test_killed_around_a_sync_nothing_acknowledged_is_lost_or_judged_twice(stopped, tools, disk: Disk):
    """At each point of the path; senders repeat what was not answered."""
    moments = random.Random(11)
    acknowledged: set[SpanName] = set()
    for number in range(KILLS):
        when, part = POINTS[number % len(POINTS)]
        # what an earlier round left is judged from the start on, so that the kill may come before it is ready
        if stopped.starts(**disk.environment(DISK_KILL=f"{when} {part} {moments.randint(2, 6)}")):
            sender = tools.Sender(tools.exporter_over("http", stopped))
            sender.start()
            stopped.process.wait(timeout=60)
            sender.end()
            acknowledged |= sender.acknowledged
        stopped.kill()
        disk.lose_power(stopped.home)
        assert acknowledged <= journalled(stopped.home)
    assert len(acknowledged) >= KILLS
    all_judged_once(stopped, tools, acknowledged)


@pytest.mark.parametrize("whom", ["the scorer", "the service"])
def test_killed_while_scoring_every_run_has_one_verdict(served, tools, whom):
    """A scorer, or all of it, killed while runs are being judged: each run is judged, and stored once."""
    exporter = tools.exporter_over("http", served)
    runs = [tools.a_run() for _ in range(30)]
    for run in runs[:15]:
        exporter.export(run)
    time.sleep(0.3)  # the settle time: they are being judged now
    if whom == "the scorer":
        for pid in children_of(served.process.pid):
            os.kill(pid, signal.SIGKILL)
    else:
        served.kill()
        served.start()
        exporter.shutdown()
        exporter = tools.exporter_over("http", served)
    for run in runs[15:]:
        exporter.export(run)
    exporter.shutdown()

    found = tools.eventually(lambda: len(all_of := judged(served.home)) == 30 and all_of, within=60)
    assert {(run.spans, run.version) for run in found.values()} == {(3, 1)}
    if whom == "the scorer":
        restarts = {
            n: v for n, v in served.metrics().items() if n.startswith("redfirst_scorer_restarts_total")
        }
        assert sum(restarts.values()) >= 1


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]

"""Faults 7 and 8: what a disk or another program did to the files of a home."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess

import pytest

from redfirst.collector_processor.journal.format import Record, segment_path
from redfirst.collector_processor.journal.writing import Journal, JournalLimits

from .test_kill import judged

PROTOBUF = {"content_type": "application/x-protobuf"}


def trace_of(run: list) -> str:
    return f"{run[0].context.trace_id:032x}"


def test_damaged_segments_cost_what_was_in_them_alone(stopped, tools):
    """A torn last record, a flipped byte in the middle, an empty segment: the service starts, keeps the damage aside by
    reason, counts it, and judges every run that is whole."""
    runs = [tools.a_run() for _ in range(9)]
    folder = stopped.home / "journal"
    journal = Journal(folder, limits=JournalLimits(segment_bytes=1_500))
    bodies = [tools.body_of(run) for run in runs]
    at = [
        journal.append(Record(signal="traces", tenant="default", arrival_ns=1, body=body)).result(10)
        for body in bodies
    ]
    journal.close()
    last = at[-1].segment
    assert last >= 2
    flipped = next(n for n, position in enumerate(at) if position.segment == 1 and position.offset > 8)
    data = bytearray(segment_path(folder, 1).read_bytes())
    data[at[flipped].offset + 100] ^= 1
    segment_path(folder, 1).write_bytes(data)
    torn = segment_path(folder, last)
    with torn.open("r+b") as file:
        file.truncate(torn.stat().st_size - 7)
    segment_path(folder, last + 1).touch()

    stopped.start()
    whole = {trace_of(run) for n, run in enumerate(runs) if n not in (flipped, len(runs) - 1)}
    tools.eventually(lambda: whole <= set(judged(stopped.home)), within=60)
    assert set(judged(stopped.home)) == whole
    metrics = stopped.metrics()
    quarantined = {n.split('"')[1]: v for n, v in metrics.items() if "quarantined_bytes_total" in n}
    assert set(quarantined) == {"checksum", "torn"}
    kept = {path.suffix[1:]: path.stat().st_size for path in (folder / "quarantine").iterdir()}
    assert kept == quarantined
    assert metrics["redfirst_ready"] == 1


def test_without_its_write_ahead_log_or_all_of_it_the_store_is_made_again(stopped, tools):
    """What the store forgot is judged again from the journal: the log of a killed service is gone, then the file."""
    stopped.start()
    runs = [tools.a_run() for _ in range(5)]
    for run in runs:
        assert stopped.post("/v1/traces", tools.body_of(run), **PROTOBUF)[0] == 200
    wanted = {trace_of(run) for run in runs}
    tools.eventually(lambda: wanted <= set(judged(stopped.home)), within=60)
    for gone in ("store.sqlite3-wal", "store.sqlite3"):
        stopped.kill()
        for path in stopped.home.glob(f"{gone}*"):
            path.unlink()
        stopped.start()
        tools.eventually(lambda: wanted <= set(judged(stopped.home)), within=60)
        assert {(run.spans, run.version) for run in judged(stopped.home).values()} == {(3, 1)}


def refused(stopped, command: list[str] | None = None) -> str:
    """What a start that is refused says: one line, exit code 2."""
    process = stopped.spawn() if command is None else stopped.spawn_as(command)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 2, told
    assert len(told.strip().splitlines()) == 1, told
    return told


def test_a_store_that_is_none_is_refused_with_what_to_do(stopped):
    """It is left as it is, and the message says that the journal can make it again."""
    stopped.home.mkdir()
    store = stopped.home / "store.sqlite3"
    store.write_bytes(b"no database " * 100)

    assert "move store.sqlite3* away" in refused(stopped)
    assert store.read_bytes() == b"no database " * 100


def test_a_home_that_cannot_be_written_to_is_refused_with_what_to_do(stopped):
    """A read-only file system, and a file where the journal should be."""
    stopped.home.mkdir()
    (stopped.home / "journal").touch()
    assert "--home" in refused(stopped)

    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip(
            "mount namespaces are not allowed here: run as root, or allow unprivileged user namespaces"
        )
    read_only = f'mount -t tmpfs -o ro tmpfs "{stopped.home}" && exec "$@"'
    told = refused(stopped, ["unshare", "-rm", "sh", "-c", read_only, "sh"])
    assert "Read-only file system" in told
    assert "--home" in told


def test_a_store_that_another_program_locks_delays_verdicts_and_nothing_else(served, tools):
    """Requests are acknowledged meanwhile, the service says that it is not ready, and then all is judged."""
    assert served.post("/v1/traces", tools.body_of(tools.a_run()), **PROTOBUF)[0] == 200
    tools.eventually(lambda: len(judged(served.home)) == 1, within=60)
    other = sqlite3.connect(served.home / "store.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    runs = [tools.a_run() for _ in range(3)]
    for run in runs:
        assert served.post("/v1/traces", tools.body_of(run), **PROTOBUF)[0] == 200
    tools.eventually(lambda: served.metrics()["redfirst_ready"] == 0, within=60)
    tools.eventually(lambda: served.metrics().get("redfirst_store_failures_total"), within=60)
    tools.eventually(
        lambda: served.metrics().get('redfirst_alert_failures_total{reason="store"}'), within=60
    )  # the alerts, which meet it too, must not go on saying so for long after
    other.execute("ROLLBACK")
    other.close()

    wanted = {trace_of(run) for run in runs}
    tools.eventually(lambda: wanted <= set(judged(served.home)), within=60)
    tools.eventually(lambda: served.metrics()["redfirst_ready"] == 1, within=60)

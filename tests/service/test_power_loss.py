"""What was acknowledged is on the disk, not only in the kernel: each file is cut to its last synced length."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.evaluators.otlp import decode

SOURCE = Path(__file__).with_name("synced_lengths.c")


@pytest.fixture(scope="module")
def shim(tools, tmp_path_factory) -> Path:
    compiler = shutil.which("cc")
    tools.needs("a C compiler (cc)", compiler is not None)
    made = tmp_path_factory.mktemp("shim") / "synced_lengths.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    return made


def lose_power(home: Path, log: Path) -> None:
    """Cut every file of the home to its last synced length; a journal file whose folder was not synced is gone."""
    lengths: dict[str, int] = {}
    named: set[str] = set()
    for line in log.read_text().splitlines() if log.exists() else ():
        length, _, path = line.partition(" ")
        if length == "-1":
            named |= {known for known in lengths if Path(known).parent == Path(path)}
        else:
            lengths[path] = int(length)
    for path in [path for path in home.rglob("*") if path.is_file()]:
        known = lengths.get(str(path))
        if known is None or (path.suffix == ".segment" and str(path) not in named):
            path.unlink()
        elif path.stat().st_size > known:
            with path.open("r+b") as file:
                file.truncate(known)


def acknowledged_before_power_loss(served, tools, shim: Path, **more: str) -> set[tuple[str, str]]:
    """Load it over both protocols, kill it, and lose what was not synced."""
    log = served.home.parent / "synced"
    served.start(LD_PRELOAD=str(shim), SYNC_LOG=str(log), **more)
    senders = [tools.Sender(tools.exporter_over(protocol, served)) for protocol in ("http", "grpc")]
    for sender in senders:
        sender.start()
    time.sleep(0.8)
    served.kill()
    for sender in senders:
        sender.end()
    lose_power(served.home, log)
    acknowledged = set().union(*(sender.acknowledged for sender in senders))
    assert acknowledged, "nothing was sent: the round proves nothing"
    return acknowledged


def there(served) -> set[tuple[str, str]]:
    files = JournalFiles(served.home / "journal")
    found = {
        (span.trace_id, span.span_id)
        for placed in files.scan(START)
        for span in decode(placed.record.body, content="protobuf", signal="traces").spans
    }
    files.close()
    return found


def test_every_acknowledged_span_survives_a_power_loss(stopped, tools, shim):
    """With every file cut to what was synced, nothing that was acknowledged is missing, round after round, and the
    service starts on what is left and judges it."""
    acknowledged: set[tuple[str, str]] = set()
    for _ in range(2):
        acknowledged |= acknowledged_before_power_loss(stopped, tools, shim)
        assert acknowledged <= there(stopped)
    stopped.start()
    wanted = {trace_id for trace_id, _ in acknowledged}
    tools.eventually(lambda: wanted <= set(stopped.stored()), within=30)


def test_without_the_sync_acknowledged_spans_are_lost(stopped, tools, shim):
    """The same test with syncing turned into nothing fails: it is the sync that keeps the promise."""
    acknowledged = acknowledged_before_power_loss(stopped, tools, shim, SYNC_NOTHING="1")

    assert not acknowledged <= there(stopped)


def test_a_disk_that_fails_is_never_acknowledged(stopped, tools, shim):
    """While syncing fails senders are told to try again and the service says that it is not ready; then it goes on by
    itself, in another segment, and everything that was acknowledged is there."""
    broken = stopped.home.parent / "broken"
    stopped.start(LD_PRELOAD=str(shim), SYNC_BROKEN=str(broken))
    send = {"content_type": "application/x-protobuf"}
    runs = [tools.a_run() for _ in range(3)]
    assert stopped.post("/v1/traces", tools.body_of(runs[0]), **send)[0] == 200

    broken.touch()
    status, headers, answer = stopped.post("/v1/traces", tools.body_of(runs[1]), **send)
    assert status == 503, (status, answer)
    assert (status, headers["retry-after"]) == (503, "1")
    assert stopped.metrics()["redfirst_ready"] == 0

    broken.unlink()
    tools.eventually(lambda: stopped.metrics()["redfirst_ready"] == 1)
    assert stopped.post("/v1/traces", tools.body_of(runs[2]), **send)[0] == 200
    acknowledged = {f"{run[0].context.trace_id:032x}" for run in (runs[0], runs[2])}
    tools.eventually(lambda: acknowledged <= set(stopped.stored()))
    assert {trace_id for trace_id, _ in there(stopped)} == acknowledged

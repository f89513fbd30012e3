"""What was acknowledged is there, whatever the process dies of."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.evaluators.otlp import decode

ROUNDS = int(os.environ.get("REDFIRST_KILL_ROUNDS", "4"))


def journalled(home: Path) -> set[tuple[str, str]]:
    files = JournalFiles(home / "journal")
    found = {
        (span.trace_id, span.span_id)
        for placed in files.scan(START)
        for span in decode(placed.record.body, content="protobuf", signal="traces").spans
    }
    files.close()
    return found


def test_every_acknowledged_span_survives_kill_9_and_gets_its_verdict(stopped, tools):
    """Over HTTP and gRPC, round after round, each span whose export succeeded is in the journal, and each run that was
    wholly acknowledged is judged exactly once, over all of its spans."""
    acknowledged: set[tuple[str, str]] = set()
    for number in range(ROUNDS):
        stopped.start()
        senders = [tools.Sender(tools.exporter_over(protocol, stopped)) for protocol in ("http", "grpc")]
        for sender in senders:
            sender.start()
        time.sleep(0.25 + 0.2 * number)
        stopped.kill()
        for sender in senders:
            sender.end()
            assert sender.acknowledged, "nothing was sent: the round proves nothing"
            acknowledged |= sender.acknowledged
    assert acknowledged <= journalled(stopped.home)

    stopped.start()
    wanted = {trace_id for trace_id, _ in acknowledged}
    tools.eventually(lambda: wanted <= set(stopped.stored()), within=40)
    assert {(run.spans, run.version) for name, run in stopped.stored().items() if name in wanted} == {(4, 1)}
    assert stopped.stop() == 0


def test_the_scorers_death_loses_no_run(served, tools):
    """A scorer killed while runs wait is started again, and every run gets its verdict."""
    exporter = tools.exporter_over("http", served)
    runs = [tools.a_run() for _ in range(30)]
    for run in runs[:15]:
        exporter.export(run)
    for pid in children_of(served.process.pid):
        os.kill(pid, signal.SIGKILL)
    for run in runs[15:]:
        exporter.export(run)
    exporter.shutdown()

    tools.eventually(lambda: len(served.runs("scored")) == 30)
    restarts = {n: v for n, v in served.metrics().items() if n.startswith("redfirst_scorer_restarts_total")}
    assert sum(restarts.values()) >= 1


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]

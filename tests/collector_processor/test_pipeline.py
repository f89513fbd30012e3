"""Between the journal and the store nothing is lost and nothing is judged twice."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from redfirst.collector_processor.journal.format import START, Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.request import check
from redfirst.collector_processor.scoring.assembly import AssemblyLimits
from redfirst.collector_processor.scoring.pipeline import Pipeline
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.sqlite import ASSEMBLY, SqliteStore
from redfirst.collector_processor.storing.store import Query, RunState
from redfirst.evaluators import Span
from redfirst.evaluators.otlp_encode import encode_traces

QUICK = AssemblyLimits(settle=0.02, idle=0.05, grace=0.0, again=(1.0, 1.0, 1.0))


class Judge:
    """A ``Scoring`` that answers at once, or never."""

    def __init__(self, answered: Callable[..., None], *, silent: bool = False) -> None:
        self.jobs: list[Job] = []
        self._answered = answered
        self._silent = silent

    def submit(self, jobs: Sequence[Job]) -> None:
        self.jobs.extend(jobs)
        for job in () if self._silent else jobs:
            self._answered(
                job, {"state": "scored", "spans": 1, "hash": f"h{len(job.positions)}", "record": "{}"}
            )

    def close(self) -> None:
        """Nothing to end."""


class Running:
    """A journal, a store and a pipeline on a folder."""

    def __init__(self, folder: Path, *, silent: bool = False, limits: AssemblyLimits = QUICK) -> None:
        self.metrics = Metrics()
        self.store = SqliteStore(folder / "store.sqlite3")
        self.pipeline = Pipeline(lambda: self.journal, self.store, limits=limits, metrics=self.metrics)
        self.journal = Journal(folder / "journal", on_durable=self.pipeline.durable)
        self.judge = Judge(self.pipeline.answered, silent=silent)
        self.pipeline.start(self.judge)

    def send(self, trace: str, span: str, parent: str | None = None) -> None:
        body = encode_traces(
            [
                Span(
                    trace_id=trace * 16,
                    span_id=span * 8,
                    parent_id=parent and parent * 8,
                    start_ns=1,
                    end_ns=2,
                )
            ]
        )
        checked = check(body, "traces")
        record = Record(signal="traces", tenant="default", arrival_ns=time.time_ns(), body=body)
        self.journal.append(record, checked.heads).result(10)

    def until(self, what: Callable[[], object]) -> None:
        deadline = time.monotonic() + 10
        while not what():
            assert time.monotonic() < deadline, "did not happen"
            time.sleep(0.005)

    def versions(self) -> dict[str, int]:
        return {run.run_id[:2]: run.version for run in self.store.runs(Query(states=tuple(RunState)))}

    def stop(self) -> None:
        self.journal.close()
        self.pipeline.drain(0.2)
        self.store.close()


def test_a_verdict_that_was_not_stored_comes_after_the_start(tmp_path):
    """What was at the scorer when the process ended is judged by the next one; what was stored is not."""
    first = Running(tmp_path)
    first.send("aa", "01")
    first.until(first.versions)
    first.stop()
    second = Running(tmp_path, silent=True)
    second.send("bb", "01")
    second.until(lambda: second.judge.jobs)
    second.stop()

    third = Running(tmp_path)
    third.until(lambda: len(third.versions()) == 2)
    assert [job.run_id[:2] for job in third.judge.jobs] == ["bb"]
    assert third.versions() == {"aa": 1, "bb": 1}
    third.stop()


def test_spans_from_before_and_after_a_stop_are_one_run(tmp_path):
    """The positions of both are given to the scorer together."""
    slow = AssemblyLimits(settle=60, idle=60)
    first = Running(tmp_path, limits=slow)
    first.send("aa", "02", parent="01")
    first.stop()

    second = Running(tmp_path)
    second.send("aa", "01")
    second.until(second.versions)
    assert [len(job.positions) for job in second.judge.jobs] == [2]
    second.stop()


def test_a_store_that_cannot_be_written_delays_verdicts_and_loses_none(tmp_path, monkeypatch):
    """Transactions are repeated until they succeed; readiness says so meanwhile."""
    running = Running(tmp_path)
    broken, land = True, running.store.land

    def failing(*arguments: object, **named: object) -> object:
        if broken:
            raise sqlite3.OperationalError("database or disk is full")
        return land(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(running.store, "land", failing)
    for trace in ("aa", "bb", "cc"):
        running.send(trace, "01")
    running.until(lambda: running.pipeline.store_trouble)
    assert running.versions() == {}

    broken = False
    running.until(lambda: len(running.versions()) == 3)
    assert running.pipeline.store_trouble is None
    assert running.versions() == {"aa": 1, "bb": 1, "cc": 1}
    running.stop()


def test_a_run_is_judged_at_most_so_often_and_keeps_every_span(tmp_path):
    """Beyond the last version what comes is kept with the run, and counted, but not judged again."""
    running = Running(tmp_path)
    for number in range(1, 5):
        running.send("aa", f"0{number}", parent=None if number == 1 else "01")
        running.until(lambda number=number: len(running.store.positions("aa" * 16)) == number)

    assert running.versions() == {"aa": 3}
    assert running.metrics.value("redfirst_late_total", outcome="version_cap") == 1
    running.stop()


def test_the_cursor_stays_before_what_has_no_verdict(tmp_path):
    """An open run holds the position to read on from; one that landed lets it go."""
    running = Running(tmp_path, limits=AssemblyLimits(settle=0.02, idle=60))
    running.send("aa", "02", parent="01")
    held = running.journal.read_from(START, limit_bytes=1)[0].position
    running.send("bb", "01")
    running.until(running.versions)
    assert running.store.cursor(ASSEMBLY) == held

    running.send("aa", "01")
    running.until(lambda: len(running.versions()) == 2)
    assert running.store.cursor(ASSEMBLY) == running.journal.end
    running.stop()


@pytest.mark.parametrize("stopped", [True, False])
def test_a_stop_while_the_journal_is_read_keeps_the_cursor(tmp_path, monkeypatch, stopped):
    """What was not read yet is read by the next process."""
    first = Running(tmp_path, silent=True)
    first.send("aa", "01")
    first.until(lambda: first.judge.jobs)
    first.stop()
    if stopped:
        monkeypatch.setattr(Pipeline, "_replay", lambda pipeline: False)
        Running(tmp_path).stop()
        monkeypatch.undo()

    last = Running(tmp_path)
    last.until(last.versions)
    assert last.versions() == {"aa": 1}
    last.stop()

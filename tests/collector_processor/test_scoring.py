"""A scorer in a process of its own, whatever it dies of."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.journal.format import Position, Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.process import Job, ScorerProcess
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.scoring.worker import score
from redfirst.evaluators import Span
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.otlp_encode import encode_traces

CHILD = """
import os, sys, time
from redfirst.collector_processor.scoring.worker import message, read_message
read_message(sys.stdin.buffer)
out = os.fdopen(1, "wb", buffering=0)
out.write(message({"ready": True}))
while (asked := read_message(sys.stdin.buffer)) is not None:
    for job in asked["jobs"]:
        if job["run_id"] == "dies":
            os._exit(3)
        if job["run_id"] == "hangs":
            time.sleep(60)
        out.write(message({"state": "scored"}))
"""


class Answers:
    def __init__(self, expected: int) -> None:
        self.found: list[tuple[str, Mapping[str, Any]]] = []
        self.all = threading.Event()
        self._expected = expected

    def __call__(self, job: Job, answer: Mapping[str, Any]) -> None:
        self.found.append((job.run_id, answer))
        if len(self.found) == self._expected:
            self.all.set()


def judged(
    tmp_path: Path, *names: str, seconds: float = 30.0
) -> tuple[dict[str, Mapping[str, Any]], Metrics]:
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    answers, metrics = Answers(len(names)), Metrics()
    scoring = ScorerProcess(
        tmp_path,
        rules=None,
        on_answer=answers,
        metrics=metrics,
        seconds=seconds,
        command=(sys.executable, str(child)),
    )
    scoring.submit([Job(run_id=name, positions=()) for name in names])
    assert answers.all.wait(30)
    scoring.close()
    assert sorted(name for name, _ in answers.found) == sorted(names), "each is answered once"
    return dict(answers.found), metrics


def test_a_run_that_kills_the_scorer_is_unscored_and_harms_no_other(tmp_path):
    """After two deaths of it the run is told apart, and those behind it get their verdicts."""
    found, metrics = judged(tmp_path, "a", "dies", "b", "c")

    assert [found[name]["state"] for name in ("a", "dies", "b", "c")] == [
        "scored",
        "unscored",
        "scored",
        "scored",
    ]
    assert "exit code 3" in found["dies"]["because"]
    assert metrics.value("redfirst_scorer_restarts_total", reason="ended") == 2


def test_a_run_that_takes_too_long_is_unscored(tmp_path):
    """A check that never returns costs its run a verdict, and the others a little time."""
    found, _ = judged(tmp_path, "hangs", "a", seconds=0.4)

    assert (found["hangs"]["state"], found["hangs"]["reason"]) == ("unscored", "took too long")
    assert found["a"]["state"] == "scored"


def test_a_scorer_that_cannot_be_started_is_tried_again(tmp_path):
    """Where there is no process to be had now, there may be one later: the supervisor lives on and counts."""
    child = tmp_path / "scorer"
    answers, metrics = Answers(1), Metrics()
    scoring = ScorerProcess(tmp_path, rules=None, on_answer=answers, metrics=metrics, command=(str(child),))
    scoring.submit([Job(run_id="a", positions=())])
    ends = time.monotonic() + 20
    while not metrics.value("redfirst_scorer_restarts_total") and time.monotonic() < ends:
        time.sleep(0.01)
    child.write_text(f"#!{sys.executable}{CHILD}")
    child.chmod(0o700)

    assert answers.all.wait(30)
    assert scoring.alive
    assert metrics.value("redfirst_scorer_restarts_total", reason="did not start") >= 1
    scoring.close()
    assert not scoring.alive


def test_the_scorer_finds_the_functions_that_rules_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the service can import, its scorer can; otherwise it would not start and no job be answered."""
    (tmp_path / "checks_of_this_project.py").write_text("def judge(run):\n    raise NotImplementedError\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    rule = '{id: mine, kind: python, function: "checks_of_this_project:judge"}'
    answers, metrics = Answers(1), Metrics()
    scoring = ScorerProcess(
        tmp_path,
        rules=(f"schema: redfirst.rules/1\nrules:\n  - {rule}\n", "rules.yaml"),
        on_answer=answers,
        metrics=metrics,
    )
    scoring.submit([Job(run_id="aa" * 16, positions=())])
    assert answers.all.wait(60)
    scoring.close()

    assert [answer["state"] for _, answer in answers.found] == ["not_a_run"]


def kept(folder: Path, *spans: Span) -> list[Position]:
    journal = Journal(folder)
    positions = [
        journal.append(
            Record(signal="traces", tenant="default", arrival_ns=1, body=encode_traces([span]))
        ).result(10)
        for span in spans
    ]
    journal.close()
    return positions


def a_span(trace: str, name: str = "01") -> Span:
    return Span(
        trace_id=trace * 16, span_id=name * 8, name="a", start_ns=1, end_ns=2,
        attributes={"openinference.span.kind": "AGENT", "agent.name": "support"},
    )  # fmt: skip


def job(positions: list[Position], run_id: str = "aa" * 16) -> dict[str, Any]:
    return {"id": 0, "run_id": run_id, "positions": [list(position) for position in positions]}


def test_spans_that_are_gone_are_no_verdict(tmp_path):
    """Half a run is not judged as if it were the whole."""
    positions = kept(tmp_path, a_span("aa"))
    answer = score(SpanSource(tmp_path), default_checks(), job([*positions, Position(9, 8)]))

    assert (answer["state"], answer["reason"]) == ("unscored", "unreadable")
    assert "retention" in answer["because"]


def test_order_and_repetition_of_records_do_not_change_the_span_set(tmp_path):
    """The key of a version is what the run holds, not how it came."""
    one, two = a_span("aa", "01"), a_span("aa", "02")
    positions = kept(tmp_path, one, two, one)
    source = SpanSource(tmp_path)
    answers = [
        score(source, default_checks(), job(order)) for order in (positions, positions[:2], positions[1::-1])
    ]

    assert len({answer["hash"] for answer in answers}) == 1
    assert {answer["spans"] for answer in answers} == {2}
    assert score(source, default_checks(), job(positions[:1]))["hash"] != answers[0]["hash"]
    source.close()

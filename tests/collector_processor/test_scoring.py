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
from redfirst.collector_processor.scoring.lanes import Lanes
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
        out.write(message({"id": job["id"], "state": "scored"}))
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

    assert (found["hangs"]["state"], found["hangs"]["reason"]) == ("unscored", "too_slow")
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

    assert (answer["state"], answer["reason"]) == ("unscored", "spans_gone")
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


def contained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *bodies: str, times: int = 1, **limits: Any
) -> tuple[list[Mapping[str, Any]], Metrics]:
    """The answers of a real scorer, asked for one run so often, with checks ``odd0`` and on of these bodies."""
    lines = ["import os, sys, time", "from redfirst.evaluators import passed"]
    rules = "schema: redfirst.rules/1\nrules:\n"
    for number, body in enumerate(bodies):
        lines += [f"def check{number}(run):", f"    {body}", "    return passed('ok')"]
        rules += f'  - {{id: odd{number}, kind: python, function: "odd:check{number}", severity: flag}}\n'
    (tmp_path / "odd.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    positions = kept(tmp_path, an_agent("aa"))
    found: list[Mapping[str, Any]] = []
    answered, metrics = threading.Semaphore(0), Metrics()

    def take(_: Job, answer: Mapping[str, Any]) -> None:
        found.append(answer)
        answered.release()

    scoring = ScorerProcess(tmp_path, rules=(rules, "rules.yaml"), on_answer=take, metrics=metrics, **limits)
    for _ in range(times):
        scoring.submit([Job(run_id="aa" * 16, positions=positions)])
        assert answered.acquire(timeout=60)
    scoring.close()
    return found, metrics


def an_agent(name: str) -> Span:
    attributes = {"openinference.span.kind": "AGENT", "input.value": "hello", "output.value": "done"}
    return Span(
        trace_id=name * 16, span_id="01" * 8, name="agent", start_ns=1, end_ns=2, attributes=attributes
    )


def outcomes(answer: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    return {one["check"]: (one["outcome"], one["because"]) for one in answer["verdicts"]}


MISCHIEF = {
    "time.sleep(60)": "took longer than 0.5 s",
    "while True: pass": "took longer than 0.5 s",
    "bytearray(8 << 30)": "MemoryError",
    "raise ValueError('no')": "ValueError: no",
    "return float('nan')": "returned a value of type float",
    "return None": "returned None",
}


def test_checks_that_misbehave_are_inconclusive_and_the_others_are_not(tmp_path, monkeypatch):
    """Fault 35: they never fail a run, and take no verdict from another check."""
    (answer,), _ = contained(tmp_path, monkeypatch, *MISCHIEF, check_seconds=0.5, memory=4 << 30)

    found = outcomes(answer)
    for number, because in enumerate(MISCHIEF.values()):
        assert found[f"odd{number}"][0] == "inconclusive"
        assert because in found[f"odd{number}"][1]
    assert found["termination"][0] == "passed"
    assert (answer["state"], answer["flagged"]) == ("scored", False)


@pytest.mark.parametrize("forked", ["os.fork()", "os.fork() or time.sleep(60)", "os.fork() or 1 / 0"])
def test_a_check_that_forks_gives_no_run_the_verdict_of_another(tmp_path, monkeypatch, forked):
    """Fault 35: the copy of the scorer neither answers nor takes jobs; each run has its own answer, whatever it does."""
    (tmp_path / "odd.py").write_text(
        f"import os, time\nfrom redfirst.evaluators import passed\ndef check(run):\n    {forked}\n"
        "    return passed(run.run_id)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rules = 'schema: redfirst.rules/1\nrules:\n  - {id: odd, kind: python, function: "odd:check"}\n'
    names = [f"{number:02x}" for number in range(1, 41)]
    positions = kept(tmp_path, *(an_agent(name) for name in names))
    answers = Answers(len(names))
    scoring = ScorerProcess(tmp_path, rules=(rules, "rules.yaml"), on_answer=answers, metrics=Metrics())
    scoring.submit(
        [Job(run_id=name * 16, positions=[position]) for name, position in zip(names, positions, strict=True)]
    )
    assert answers.all.wait(60)
    scoring.close()

    assert {name: outcomes(answer)["odd"] for name, answer in answers.found} == {
        name * 16: ("passed", name * 16) for name in names
    }


def test_what_a_check_prints_is_passed_on_up_to_a_limit(tmp_path, monkeypatch, capfd):
    """Fault 35: a gigabyte of output fills no disk and mixes with no answer."""
    body = "print('x' * (8 << 20)); os.write(1, b'y' * 1000); sys.stdout.flush()"
    (answer,), metrics = contained(tmp_path, monkeypatch, body)

    assert outcomes(answer)["odd0"][0] == "passed"
    assert len(capfd.readouterr().err) <= 70_000
    assert metrics.value("redfirst_scorer_output_dropped_bytes_total") >= (8 << 20) - 70_000


def test_a_check_that_ends_the_process_is_left_out_and_its_run_judged_by_the_others(tmp_path, monkeypatch):
    """Fault 35: after two deaths the breaker is open; the run that it died of twice is unscored, the next is judged."""
    (first, second), metrics = contained(tmp_path, monkeypatch, "os._exit(3)", times=2)

    assert (first["state"], first["reason"]) == ("unscored", "error")
    assert second["state"] == "scored"
    assert outcomes(second)["odd0"] == (
        "inconclusive",
        "left out: the scorer died in it 2 times (it ended with exit code 3); it is asked again later",
    )
    assert outcomes(second)["termination"][0] == "passed"
    assert metrics.value("redfirst_scorer_restarts_total", reason="ended") == 2


def test_a_check_that_is_slow_again_and_again_is_rested(tmp_path, monkeypatch):
    """Three times too slow: then it costs nothing for a while."""
    answers, _ = contained(tmp_path, monkeypatch, "time.sleep(60)", times=4, check_seconds=0.1)

    assert [outcomes(one)["odd0"][1].split(":")[0] for one in answers] == ["evaluator error"] * 3 + [
        "left out"
    ]


def lane_in(made: list[list[str]]) -> Any:
    """Makes scorers that note the jobs they are given, never none, in a list of their own there."""

    class Lane:
        alive = True

        def __init__(self) -> None:
            self.jobs: list[str] = []
            made.append(self.jobs)

        def submit(self, jobs):
            assert jobs
            self.jobs.extend(job.run_id for job in jobs)

        def close(self):
            """Nothing to end."""

    return Lane


def test_a_large_run_does_not_delay_the_others(tmp_path):
    """Fault 23: it is judged in a process of its own, which is started when there is one."""
    made: list[list[str]] = []
    lanes = Lanes(lane_in(made))
    lanes.submit([Job(run_id="small", positions=(), spans=20)])
    assert made == [["small"]]
    lanes.submit(
        [Job(run_id="giant", positions=(), spans=100_000), Job(run_id="next", positions=(), spans=20)]
    )
    assert made == [["small", "next"], ["giant"]]


def test_a_run_is_always_judged_by_the_same_of_several_scorers():
    """Else an answer that knows less of it could be stored after one that knows more. All of them get work."""
    made: list[list[str]] = []
    lanes = Lanes(lane_in(made), usual=3)
    jobs = [Job(run_id=f"{n:032x}", positions=(), spans=20) for n in range(60)]
    lanes.submit(jobs)
    first = [list(lane) for lane in made]
    lanes.submit(jobs)
    assert [len(lane) > 0 for lane in first] == [True] * 3
    assert sorted(name for lane in first for name in lane) == sorted(job.run_id for job in jobs)
    assert made == [lane * 2 for lane in first]

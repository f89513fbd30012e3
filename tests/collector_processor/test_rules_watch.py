"""An edited rules file comes into force; a bad one does not."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.rules_watch import Rules, RulesWatch
from redfirst.collector_processor.scoring.process import Job, ScorerProcess

GOOD = "schema: redfirst.rules/1\nrules:\n  - {id: one, kind: max_calls, call: refund, max: 1}\n"
OTHER = GOOD.replace("max: 1", "max: 2222")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "rules.yaml"
    made.write_text(GOOD)
    return made


def watched(path: Path) -> tuple[RulesWatch, list[Rules], list[str]]:
    """A watch on the file, what it took, and what it said."""
    taken: list[Rules] = []
    said: list[str] = []
    watch = RulesWatch((GOOD, str(path)), replace=taken.append, say=said.append, metrics=Metrics())
    return watch, taken, said


def test_an_edit_is_taken_once_it_rests(path: Path) -> None:
    """Not at the first look, when an editor may still be writing; and once only."""
    watch, taken, said = watched(path)
    watch.look()
    path.write_text(OTHER)
    watch.look()
    assert taken == []
    watch.look()
    watch.look()

    assert taken == [(OTHER, str(path))]
    assert len(said) == 1


@pytest.mark.parametrize(
    "bad", [GOOD.replace("max_calls", "most_calls"), "rules: [", GOOD.encode("utf-16"), None]
)
def test_a_bad_one_is_said_once_and_the_old_rules_stay(path: Path, bad: str | bytes | None) -> None:
    """Wrong, broken, no text, gone: one line; mended, it is taken."""
    watch, taken, said = watched(path)
    if bad is None:
        path.unlink()
    else:
        path.write_bytes(bad if isinstance(bad, bytes) else bad.encode())
    for _ in range(3):
        watch.look()
    assert (len(taken), len(said)) == (0, 1)
    assert "The rules in force stay." in said[0]
    assert "\n" not in said[0]

    path.write_text(OTHER)
    watch.look()
    watch.look()
    assert taken == [(OTHER, str(path))]


def test_an_edit_that_is_taken_back_is_said(path: Path) -> None:
    """After a refusal, so that whoever undid it knows; nothing is loaded anew."""
    watch, taken, said = watched(path)
    for text in ("rules: [", GOOD):
        path.write_text(text)
        for _ in range(3):
            watch.look()

    assert taken == []
    assert len(said) == 2
    assert said[1] == f"rules: {path} is again as the rules in force"


def test_the_same_text_again_changes_nothing(path: Path) -> None:
    """A checkout that touches the file starts no scorer anew."""
    watch, taken, said = watched(path)
    path.unlink()
    watch.look()
    path.write_text(GOOD)
    watch.look()
    watch.look()

    assert (taken, said) == ([], [])


CHILD = """
import os, sys
from redfirst.collector_processor.scoring.worker import message, read_message
rules = read_message(sys.stdin.buffer)["rules"]
out = os.fdopen(1, "wb", buffering=0)
out.write(message({"ready": True}))
while (asked := read_message(sys.stdin.buffer)) is not None:
    for job in asked["jobs"]:
        out.write(message({"id": job["id"], "rules": rules}))
"""


def test_the_scorer_judges_by_the_new_rules_from_the_next_run_on(tmp_path: Path) -> None:
    """What was judged is not judged again."""
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    answers: list[tuple[str, Any]] = []
    came = threading.Semaphore(0)

    def on_answer(job: Job, answer: Mapping[str, Any]) -> None:
        answers.append((job.run_id, answer["rules"]))
        came.release()

    scoring = ScorerProcess(
        tmp_path,
        rules=("old", "r"),
        on_answer=on_answer,
        metrics=Metrics(),
        command=(sys.executable, str(child)),
    )
    scoring.submit([Job(run_id="a", positions=[])])
    assert came.acquire(timeout=30)
    scoring.judge_by(("new", "r"))
    scoring.submit([Job(run_id="b", positions=[])])
    assert came.acquire(timeout=30)
    scoring.close()

    assert answers == [("a", "old"), ("b", "new")]

"""After an edit of the rules, what retention holds is judged by them: once, resumably, and as new versions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from captures import Driven, captures

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.scoring import worker
from redfirst.collector_processor.scoring.inline import InlineScoring
from redfirst.collector_processor.scoring.worker import revision_of_all
from redfirst.collector_processor.storing.sqlite import ASSEMBLY, SqliteStore
from redfirst.collector_processor.storing.store import Query
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.rules import load_rules

FIXTURES = captures(Path(__file__).parent.parent / "fixtures" / "otlp")
RULES = """
schema: redfirst.rules/1
rules:
  - {id: never-look, kind: forbid, call: get_order, severity: flag}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a run of one trace and a conversation of several, judged without rules."""
    running = Driven(tmp_path / "home")
    for name in (
        "anthropic-raw__openinference-anthropic__happy",
        "openai-raw__openinference-openai__multi_turn",
    ):
        for path in FIXTURES[name]:
            running.send(path.read_bytes(), "traces")
    running.wait(300, steps=30)
    running.end()
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "redfirst.yaml").write_text("rules: rules.yaml\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def versions(home: Path) -> dict[str, int]:
    store = SqliteStore(home / "store.sqlite3")
    found = {run.run_id: run.version for run in store.runs(Query())}
    store.close()
    return found


def checks_that_failed(home: Path) -> dict[str, list[str]]:
    store = SqliteStore(home / "store.sqlite3")
    found = {run.run_id: list(run.failed) for run in store.runs(Query())}
    store.close()
    return found


def test_edited_rules_judge_what_is_stored_once(home: Path, capsys: pytest.CaptureFixture[str]):
    """Every run gets a second version, the conversation's too; a second call finds nothing to do."""
    before = versions(home)
    assert set(before.values()) == {1}
    arguments = ["backfill", "--home", str(home), "--json"]

    assert main(arguments) == 0
    count = len(before)
    done = {"noted": count, "judged": count, "spans_gone": 0, "not_judged": 0, "by": "backfill"}
    assert json.loads(capsys.readouterr().out) == done
    assert versions(home) == dict.fromkeys(before, 2)
    assert any("never-look" in failed for failed in checks_that_failed(home).values())
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == {**done, "noted": 0, "judged": 0}
    assert versions(home) == dict.fromkeys(before, 2)


def test_a_backfill_that_was_broken_off_goes_on(home: Path):
    """What was noted is judged by whoever has the store next; nothing is judged twice."""
    store = SqliteStore(home / "store.sqlite3")
    noted = store.judge_again(since_ns=0, revision="of no checks", segments=range(99))
    assert (noted.noted, noted.spans_gone) == (len(versions(home)), 0)
    store.close()

    running = Driven(home)
    running.scoring.close()
    checks = (*default_checks(), *load_rules(RULES, "rules.yaml"))
    running.scoring = InlineScoring(running.journal.folder, checks, running.pipeline.answered)
    running.pipeline._scoring = running.scoring
    running.wait(60)
    assert running.store.left_to_judge_again() == 0
    assert {run.version for run in running.store.runs(Query())} == {2}
    assert running.store.outdated(since_ns=0, revision=revision_of_all(checks)) == 0
    running.end()


def test_a_period_is_said_as_elsewhere(home: Path, capsys: pytest.CaptureFixture[str]):
    """What was judged before it keeps its verdict."""
    assert main(["backfill", "--home", str(home), "--since", "2099-01-01"]) == 0
    assert capsys.readouterr().out == "0 runs judged again\n"
    assert set(versions(home).values()) == {1}


def test_a_journal_that_is_gone_leaves_the_cursor_where_it_was(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    """Or new records would take the places that stored runs name."""
    store = SqliteStore(home / "store.sqlite3")
    store.save_cursor(ASSEMBLY, Position(7, 100))
    store.close()
    shutil.rmtree(home / "journal")

    assert main(["backfill", "--home", str(home)]) == 0
    count = len(versions(home))
    assert capsys.readouterr().out == (
        f"0 runs judged again\n{count} runs left with the verdict before: spans are gone\n"
    )
    store = SqliteStore(home / "store.sqlite3")
    assert store.left_to_judge_again() == 0, "their spans are gone: they keep their verdicts"
    cursor = store.cursor(ASSEMBLY)
    store.close()
    assert cursor is not None
    assert cursor >= Position(7, 100)
    assert set(versions(home).values()) == {1}


def test_a_record_that_turns_out_to_be_damaged_is_counted_as_gone(
    home: Path, capsys: pytest.CaptureFixture[str]
):
    """The segments are all there, and a byte of each record in them is not what it was."""
    for segment in (home / "journal").glob("*.segment"):
        data = bytearray(segment.read_bytes())
        for place in range(64, len(data), 64):
            data[place] ^= 0xFF
        segment.write_bytes(data)

    assert main(["backfill", "--home", str(home), "--json"]) == 0
    count = len(versions(home))
    assert json.loads(capsys.readouterr().out) == {
        "noted": count,
        "judged": 0,
        "spans_gone": count,
        "not_judged": 0,
        "by": "backfill",
    }
    assert set(versions(home).values()) == {1}


def test_a_run_that_no_check_can_judge_is_told_apart(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Its spans are there: it is not said that they are gone."""

    def broken(*_: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(worker, "_judged", broken)
    assert main(["backfill", "--home", str(home)]) == 0
    out = capsys.readouterr().out
    assert "1 run left with the verdict before: checks gave no verdict" in out
    assert set(versions(home).values()) == {1}

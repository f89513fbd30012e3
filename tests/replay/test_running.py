"""A scenario against the agent as it is now: in recorded mode, with a live model, and in pytest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.replay.asked import Mode
from redfirst.replay.files import CannotWrite
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.proof import prove
from redfirst.replay.running import run, scenario_folders

from .conftest import Place


def test_the_same_scenario_is_red_on_the_defective_agent_and_green_on_the_fixed_one(place: Place) -> None:
    """In tools mode the model answers live; the fixed code stops it and the run ends well."""
    text = (place.scenario / "scenario.yaml").read_text()
    verify = (
        "  verify:\n    effect: read\n    responses:\n"
        "      - {when: {customer: C-1}, return: {customer: C-1, verified: true}, source: authored, times: any}\n"
    )
    (place.scenario / "scenario.yaml").write_text(text.replace("checks:\n", verify + "checks:\n", 1))

    before = run(place.scenario, place.project, at=0.0, mode=Mode.TOOLS, runs=2)
    after = run(place.scenario, place.project, at=0.0, mode=Mode.TOOLS, runs=2, agent="shop:guarded")

    assert (before.outcome, after.outcome) == (RunOutcome.RED, RunOutcome.GREEN), after.results[0].because


def test_live_runs_draw_different_numbers(place: Place) -> None:
    """Each run has random numbers of its own, so that a rate can be seen; the same runs again give the same."""
    one = run(place.scenario, place.project, at=0.0, mode=Mode.TOOLS, runs=8, agent="shop:sometimes")
    two = run(place.scenario, place.project, at=0.0, mode=Mode.TOOLS, runs=8, agent="shop:sometimes")

    assert len({result.outcome for result in one.results}) == 2
    assert [r.execution.events for r in one.results] == [r.execution.events for r in two.results]


def test_every_run_is_kept_with_its_spans(place: Place) -> None:
    """A kept run says what happened and can be scored again."""
    run(place.scenario, place.project, at=1.5)
    (folder,) = (place.project.home / "runs").iterdir()
    kept = json.loads((folder / "result.json").read_text())

    assert (kept["outcome"], kept["passed"], kept["violations"]) == ("RED", False, ["verify-before-cancel"])
    assert (kept["goal"], kept["ended"]) == (True, "completed")
    assert json.loads((folder / "spans.otlp.jsonl").read_text())["resourceSpans"]


def test_an_asked_for_call_that_the_code_refuses_is_a_live_decision(place: Place) -> None:
    """The report tells what the code decided from what the tape dictated."""
    prove(place.scenario, place.project)
    (result,) = run(place.scenario, place.project, at=0.0, agent="shop:guarded").results

    assert result.outcome is RunOutcome.NO_VERDICT
    assert result.execution.live_decisions[0] == "cancel was asked for and not run"


def test_scenarios_are_found_below_a_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once, in order, however it is spelt; one that is named from inside has a name all the same."""
    assert scenario_folders([place.project.root, place.scenario]) == [place.scenario]
    monkeypatch.chdir(place.scenario)
    assert scenario_folders([Path(), Path("../cancelled"), place.scenario]) == [place.scenario.resolve()]


# -- pytest


def pytest_on(place: Place, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", str(place.scenario), *options]
    return subprocess.run(command, cwd=place.project.root, capture_output=True, text=True, check=False)


def test_pytest_fails_a_red_scenario_with_rule_subject_and_events(place: Place) -> None:
    """Red is a failure that a developer can act on without opening a file."""
    prove(place.scenario, place.project)
    done = pytest_on(place)

    assert done.returncode == 1
    for words in (
        "verify-before-cancel (target)",
        "subject: cancel",
        '→ 2. cancel {"order":"A-1"} ok',
        "1 failed",
    ):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--redfirst-agent", "shop:off_tape"), 1, "1 error"),
        (("--redfirst-agent", "nowhere:make"), 1, "cannot be made: ModuleNotFoundError"),
    ],
)
def test_pytest_reports_a_harness_error_as_an_error(
    place: Place, options: tuple[str, ...], code: int, words: str
) -> None:
    """No verdict is an E, never an F and never a dot."""
    prove(place.scenario, place.project)
    done = pytest_on(place, *options)

    assert done.returncode == code
    assert words in done.stdout
    assert "1 error" in done.stdout


def test_pytest_skips_a_draft_and_says_so(place: Place) -> None:
    """Only what has been seen to fail gates."""
    done = pytest_on(place)
    drafted = pytest_on(place, "--redfirst-draft")

    assert "draft: not proven yet" in done.stdout
    assert done.returncode == 0
    assert drafted.returncode == 1


def test_pytest_on_two_workers_tells_what_does_not_count(place: Place) -> None:
    """Under xdist: red fails, a draft is skipped, quarantine is an expected failure, and the counts are told."""
    prove(place.scenario, place.project)
    scenarios = place.scenario.parent
    for name in ("draft", "held", "late", "edited"):
        shutil.copytree(place.scenario, scenarios / name)
    (scenarios / "edited" / "proof.json").write_text("{}")
    (scenarios / "draft" / "proof.json").unlink()
    today = datetime.now(UTC).date()
    held = f"quarantine: {{since: {today}, until: {today}, reason: flaky, owner: ana}}\n"
    (scenarios / "held" / "upkeep.yaml").write_text(f"expires: {today}\n{held}")
    (scenarios / "late" / "upkeep.yaml").write_text(held.replace(str(today), "2026-01-01"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "-rA", str(scenarios)]
    done = subprocess.run(command, cwd=place.project.root, capture_output=True, text=True, check=False)

    assert done.returncode == 1, done.stdout
    assert "1 failed, 2 skipped, 1 xfailed, 1 error" in done.stdout
    assert (
        "1 RED, 0 GREEN, 0 NO_VERDICT; 2 drafts skipped (1 void: changed since its proof); 1 quarantined"
        in done.stdout
    )
    assert "edited: void: proof.json is damaged" in done.stdout
    assert f"held: quarantined until {today} by ana: flaky" in done.stdout
    assert f"held: expired on {today}" in done.stdout
    assert "its quarantine ended on 2026-01-01" in done.stdout


def test_pytest_shows_no_control_character_of_a_trace(place: Place) -> None:
    """What an argument holds moves no cursor and names no window."""
    prove(place.scenario, place.project)
    with (place.project.root / "shop.py").open("a", encoding="utf-8") as agent:
        agent.write(
            'def titled():\n    def fail(tools):\n        raise RuntimeError("\\x1b]0;owned\\x07")\n'
            "    return make(extra=fail)\n"
        )
    done = pytest_on(place, "--redfirst-agent", "shop:titled")

    assert "0;owned" in done.stdout
    assert not {"\x1b", "\x07"}.intersection(done.stdout)


def test_pytest_repeats_a_live_scenario_inside_one_item(place: Place) -> None:
    """Two runs are one test, with the rate in the summary and on the report of JUnit XML."""
    prove(place.scenario, place.project)
    options = ("--redfirst-mode", "tools", "--redfirst-n", "2", "--redfirst-agent", "shop:persistent")
    done = pytest_on(place, *options, "--junitxml", "junit.xml")

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
    assert "cancelled: green 2 of 2 runs, Wilson 95 % [0.34, 1.00]" in done.stdout
    assert "green 2 of 2 runs" in (place.project.root / "junit.xml").read_text()


def test_an_exported_file_says_the_same_as_the_plugin(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain test file: red fails with the account, a miss is an error, a draft is skipped."""
    prove(place.scenario, place.project)
    shutil.copytree(
        place.scenario, place.scenario.parent / "draft", ignore=shutil.ignore_patterns("proof.json")
    )
    shutil.copytree(place.scenario, place.scenario.parent / "missed")
    other = place.scenario.parent / "missed" / "redfirst.yaml"
    other.write_text('agents:\n  shop: {call: "shop:off_tape"}\npath: ["../.."]\n')
    monkeypatch.chdir(place.project.root)
    assert main(["export", "pytest"]) == 0
    (place.project.root / "test_them.py").write_text(capsys.readouterr().out)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_them.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert "1 failed, 1 skipped, 1 error" in done.stdout, done.stdout
    assert '→ 2. cancel {"order":"A-1"} ok' in done.stdout
    assert "1 of 1 run(s) gave no verdict: Not on tape" in done.stdout


def test_pytest_does_not_import_the_agent_at_collection(place: Place) -> None:
    """Collection reads no code of the project."""
    Path(place.project.root / "shop.py").write_text("raise SystemExit('imported')\n")
    done = pytest_on(place, "--collect-only")

    assert done.returncode == 0
    assert "[recorded]" in done.stdout


def test_pytest_leaves_files_of_other_tools_alone_and_finds_ours_below_a_long_comment(place: Place) -> None:
    """A file is ours by its schema key, wherever that stands; a broken one is an error with file and line."""
    ours = place.scenario / "scenario.yaml"
    ours.write_text("# reviewed\n" * 1000 + ours.read_text())
    shutil.copytree(place.scenario, place.scenario / "broken")
    (place.scenario / "broken" / "scenario.yaml").write_text("schema: redfirst.scenario/1\nid: [\n")
    (place.scenario / "other").mkdir()
    (place.scenario / "other" / "scenario.yaml").write_text("steps: [redfirst.scenario/1 is not ours]\n")
    done = pytest_on(place)

    assert "1 skipped, 1 error" in done.stdout
    assert re.search(r"broken/scenario\.yaml:\d+: no YAML", done.stdout)
    assert "During handling" not in done.stdout


def test_a_run_that_cannot_be_kept_says_where(place: Place) -> None:
    """A home that may not be written is named, not raised as a traceback."""
    place.project.home.write_text("not a folder")

    with pytest.raises(CannotWrite, match=r"\.redfirst/runs/.*cannot be written"):
        run(place.scenario, place.project, at=0.0)

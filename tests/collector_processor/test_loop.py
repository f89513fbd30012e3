"""The loop from the command line: score, freeze, prove, run, on a day of the bookshop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main

ANSI = "\033["


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a day of traces."""
    root = tmp_path_factory.mktemp("day")
    with resources.as_file(resources.files("redfirst.examples.bookshop")) as source:
        shutil.copytree(source, root / "bookshop", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "redfirst.yaml").write_text(
        'agents:\n  support: {call: "bookshop.agent:make", input: messages}\n'
        "rules: bookshop/rules.yaml\ntraces: [traces.jsonl]\n"
    )
    subprocess.run(
        [sys.executable, "-m", "bookshop", "--spans", "traces.jsonl"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    return root


@pytest.fixture
def here(day: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the project, as the working directory."""
    root = tmp_path / "project"
    shutil.copytree(day, root)
    monkeypatch.chdir(root)
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    return root


def lines_of(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout, stderr."""
    code = main(command)
    captured = capsys.readouterr()
    return code, captured.out.splitlines(), captured.err


def flagged_by(capsys: pytest.CaptureFixture[str], check: str, words: str = "") -> str:
    """The trace id of the first run that a check failed, saying these words."""
    _, lines, _ = lines_of(capsys, "score", "traces.jsonl", "--rules", "bookshop/rules.yaml", "--json")
    for run in map(json.loads, lines):
        for verdict in run["verdicts"]:
            if (verdict["check"], verdict["outcome"]) == (check, "failed") and words in verdict["because"]:
                return str(run["trace_id"])
    raise AssertionError(check)


def test_from_a_flagged_run_to_a_test_that_gates(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """freeze, prove and run follow each other with the exit codes the page documents."""
    run_id = flagged_by(capsys, "large-refund-needs-approval")

    code, lines, _ = lines_of(capsys, "freeze", run_id[:10], "--json")
    assert code == 0
    draft = json.loads(lines[0])
    assert draft["completeness"] == dict.fromkeys(("request", "model", "tools", "state"), "recorded")
    assert draft["control"] is True

    code, _, _ = lines_of(capsys, "run")
    assert code == 3  # a draft does not count

    code, lines, _ = lines_of(capsys, "prove", "--json")
    report = json.loads(lines[0])
    assert (code, report["proven"], report["control"]) == (0, True, "passing run")
    assert report["decisions_tape"] == 6

    written = ("--junit", "junit.xml", "--sarif", "red.sarif", "--markdown", "summary.md")
    code, lines, _ = lines_of(capsys, "run", "--json", *written)
    assert (code, json.loads(lines[0])["outcome"]) == (1, "RED")
    assert '<testsuite name="redfirst" tests="1" failures="1" errors="0" skipped="0">' in Path(
        "junit.xml"
    ).read_text("utf-8")
    result, *_ = json.loads(Path("red.sarif").read_text("utf-8"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    scenario = Path(place["artifactLocation"]["uri"]).read_text("utf-8").splitlines()
    below = "\n".join(scenario[place["region"]["startLine"] - 1 :])
    assert re.search(r"(id|kind): (\S+)", below[below.index("id: ") :]).group(2) == result["ruleId"]  # type: ignore[union-attr]
    assert "| 🔴 RED | 0 of 1 |" in Path("summary.md").read_text("utf-8")

    code, lines, _ = lines_of(capsys, "run", "--mode", "tools", "-n", "3")
    assert code == 0
    assert any("green 3 of 3 runs, Wilson 95 % [0.44, 1.00]" in line for line in lines)


@pytest.mark.parametrize(
    ("variant", "refusal", "exit_code"),
    [
        ("raises", "other_reason", 1),
        ("not_called", "agent_not_called", 3),
        ("off_tape", "off_tape", 3),
        ("random_token", "nondeterministic", 3),
        ("asks_date", "off_tape", 3),  # ``date`` gives the recording's time, which is the same every time
    ],
)
def test_what_proves_nothing_is_refused_by_name(
    here: Path, capsys: pytest.CaptureFixture[str], variant: str, refusal: str, exit_code: int
) -> None:
    """The bookshop's misbehaving variants, each against the same scenario."""
    lines_of(capsys, "freeze", flagged_by(capsys, "verify-before-change", "cancel_order"))

    code, lines, _ = lines_of(capsys, "prove", "--agent", f"bookshop.variants:{variant}", "--json")

    report = json.loads(lines[0])
    assert (code, report["refusal"]) == (exit_code, refusal), report["because"]


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("freeze", "ffff"), 2, "run ffff: not among the 46 runs read. Flagged:"),
        (("freeze", "f", "--traces", "nowhere"), 2, "nowhere"),
        (("freeze", "f", "--rules", "none.yaml"), 2, "none.yaml: cannot be read: No such file or directory."),
        (("prove", "nowhere"), 2, "nowhere: there is no such folder"),
        (("run", "bookshop"), 2, "no scenario.yaml at or below it"),
        (("score", "redfirst.yaml"), 2, "redfirst.yaml"),
    ],
)
def test_bad_input_is_one_line_on_stderr(
    here: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], code: int, words: str
) -> None:
    """What, where, what to do; exit 2; never a traceback."""
    got, lines, err = lines_of(capsys, *command)

    assert (got, lines) == (code, [])
    assert words in err
    assert err.count("\n") == 1


def test_what_moved_since_the_recording_is_named_until_it_is_reviewed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tool's schema, the prompt and the model's name: each is told by drift, and by run as long as it is open."""
    lines_of(capsys, "freeze", flagged_by(capsys, "large-refund-needs-approval"))
    assert lines_of(capsys, "drift")[1][-1] == "1 SAME, 0 REVIEWED, 0 MOVED, 0 UNSEEN"
    for name, was, now in (
        ("tools.py", '"refund": _object(["order_id", "amount"]', '"refund": _object(["order_id"]'),
        ("tools.py", 'address={"type": "string"}', 'address={"type": "string"}, note={"type": "string"}'),
        ("policy.md", "# What our support agent may do", "# What our agent may do\n\nBe kind."),
        ("agent.py", 'MODEL = "scripted-1"', 'MODEL = "scripted-2"'),
    ):
        path = here / "bookshop" / name
        assert was in path.read_text()
        path.write_text(path.read_text().replace(was, now))

    code, lines, _ = lines_of(capsys, "drift", "--json")
    moved = json.loads(lines[0])["moved"]
    stale = json.loads(lines_of(capsys, "run", "--json")[1][0])["stale"]
    reviewed, told, _ = lines_of(capsys, "drift", "--reviewed")
    again, _, _ = lines_of(capsys, "drift")
    tally = lines_of(capsys, "run")[1][-1]
    (here / "bookshop" / "policy.md").write_text("Anything goes.")

    assert (code, moved) == (
        1,
        [
            "the model: scripted-1 → scripted-2",
            "tool refund: argument amount is optional now",
            "tool update_order: argument note is new",
            "the system prompt: 3 line(s) added, 1 removed",
        ],
    )
    assert stale == moved
    assert (reviewed, told[-1], again) == (0, "0 SAME, 1 REVIEWED, 0 MOVED, 0 UNSEEN", 0)
    assert "stale" not in tally
    assert lines_of(capsys, "drift")[0] == 1  # what was reviewed was another prompt
    assert lines_of(capsys, "drift", "--agent", "bookshop.variants:not_called")[0] == 3


def test_a_proof_that_stands_is_left_alone_and_a_refusal_names_its_agent(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The configured agent is the fixed one: nothing asks it to fail again."""
    lines_of(capsys, "freeze", flagged_by(capsys, "verify-before-change", "cancel_order"))
    broken = "bookshop.variants:dropped_guard"
    assert lines_of(capsys, "prove", "--agent", broken)[0] == 0

    code, lines, _ = lines_of(capsys, "prove")
    anew, told, _ = lines_of(capsys, "prove", "--again")

    assert (code, lines[1]) == (0, "  STANDS (recorded)")
    assert broken in lines[2]
    assert (anew, told[-1]) == (3, f"  the agent that was seen to fail it: --agent {broken}")


def test_the_demo_shows_what_it_promises_in_plain_80_columns(tmp_path: Path) -> None:
    """Every part as it is meant to be, nothing wider than a terminal, no colour in a pipe, everything kept."""
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", "demo", "--keep", str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert ANSI not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stdout.count("PROVEN") == 9
    for words in ("other_reason, exit 1", "GREEN in 5 of 5 live runs", "9 tests that have been seen to fail"):
        assert words in done.stdout
    assert len(list((tmp_path / "kept" / "scenarios").iterdir())) == 10
    assert "webhooks" not in (tmp_path / "kept" / "redfirst.yaml").read_text()
    _, _, hints = done.stdout.partition("Next:\n")
    show = next(line.split("  one run")[0] for line in hints.splitlines() if " show " in line)
    typed = subprocess.run(  # in a shell that has not activated the environment
        show.strip(),
        shell=True,
        cwd=tmp_path / "kept",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FLAGGED" in typed.stdout, typed.stderr


def test_score_and_freeze_lead_to_the_trace_in_the_teams_backend(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the other verbs do: whoever reads the run's id need not search for it."""
    with (here / "redfirst.yaml").open("a") as settings:
        settings.write("serve: {trace_url: 'https://ui.example/t/{trace_id}'}\n")
    run_id = flagged_by(capsys, "large-refund-needs-approval")

    _, lines, _ = lines_of(capsys, "score", "traces.jsonl", "--json")
    runs = [json.loads(line) for line in lines]
    assert {run["url"] for run in runs} == {f"https://ui.example/t/{run['trace_id']}" for run in runs}

    _, lines, _ = lines_of(capsys, "freeze", run_id)
    assert f"  trace: https://ui.example/t/{run_id}" in lines
    _, lines, _ = lines_of(capsys, "freeze", run_id, "--replace", "--json")
    assert json.loads(lines[0])["url"] == f"https://ui.example/t/{run_id}"

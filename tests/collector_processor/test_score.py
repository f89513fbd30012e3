"""``redfirst score`` reads files as one stream and prints one object, or one line, per run."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.recorded.files import read_files
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.errors import UnreadableInput

FIXTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
HAPPY = FIXTURES / "pydantic-ai__native-v1__happy.otlp.pb"
NO_CONTENT = FIXTURES / "pydantic-ai__native-v5__happy_nocontent.otlp.pb"
LOOP = sorted(str(path) for path in FIXTURES.glob("openai-agents__openinference-openai-agents__loop_cap*.pb"))
SPLIT = sorted(FIXTURES.glob("openai-raw__otel-openai-v2-legacy__tool_error*.pb"))


def test_json_is_one_object_per_run_and_nothing_else(capsys: pytest.CaptureFixture[str]):
    """stdout holds one JSON object a line; what was read is told on stderr."""
    assert main(["score", str(HAPPY), "--json"]) == 0
    out, err = capsys.readouterr()
    (run,) = [json.loads(line) for line in out.splitlines()]

    assert [call["name"] for call in run["tool_calls"]] == ["verify_identity", "get_order"]
    assert run["tokens"]["input"] == 522
    assert (run["model_calls"], run["errors"], run["repeats"], run["flagged"]) == (3, 0, 0, False)
    assert "1 run in 1 file, " in err


def test_all_paths_are_one_stream():
    """Spans and log records of one run that came in several bodies are one run."""
    stream = read_files(SPLIT)

    assert stream.files == len(SPLIT)
    assert stream.spans
    assert stream.logs


def test_a_table_is_eighty_columns_wide(capsys: pytest.CaptureFixture[str]):
    """Without --json a line a run fits a terminal and names the failed checks."""
    assert main(["score", *LOOP]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert all(len(line) <= 80 for line in lines)
    assert "step_cap" in lines[1]
    assert lines[1].endswith(" repeats, termination")


def test_explain_says_of_each_check_under_its_run(capsys: pytest.CaptureFixture[str]):
    """Every check of every run, with its reason, in eighty columns."""
    assert main(["score", str(HAPPY), "--explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    checks = [line.split()[1] for line in lines if line.startswith("check ")]

    assert all(len(line) <= 80 for line in lines)
    assert sorted(checks) == sorted(check.id for check in default_checks())
    assert sum(line.startswith("because ") for line in lines) == len(checks)


def test_coverage_names_the_checks_that_could_not_fire(capsys: pytest.CaptureFixture[str]):
    """Without content nobody knows arguments, results or the answer; with it every check can fire."""
    assert main(["score", str(HAPPY), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["coverage"]["blind"] == []
    assert main(["score", str(NO_CONTENT), "--json"]) == 0
    run = json.loads(capsys.readouterr().out)
    blind = {one["check"]: one["because"] for one in run["coverage"]["blind"]}

    assert set(blind) == {"arguments", "unverified_claim", "ungrounded_argument"}
    assert all(blind.values())


def test_a_flag_fails_only_when_asked():
    """The exit code is 0 for what was read, and 1 for a flagged run with --fail-on-flag."""
    assert main(["score", *LOOP, "--json"]) == 0
    assert main(["score", *LOOP, "--json", "--fail-on-flag"]) == 1
    assert main(["score", str(HAPPY), "--json", "--fail-on-flag"]) == 0


def test_a_gate_over_no_run_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """An agent that sent nothing, or to another file, is not green: 3 with --fail-on-flag, and 0 where nobody gates."""
    (tmp_path / "empty.jsonl").touch()
    for path in (tmp_path, tmp_path / "empty.jsonl"):
        assert main(["score", str(path)]) == 0
        assert main(["score", str(path), "--fail-on-flag"]) == 3
        assert "0 runs" in capsys.readouterr().err


def test_a_check_that_could_not_tell_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A row that flags nothing looks like a pass: what could have flagged it and lacks its evidence stands below."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "schema: redfirst.rules/1\nrules:\n  - {id: known-customer, kind: require_before, call: get_order, "
        "needs: {tool: verify_identity, where: {args.customer_id: C-1001}}}\n"
    )
    assert main(["score", str(NO_CONTENT), "--rules", str(rules)]) == 0
    assert "0 flagged; inconclusive: known-customer in 1 run\n" in capsys.readouterr().err
    assert main(["score", str(HAPPY), "--rules", str(rules)]) == 0
    assert capsys.readouterr().err.endswith("0 flagged\n")


def test_a_folder_is_read_and_other_files_are_counted(tmp_path: Path):
    """Below a folder, OTLP is read, gzipped or not, and anything else is skipped by reason."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "run.otlp.pb.gz").write_bytes(gzip.compress(HAPPY.read_bytes()))
    shutil.copy(HAPPY, tmp_path / "again.pb")
    (tmp_path / "notes.md").write_text("hello")
    (tmp_path / "other.json").write_text('{"a": 1}')
    stream = read_files([tmp_path])

    assert stream.files == 2
    assert sum(stream.skipped.values()) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("half.jsonl", '{"resourceSpans": []}\n{"resourceSp', r"half\.jsonl: line 2: .*cut short"),
        ("other.json", '{"a": 1}', r"other\.json: Expected a JSON object with resourceSpans"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, name: str, content: str, message: str):
    """The complaint names the file and the line."""
    (tmp_path / name).write_text(content)

    with pytest.raises(UnreadableInput, match=message):
        read_files([tmp_path / name])


def test_input_that_cannot_be_read_is_exit_code_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A missing file is one line on stderr and exit code 2."""
    assert main(["score", str(tmp_path / "nothing.pb")]) == 2
    out, err = capsys.readouterr()

    assert out == ""
    assert err.count("\n") == 1
    assert "nothing.pb" in err


def test_wrong_arguments_are_exit_code_two(capsys: pytest.CaptureFixture[str]):
    """No path and no verb are errors of use; asking for help is none."""
    assert main(["score"]) == 2
    assert main([]) == 2
    assert main(["score", "--help"]) == 0
    assert "PATH" in capsys.readouterr().out


def test_the_rules_of_the_project_are_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """As for show, freeze and serve; --rules names another file, and outside a project there are none."""
    (tmp_path / "away").mkdir()
    (tmp_path / "project" / "below").mkdir(parents=True)
    (tmp_path / "project" / "redfirst.yaml").write_text("rules: r.yaml\n")
    for place, name in (("project/r.yaml", "of-the-project"), ("other.yaml", "another")):
        rule = {"id": name, "kind": "max_calls", "call": "get_order", "max": 3}
        (tmp_path / place).write_text(json.dumps({"schema": "redfirst.rules/1", "rules": [rule]}))

    def checks(folder: str, *more: str) -> set[str]:
        monkeypatch.chdir(tmp_path / folder)
        assert main(["score", str(HAPPY), "--json", *more]) == 0
        return {verdict["check"] for verdict in json.loads(capsys.readouterr().out)["verdicts"]}

    default = checks("away")
    assert checks("project/below") - default == {"of-the-project"}
    assert checks("project", "--rules", "../other.yaml") - default == {"another"}
    assert checks("away", "--rules", "../other.yaml") - default == {"another"}


def test_what_is_hidden_in_a_directory_is_skipped_and_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Replays that redfirst kept beside the traces are no runs of production; a path named on its own is read."""
    body = next(FIXTURES.glob("*.pb")).read_bytes()
    for name in ("trace.otlp.pb", ".redfirst/runs/1/spans.otlp.pb", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(body)

    assert main(["score", str(tmp_path)]) == 0
    assert (
        "in 1 file, 0 flagged; 1 file skipped: hidden; 1 file skipped: not named like OTLP"
        in capsys.readouterr().err
    )
    assert main(["score", str(tmp_path / ".redfirst")]) == 0
    assert "in 1 file, " in capsys.readouterr().err


def test_a_table_of_prices_is_named_by_the_command_or_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every price 1, a million tokens cost 1; without a table of one's own, the dated one is used."""
    prices = "{input: 1, cached: 1, output: 1}"
    models = f"  gpt-4o-mini: {prices}\n  gpt-4o-mini-2024-07-18: {prices}\n"
    (tmp_path / "prices.yaml").write_text(f"as_of: 2026-01-02\nmodels:\n{models}")
    (tmp_path / "redfirst.yaml").write_text("prices: prices.yaml\n")

    def costs(*more: str) -> list[tuple[float, object]]:
        assert main(["score", *LOOP, "--json", *more]) == 0
        runs = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        used = [run["tokens"]["input"] + run["tokens"]["output"] for run in runs]
        found = [run["metrics"]["cost"] for run in runs]
        return [
            (round(cost["amount"] * 1e6 / tokens, 9), cost["as_of"])
            for cost, tokens in zip(found, used, strict=True)
        ]

    shipped = costs()
    assert costs("--prices", str(tmp_path / "prices.yaml")) == [(1.0, "2026-01-02")]
    monkeypatch.chdir(tmp_path)
    assert costs() == [(1.0, "2026-01-02")]
    assert shipped[0][1] == "2026-06-20"
    assert 0.075 <= shipped[0][0] <= 0.60
    assert main(["score", *LOOP, "--prices", "nowhere.yaml"]) == 2

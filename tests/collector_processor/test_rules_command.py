"""``redfirst rules lint|explain|test``: complaints with lines, one sentence a rule, outcomes as expected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.evaluators.rules import load_rules, read_rules

FIXTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
HAPPY = FIXTURES / "pydantic-ai__native-v1__happy.otlp.pb"
"""One run: verify_identity, then get_order."""

RULES = """\
schema: redfirst.rules/1
rules:
  - id: look-first
    kind: require_before
    call: get_order
    needs: verify_identity
  - id: never
    kind: forbid
    call: delete_everything
tests:
  - name: in order
    steps: [verify_identity, get_order]
    expect: {look-first: passed}
  - name: out of order
    steps: [get_order, verify_identity]
    expect: {look-first: failed, never: passed}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write the rules file of a project, and go there."""
    monkeypatch.chdir(tmp_path)

    def file(text: str = RULES) -> str:
        (tmp_path / "rules.yaml").write_text(text, "utf-8")
        return "rules.yaml"

    return file


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout with folded lines, stderr."""
    code = main(["rules", *arguments])
    out, err = capsys.readouterr()
    assert all(len(line) <= 80 for line in out.splitlines() if not line.startswith("{"))
    return code, " ".join(out.split()) if "--json" not in arguments else out, err


def test_tests_that_are_met_are_quiet(write, capsys):
    """Exit code 0, and what has no test is named."""
    code, out, err = run(capsys, "test", write())

    assert (code, out) == (0, "")
    assert "2 test(s), 0 not as expected" in err
    assert "without a test" not in err


def test_a_test_that_is_not_met_is_told_with_its_line(write, capsys):
    """Exit code 1: what came out, what was expected, and why."""
    name = write(RULES.replace("look-first: failed, never: passed", "look-first: passed"))
    code, out, err = run(capsys, "test", name)

    assert code == 1
    assert out == (
        "rules.yaml:14: out of order: look-first failed, expected passed: get_order ran without an earlier"
        " verify_identity; verify_identity came only afterwards"
    )
    assert "2 test(s), 1 not as expected" in err
    assert "without a test: never" in err


def test_tests_as_json(write, capsys):
    """One object a test."""
    name = write(RULES.replace("look-first: failed, never: passed", "look-first: passed"))
    code, out, _ = run(capsys, "test", name, "--json")
    first, second = [json.loads(line) for line in out.splitlines()]

    assert code == 1
    assert first == {"test": "in order", "line": 11, "passed": True, "because": None, "misses": []}
    assert (second["passed"], second["misses"][0]["expected"], second["misses"][0]["outcome"]) == (
        False,
        "passed",
        "failed",
    )


def test_a_file_without_tests_has_no_verdict(write, capsys):
    """Exit code 3, and what to do."""
    code, _, err = run(capsys, "test", write(RULES.partition("tests:")[0]))

    assert code == 3
    assert "rules.yaml has no tests: write some under tests:, or pass --traces PATH" in err


def test_a_test_may_be_a_recorded_trace(write, capsys):
    """Its path is from the folder of the rules file; a trace without a run has no verdict."""
    head = RULES.partition("tests:")[0]
    name = write(f"{head}tests:\n  - {{trace: {HAPPY}, expect: {{look-first: passed}}}}\n")
    assert run(capsys, "test", name)[0] == 0

    Path("empty.jsonl").write_text('{"resourceSpans": []}\n', "utf-8")
    name = write(f"{head}tests:\n  - {{trace: empty.jsonl, expect: {{look-first: passed}}}}\n")
    code, out, _ = run(capsys, "test", name)
    assert code == 3
    assert out == "rules.yaml:11: line 11: empty.jsonl holds no run"
    code, out, _ = run(capsys, "test", name, "--json")
    assert (code, json.loads(out)["passed"]) == (3, None)


def test_rules_over_traces(write, capsys):
    """How each came out: 0 when all is right, 1 when one failed, 3 when nothing could be judged."""
    code, out, err = run(capsys, "test", write(), "--traces", str(HAPPY))
    assert code == 0
    assert "look-first 1 0 0 0" in out
    assert "2 check(s) over 1 run(s)" in err

    backwards = RULES.replace(
        "call: get_order\n    needs: verify_identity", "call: verify_identity\n    needs: get_order"
    )
    code, out, _ = run(capsys, "test", write(backwards), "--traces", str(HAPPY), "--json")
    first, second = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert (first["check"], first["failed"], len(first["failed_in"])) == ("look-first", 1, 1)
    assert (second["check"], second["passed"], second["failed_in"]) == ("never", 1, [])
    code, out, _ = run(capsys, "test", "rules.yaml", "--traces", str(HAPPY))
    assert code == 1
    assert "look-first 0 1 0 0" in out

    other = "schema: redfirst.rules/1\nrules: [{id: a, kind: require_before, call: x, needs: y}]\n"
    assert run(capsys, "test", write(other), "--traces", str(HAPPY))[0] == 3


LINTED = """\
schema: redfirst.rules/1
rules:
  - id: look-first
    kind: require_before
    call: get_ordr
    needs: verify_identity
  - id: path
    kind: forbid
    call: {tool: get_order, where: {args.ordr_id: 1}}
  - id: never
    kind: forbid
    call: {tool: get_order, where: {args.order_id: {gt: 5, lt: 5}}}
state:
  allowed: [{path: orders.**}]
"""


def test_lint_names_the_line_and_the_nearest(write, capsys):
    """A tool and a path that no run has, a condition that never holds, a wildcard, and what judged nothing."""
    code, out, err = run(capsys, "lint", write(LINTED), "--traces", str(HAPPY), "--json")
    found = [json.loads(line) for line in out.splitlines()]

    assert code == 1
    assert [(one["line"], one["level"], one["what"]) for one in found] == [
        (3, "warning", "vacuous"),
        (5, "error", "unknown_tool"),
        (7, "warning", "vacuous"),
        (9, "error", "unknown_path"),  # the definition of the tool says what it takes
        (10, "warning", "vacuous"),
        (12, "error", "unreachable"),
        (13, "warning", "vacuous"),
        (14, "warning", "wildcard"),
    ]
    assert found[1]["message"] == "no run has a tool get_ordr; did you mean get_order?"
    assert "did you mean order_id?" in found[3]["message"]
    assert (
        found[5]["message"]
        == "args.order_id can never be more than 5 and less than 5: the bounds leave no number"
    )
    assert "orders.** lets every row of orders change" in found[7]["message"]
    assert "4 check(s), " in err
    assert "over 1 run(s)" in err


def test_lint_on_a_terminal(write, capsys):
    """The usual file:line: level: message."""
    code, out, _ = run(capsys, "lint", write(LINTED), "--traces", str(HAPPY))

    assert code == 1
    assert "rules.yaml:5: error: no run has a tool get_ordr; did you mean get_order?" in out


def test_lint_without_runs_says_so(write, capsys):
    """Tools and paths cannot be compared; a warning alone is 0, and 1 with --strict."""
    good = "schema: redfirst.rules/1\nstate: {allowed: [{path: orders.**}]}\n"
    code, out, err = run(capsys, "lint", write(good))

    assert code == 0
    assert "no runs to compare with" in err
    assert "warning: orders.** lets every row" in out
    assert run(capsys, "lint", "rules.yaml", "--strict")[0] == 1
    assert run(capsys, "lint", write())[0] == 0


def test_explain_is_one_sentence_a_rule(write, capsys):
    """With the severity, on a terminal and as JSON."""
    code, out, _ = run(capsys, "explain", write())
    assert code == 0
    assert out == (
        "look-first flag Every call of get_order comes after a call of verify_identity that ended ok; calls of one"
        " model turn are simultaneous; what cannot be told leaves it inconclusive."
        " never flag There is no call of delete_everything; what cannot be told leaves it inconclusive."
    )

    code, out, _ = run(capsys, "explain", "rules.yaml", "--json")
    record = json.loads(out.splitlines()[1])
    assert (record["check"], record["severity"], record["class"]) == ("never", "flag", "trajectory")


def test_the_rules_of_the_project_are_the_default(write, capsys):
    """``rules:`` of redfirst.yaml; without it, what to do."""
    write()
    assert main(["rules", "explain"]) == 2
    assert "no rules file: name one, or set rules: in redfirst.yaml" in capsys.readouterr().err
    Path("redfirst.yaml").write_text("rules: rules.yaml\n", "utf-8")
    assert run(capsys, "explain")[0] == 0


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (
            "tests: [{expect: {no-such: passed}}]",
            10,
            "there is no check no-such here; known: look-first, never",
        ),
        ("tests: [{expect: {}}]", 10, "expect: expected outcomes by rule"),
        (
            "tests: [{steps: [{tool: x, user: y}], expect: {never: passed}}]",
            10,
            "a step is one of tool, event",
        ),
        ("tests: [{steps: [{at: noon, tool: x}], expect: {never: passed}}]", 10, "at takes a date and time"),
        ("tests: [{expect: {never: green}}]", 10, "expect: expected outcomes by rule"),
    ],
)
def test_a_faulty_test_is_named(write, capsys, text, line, what):
    """With its line, as every fault of the file."""
    name = write(RULES.partition("tests:")[0] + text + "\n")

    assert main(["rules", "test", name]) == 2
    err = capsys.readouterr().err
    assert f"rules.yaml:{line}: " in err
    assert what in err


def test_what_passing_runs_share_is_a_rules_file(write, capsys, tmp_path):
    """One run that nothing flags; a run of the same kind without its read is a note once enough runs support it."""
    code, _, err = run(capsys, "learn", str(HAPPY), "--by", "first_tools")
    assert code == 0
    assert "1 kind(s) of task learned from 1 passing runs" in err
    assert "1 of them with fewer than 20 passing runs: nothing is asked of these" in err

    assert main(["rules", "learn", str(HAPPY), "--by", "first_tools"]) == 0
    text = capsys.readouterr().out
    (learned,) = read_rules(text, "learned.yaml").shape.learned.signatures
    assert learned.signature == "verify_identity, get_order"
    assert (learned.runs, learned.tools) == (1, {"get_order": [1], "verify_identity": [1]})
    assert [check.id for check in load_rules(text, "learned.yaml")] == [
        "learned.recall",
        "learned.tool_selection",
    ]


def test_nothing_is_learned_from_runs_that_are_flagged(write, capsys):
    """A rule that the run breaks makes it no example; without one there is no verdict."""
    rules = write(
        RULES.replace("call: get_order", "call: verify_identity").replace(
            "needs: verify_identity", "needs: x"
        )
    )
    code, out, err = run(capsys, "learn", str(HAPPY), "--rules", rules)

    assert (code, out) == (3, "")
    assert "0 kind(s) of task learned from 0 passing runs" in err

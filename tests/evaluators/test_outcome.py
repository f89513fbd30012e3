"""What a task's run must come to, and functions as checks."""

import sys
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from redfirst.evaluators import CheckClass, ConfigurationError, Outcome, Severity, Verdict
from redfirst.evaluators import python_check as python_checks
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import ROOT, a_run, call

P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_APPLICABLE
OPEN = Outcome.INCONCLUSIVE


def verdict_of(wanted: dict[str, Any], **run: Any) -> Verdict:
    (verdict,) = judge(a_run(**run), [check_from_spec({"kind": "outcome", "id": "outcome:t", **wanted})])
    return verdict


@pytest.mark.parametrize(
    ("wanted", "answer", "outcome"),
    [
        ({"equals": "Done."}, "  done.\n", P),
        ({"equals": "Done."}, "Done. Really.", F),
        ({"equals": 42.5}, "42.50", P),
        ({"contains": "A-1"}, "order a-1 is yours", P),
        ({"contains": "A-1"}, "order A-10 is yours", F),
        ({"contains": [1234.5, "2026-05-06"]}, "1,234.50 on May 6, 2026", P),
        ({"contains": [1234.5, "2026-05-06"]}, "1,234.50 on May 7, 2026", F),
        ({"contains": 12}, "112 or 12.5", F),
        ({"contains": "120.00"}, "it costs 120", P),
        ({"matches": "(?i)cancel+ed"}, "CANCELLED", P),
        ({"matches": "^cancelled$"}, "not cancelled", F),
        ({"matches": "x"}, "y" * 20_000, OPEN),
        ({"contains": "A-1"}, None, F),
    ],
)
def test_the_answer_is_held_to_what_was_wanted(
    wanted: dict[str, Any], answer: str | None, outcome: Outcome
) -> None:
    """By text, by number however written, by day however written, by pattern."""
    verdict = verdict_of({"answer": wanted}, answer=answer)

    assert verdict.outcome is outcome
    assert [item.pointer for item in verdict.evidence] == (["/answer"] if outcome is F else [])


def test_an_answer_that_was_not_seen_is_no_failure() -> None:
    """Not recorded, or of an incomplete trace."""
    wanted = {"answer": {"contains": "A-1"}}

    assert verdict_of(wanted, answer=None, missing=["answer"]).outcome is OPEN
    assert verdict_of(wanted, answer="no", complete=False).outcome is OPEN
    assert verdict_of(wanted, answer="A-1", complete=False).outcome is OPEN


def test_all_parts_must_hold_and_a_wrong_one_beats_an_open_one() -> None:
    """One of two parts right is half, and a failure; a state that was not reported leaves the rest open."""
    wanted = {"answer": {"contains": "A-1"}, "state": [{"path": "orders.A-1", "equals": "gone"}]}
    good, bad = {"orders": {"A-1": "gone"}}, {"orders": {"A-1": "new"}}

    right = verdict_of(wanted, answer="A-1", states=[bad, good])
    half = verdict_of(wanted, answer="A-1", states=[good, bad])
    assert (right.outcome, right.numerator, right.denominator) == (P, 2, 2)
    assert (half.outcome, half.numerator, half.denominator) == (F, 1, 2)
    assert [finding.subject for finding in half.findings] == ["orders.A-1"]
    assert verdict_of(wanted, answer="A-1").outcome is OPEN
    assert verdict_of(wanted, answer="A-2").outcome is F
    assert right.check_class is CheckClass.GOAL


def test_a_run_of_another_task_is_not_judged() -> None:
    """``when`` picks the runs, as of every check of a task."""
    wanted = {"when": {"request": {"matches": "cancel"}}, "answer": {"contains": "A-1"}}

    assert verdict_of(wanted, request="refund", answer="no").outcome is N
    assert verdict_of(wanted, request="cancel", answer="no").outcome is F


CODE = """
from redfirst.evaluators import Evidence, Finding, failed, passed

def few(run, *, most=1):
    if len(run.tool_calls) > most:
        where = Evidence(span_id=run.root_span_id)
        return failed("too many", findings=[Finding(subject="calls", because="too many", evidence=(where,))])
    return passed("few enough")

def broken(run):
    raise KeyError("amount")

number = 3
"""


@pytest.fixture
def my_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the project."""
    path = tmp_path / "my_checks.py"
    path.write_text(CODE, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_checks", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return path


def rules(text: str) -> Any:
    return load_rules("schema: redfirst.rules/1\n" + textwrap.dedent(text), "rules.yaml")


@pytest.mark.usefixtures("my_checks")
def test_a_rule_may_be_a_function() -> None:
    """It judges with its parameters, class and severity; what it raises leaves the verdict open."""
    few, broken = rules(
        """
        rules:
          - {id: few-calls, kind: python, function: "my_checks:few", params: {most: 2}, class: budget, severity: page}
          - {id: fragile, kind: python, function: "my_checks:broken"}
        """
    )
    one = call("x")
    (two, three, raised) = (
        *judge(a_run(one, one), [few]),
        *judge(a_run(one, one, one), [few]),
        *judge(a_run(), [broken]),
    )

    assert (two.outcome, three.outcome, raised.outcome) == (P, F, OPEN)
    assert (three.check_class, three.severity) == (CheckClass.BUDGET, Severity.PAGE)
    assert raised.because == "evaluator error: KeyError: 'amount'"


@pytest.mark.usefixtures("my_checks")
def test_a_task_may_be_judged_by_a_function() -> None:
    """Beside the other parts of its outcome."""
    text = """
        tasks:
          - id: t
            when: {request: {matches: please}}
            outcome: {function: "my_checks:few", params: {most: 0}, answer: {contains: done}}
        """
    (check,) = rules(text)
    (verdict,) = judge(a_run(call("x")), [check])

    assert (check.id, verdict.outcome, verdict.numerator, verdict.denominator) == ("outcome:t", F, 1, 2)
    assert verdict.evidence[0].span_id == ROOT


def test_the_revision_follows_the_code_and_the_parameters(
    my_checks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another source of the module, or another parameter, is another meaning; a severity is not."""

    def revision(more: str = "") -> str:
        monkeypatch.delitem(sys.modules, "my_checks", raising=False)
        line = f'  - {{id: a, kind: python, function: "my_checks:few"{more}}}\n'
        return str(rules(f"rules:\n{line}")[0].revision)

    first = revision()
    assert first == revision(", severity: page") != revision(", params: {most: 5}")
    my_checks.write_text(CODE.replace("too many", "far too many"), "utf-8")
    import linecache

    linecache.clearcache()
    assert revision() != first


@pytest.mark.usefixtures("my_checks")
@pytest.mark.parametrize(
    ("named", "why"),
    [
        ('"my_checks:none"', "my_checks:none cannot be imported (AttributeError"),
        ('"no_such_module_here:f"', "cannot be imported (ModuleNotFoundError"),
        ('"my_checks:number"', "is int, which cannot be called"),
        ('"my_checks:few", params: {least: 1}', "does not take (run, least=…)"),
        ("elsewhere", "no installed check is named elsewhere"),
        ('"os.path:"', "function: expected module:function, or the name of an installed check"),
    ],
)
def test_a_function_that_cannot_be_used_is_a_mistake_with_a_line(named: str, why: str) -> None:
    """As the file is loaded, not run by run."""
    with pytest.raises(ConfigurationError) as caught:
        rules(f"rules:\n  - {{id: a, kind: python, function: {named}}}\n")

    assert str(caught.value).startswith("rules.yaml:3: ")
    assert why in str(caught.value)


def test_an_installed_check_is_imported_when_a_rule_names_it(
    monkeypatch: pytest.MonkeyPatch, my_checks: Path
) -> None:
    """Listing those that packages offer imports none of them."""
    point = EntryPoint(name="few-calls", value="my_checks:few", group=python_checks.GROUP)
    monkeypatch.setattr(
        python_checks, "entry_points", lambda *, group: [point] if group == "redfirst.checks" else []
    )

    assert list(python_checks.installed()) == ["few-calls"]
    assert "my_checks" not in sys.modules
    (check,) = rules("rules:\n  - {id: a, kind: python, function: few-calls}\n")
    assert judge(a_run(call("x")), [check])[0].outcome is P
    assert "my_checks" in sys.modules


def test_only_a_rules_file_may_name_code(my_checks: Path) -> None:
    """A declaration from a scenario imports nothing."""
    for spec in (
        {"kind": "python", "id": "a", "function": "my_checks:few"},
        {"kind": "outcome", "id": "outcome:a", "function": "my_checks:few"},
    ):
        with pytest.raises(ConfigurationError, match="only a project's rules file may"):
            check_from_spec(spec)
    assert "my_checks" not in sys.modules

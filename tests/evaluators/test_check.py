"""Checks sign their verdicts, survive their own faults, and can be rebuilt from what they were declared by."""

import json
from dataclasses import replace

import pytest

from redfirst.evaluators import CheckClass, ConfigurationError, Outcome, Severity, Trajectory, Verdict, passed
from redfirst.evaluators.check import (
    Check,
    check_from_spec,
    default_checks,
    judge,
    revision_of,
    severity_named,
)
from redfirst.evaluators.testing import a_run, call


def check_of(evaluate: object) -> Check:
    """A check around a function."""
    return replace(default_checks()[0], id="mine", evaluate=evaluate)


def test_a_verdict_is_signed() -> None:
    """Name, class, severity and revision of the check stand on its verdict."""
    checks = default_checks()

    verdicts = judge(a_run(call("f")), checks)

    assert [(v.check, v.check_class, v.severity, v.revision) for v in verdicts] == [
        (c.id, c.check_class, c.severity, c.revision) for c in checks
    ]
    assert [(c.id, c.check_class, c.severity) for c in checks] == [
        ("repeats", CheckClass.TRAJECTORY, Severity.FLAG),
        ("termination", CheckClass.GOAL, Severity.FLAG),
        ("tool_errors", CheckClass.TRAJECTORY, Severity.NOTE),
        ("recovery", CheckClass.TRAJECTORY, Severity.NOTE),
        ("arguments", CheckClass.TRAJECTORY, Severity.NOTE),
        ("unverified_claim", CheckClass.TRAJECTORY, Severity.NOTE),
        ("ungrounded_argument", CheckClass.TRAJECTORY, Severity.NOTE),
    ]


def test_a_check_that_raises_harms_no_other() -> None:
    """Its verdict is inconclusive and says so; the others stand."""

    def broken(run: Trajectory) -> Verdict:
        raise KeyError("amount")

    def fine(run: Trajectory) -> Verdict:
        return passed("fine")

    first, second = judge(a_run(), [check_of(broken), check_of(fine)])

    assert first.outcome is Outcome.INCONCLUSIVE
    assert first.because == "evaluator error: KeyError: 'amount'"
    assert second.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("answer", "said"), [(None, "None"), (True, "a value of type bool"), ("passed", "a value of type str")]
)
def test_a_check_that_returns_no_verdict_harms_no_other(answer: object, said: str) -> None:
    """Its verdict is inconclusive, signed, and says what came back."""
    first, second = judge(a_run(), [check_of(lambda run: answer), check_of(lambda run: passed("fine"))])

    assert (first.outcome, first.check) == (Outcome.INCONCLUSIVE, "mine")
    assert first.because == f"evaluator error: returned {said}; a check returns a Verdict"
    assert second.outcome is Outcome.PASSED


def test_an_error_without_words_is_told_all_the_same() -> None:
    """An error whose text cannot be made is named by its type."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    def broken(run: Trajectory) -> Verdict:
        raise Mute

    (verdict,) = judge(a_run(), [check_of(broken)])

    assert verdict.because == "evaluator error: Mute: (its text raised ValueError)"


def test_a_severity_that_depends_on_the_run_is_asked_of_it() -> None:
    """Where it cannot be told, the check's own stands, and the verdict is inconclusive."""

    def unknown(run: Trajectory) -> Severity:
        raise KeyError

    def checks(severity_in: object) -> list[Check]:
        return [replace(check_of(lambda run: passed("fine")), severity_in=severity_in)]

    (told,) = judge(a_run(), checks(lambda run: Severity.PAGE))
    (untold,) = judge(a_run(), checks(unknown))

    assert (told.outcome, told.severity) == (Outcome.PASSED, Severity.PAGE)
    assert (untold.outcome, untold.severity) == (Outcome.INCONCLUSIVE, Severity.FLAG)


def test_a_stop_of_the_process_is_not_swallowed() -> None:
    """What is no Exception passes through."""

    def stopped(run: Trajectory) -> Verdict:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(a_run(), [check_of(stopped)])


SPECS = [
    {"kind": "repeats"},
    {"kind": "termination", "id": "ends", "severity": "page"},
    {"kind": "require_before", "id": "r", "call": "a", "needs": "b", "same": ["args.x"]},
    {"kind": "forbid", "id": "f", "call": ["a", "b"], "after": {"tool": "c"}},
    {"kind": "max_calls", "id": "m", "call": "a", "max": 1},
    {"kind": "recall", "id": "recall", "required_calls": ["a"]},
    {"kind": "state.required", "id": "state.required", "required": [{"path": "a", "equals": None}]},
    {"kind": "state.collateral", "id": "state.collateral", "scopes": [{"allowed": [{"path": "**"}]}]},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["kind"])
def test_a_check_is_rebuilt_from_its_declaration(spec: dict[str, object]) -> None:
    """A scenario carries the declaration as JSON and judges by the same check with the same revision."""
    check = check_from_spec(spec)

    again = check_from_spec(json.loads(json.dumps(check.spec)))

    assert again == check
    assert hash(again) == hash(check)
    assert judge(a_run(call("a")), [again]) == judge(a_run(call("a")), [check])


def test_the_revision_is_the_meaning() -> None:
    """Defaults written out, name and severity change nothing; a parameter or a new evaluator does."""
    short = check_from_spec({"kind": "max_calls", "id": "m", "call": "a", "max": 1})
    long = check_from_spec(
        {
            "kind": "max_calls",
            "id": "n",
            "severity": "page",
            "call": {"tool": ["a"]},
            "max": 1,
            "attempts": False,
        }
    )
    other = check_from_spec({"kind": "max_calls", "id": "m", "call": "a", "max": 2})

    assert short.revision == long.revision != other.revision
    assert revision_of("k", {}, 1) != revision_of("k", {}, 2)


def test_a_spec_belongs_to_its_check() -> None:
    """Changing the data a check was built from does not change the check."""
    spec = {"kind": "recall", "id": "recall", "required_calls": ["a"]}
    check = check_from_spec(spec)

    spec["required_calls"].append("b")  # type: ignore[attr-defined]

    assert check.spec["required_calls"] == ["a"]


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"kind": "repeats", "max": 3}, "check repeats: unknown key 'max'"),
        ({"kind": "repeats", "severity": "high"}, "unknown severity 'high'"),
        ({"kind": "forbid", "id": "f"}, "check 'f': forbid: call is missing"),
        ({"kind": "forbit", "id": "f"}, "unknown kind forbit; did you mean forbid"),
        ({"id": "f"}, "kind is missing"),
    ],
)
def test_a_wrong_declaration_is_a_configuration_error(spec: dict[str, object], what: str) -> None:
    """The message names the check and the fault."""
    with pytest.raises(ConfigurationError, match=what):
        check_from_spec(spec)


def test_severities_have_names() -> None:
    """Lower case in files, the enum in code."""
    assert severity_named("flag") is Severity.FLAG
    with pytest.raises(ConfigurationError, match="use info, note, flag or page"):
        severity_named(3)


def test_default_checks_need_no_pydantic() -> None:
    """A process that declares no rules does not pay for reading them."""
    import subprocess
    import sys

    code = (
        "import sys, redfirst.evaluators.check as c; c.default_checks();"
        "sys.exit(any(m in sys.modules for m in ('pydantic', 'yaml', 'numpy')))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""The thirty rules that redfirst must be able to say: each ships with runs that pass, fail and stay open."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redfirst.evaluators.check import judge
from redfirst.evaluators.rule_tests import RuleTest
from redfirst.evaluators.rules import Rules, read_rules
from redfirst.evaluators.sensitivity.rule_operators import rule_results
from redfirst.evaluators.verdict import Outcome

SOURCES = Path(os.environ.get("REDFIRST_SOURCES", Path(__file__).parents[2]))
FILES = sorted((SOURCES / "examples" / "rules").glob("*.yaml"))
TAU2 = sorted((SOURCES / "examples" / "tau2").glob("*.yaml"))
READ = {path.stem: read_rules(path.read_text("utf-8"), path.name) for path in FILES}
TESTS = [
    pytest.param(rules, test, id=f"{name}: {test.name}")
    for name, rules in READ.items()
    for test in rules.tests
]
LIMITED_TO_NONE = {"no-recursive-removal", "no-sudo"}
"""A tool that may be called 0 times passes nothing: what is right of it is not applicable."""


@pytest.mark.parametrize(("rules", "test"), TESTS)
def test_every_expectation_is_met(rules: Rules, test: RuleTest) -> None:
    """Each run has the outcomes that the file says."""
    assert test.run is not None
    found = {verdict.check: verdict.outcome for verdict in judge(test.run, rules.checks)}

    assert {name: found[name] for name in test.expect} == test.expect


def test_every_rule_passes_fails_and_stays_open() -> None:
    """No rule ships that was not seen to do all three, and the five domains have 33 rules for the thirty sentences."""
    outcomes: dict[str, set[Outcome]] = {}
    for rules in READ.values():
        for check in rules.checks:
            outcomes[check.id] = set()
        for test in rules.tests:
            for name, outcome in test.expect.items():
                outcomes[name].add(outcome)

    for name, seen in outcomes.items():
        right = Outcome.NOT_APPLICABLE if name in LIMITED_TO_NONE else Outcome.PASSED
        assert {right, Outcome.FAILED, Outcome.INCONCLUSIVE} <= seen, name
    assert len(outcomes) == 33


@pytest.mark.parametrize("path", TAU2, ids=lambda path: path.name)
def test_the_rules_of_a_published_policy_do_what_their_tests_say(path: Path) -> None:
    """Every expectation is met, and every change of a rule breaks one."""
    rules = read_rules(path.read_text("utf-8"), path.name)

    for test in rules.tests:
        assert test.run is not None
        found = {verdict.check: verdict.outcome for verdict in judge(test.run, rules.checks)}
        assert {name: found[name] for name in test.expect} == test.expect, test.name
    untold = [one for one in rule_results(rules.checks, rules.tests, ()) if one.by_test is None]
    assert untold == []

"""Changes of a rule: would anything notice if it said something else?"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators.check import Check, check_from_spec, judge
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.rule_kinds.happenings import reserved
from redfirst.evaluators.rule_tests import RuleTest
from redfirst.evaluators.trajectory import Trajectory

_BOUNDS = {"gt": "ge", "ge": "gt", "lt": "le", "le": "lt"}
_OPPOSITES = {"eq": "ne", "ne": "eq", "in": "not_in", "not_in": "in"}
_TESTED = ("where", "must")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRule:
    """A rule with one thing changed in what it says."""

    operator: str
    place: str
    check: Check
    """Of the same id as the rule it was made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """Whether a changed rule is told from the one it was made from."""

    check: str
    operator: str
    place: str
    by_test: str | None
    """The first test of the file that is no longer met."""
    by_run: str | None
    """Where no test does: the first run of which it says something else."""


def changed_rules(check: Check) -> Iterator[ChangedRule]:
    """Every change of one rule: a condition negated, left out or moved to the other side of its bound, a limit
    one more, ``same`` or ``once`` left out. What cannot be loaded is no rule, and left out."""
    for operator, place, spec in _changes(check.spec):
        try:
            yield ChangedRule(operator=operator, place=place, check=check_from_spec(spec))
        except ConfigurationError:
            continue


def rule_results(
    checks: Sequence[Check], tests: Sequence[RuleTest], runs: Sequence[Trajectory]
) -> Iterator[RuleResult]:
    """For every change of every rule whether a test tells it from the original; where none does, whether a run does."""
    for check in checks:
        for changed in changed_rules(check):
            by_test = next((test.name for test in tests if _fails(test, changed.check)), None)
            told = (run.run_id for run in runs if _says(run, check) != _says(run, changed.check))
            yield RuleResult(
                check=check.id,
                operator=changed.operator,
                place=changed.place,
                by_test=by_test,
                by_run=next(told, None) if by_test is None else None,
            )


def _fails(test: RuleTest, check: Check) -> bool:
    return (
        test.run is not None
        and check.id in test.expect
        and _says(test.run, check)[0] != test.expect[check.id]
    )


def _says(run: Trajectory, check: Check) -> tuple[str, frozenset[str]]:
    (verdict,) = judge(run, [check])
    return verdict.outcome.value, frozenset(finding.subject for finding in verdict.findings)


def _changes(spec: Mapping[str, object]) -> Iterator[tuple[str, str, dict[str, object]]]:
    if spec.get("same"):
        yield "drop_same", "same", {key: value for key, value in spec.items() if key != "same"}
    if spec.get("once") is True:
        yield "drop_once", "once", {**spec, "once": False}
    if isinstance(limit := spec.get("max"), int):
        yield "limit_up", f"max: {limit + 1}", {**spec, "max": limit + 1}
    if spec.get("kind") == "require_before" and _needs_a_tool(spec.get("needs")):
        yield "drop_order", "order: executed", {**spec, "order": "executed"}
    for path, where in _conditions(spec):
        for key, condition in where.items():
            place = ".".join((*map(str, path), str(key)))
            rest = {name: one for name, one in where.items() if name != key}
            if path[-1] == "where":
                yield "drop_condition", place, _put(spec, path, rest)
            for operator, other in _other_conditions(condition):
                yield operator, place, _put(spec, path, {**where, key: other})


def _needs_a_tool(needs: object) -> bool:
    """Whether a model turn can hold the need: what the user says comes between turns."""
    named = needs.get("tool") if isinstance(needs, Mapping) else needs
    return any(not reserved(str(name)) for name in (named if isinstance(named, list) else [named]))


def _conditions(
    part: Mapping[str, object], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    for key, item in part.items():
        if not isinstance(item, Mapping):
            continue
        if key in _TESTED and all("." in str(name) or name in ("result", "status", "name") for name in item):
            yield (*path, key), item
        elif key != "schema":
            yield from _conditions(item, (*path, key))


def _other_conditions(condition: object) -> Iterator[tuple[str, object]]:
    if not isinstance(condition, Mapping) or "value_of" in condition:
        yield "negate", {"ne": condition}
        return
    for name, wanted in condition.items():
        rest = {key: value for key, value in condition.items() if key != name}
        if name in _BOUNDS:
            yield "move_bound", {**rest, _BOUNDS[name]: wanted}
        elif name in _OPPOSITES:
            yield "negate", {**rest, _OPPOSITES[name]: wanted}
        elif name == "exists":
            yield "negate", {**rest, name: not wanted}


def _put(spec: Mapping[str, object], path: Sequence[str], value: object) -> dict[str, object]:
    new = copy.deepcopy(dict(spec))
    inside: Any = new
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return new

"""A stored run's verdicts as outcome, violations and strict success."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import CheckClass, Outcome, Severity

Json = Any


@dataclass(frozen=True, slots=True)
class Judged:
    """What the verdicts of one run say of its outcome and of its way there. ``None``: they do not say."""

    goal: bool | None
    violations: tuple[str, ...] | None
    strict: bool | None


def judged(record: Mapping[str, Json]) -> Judged:
    """Read the verdicts of a run's record (``redfirst score --json``).

    The goal is reached when a goal check passed and none failed or was inconclusive. Violations are failed checks of
    other classes that flag a run. A run that the infrastructure ended has neither: the agent did not cause it.
    """
    if record["termination"]["reason"] == Stop.INFRA.value:
        return Judged(None, None, None)
    goals = [one for one in record["verdicts"] if one["class"] == CheckClass.GOAL.value]
    others = [
        one
        for one in record["verdicts"]
        if one["class"] != CheckClass.GOAL.value and Severity[one["severity"].upper()] >= Severity.FLAG
    ]
    goal = _all_passed([one["outcome"] for one in goals])
    broken = tuple(one["check"] for one in others if one["outcome"] == Outcome.FAILED.value)
    unsure = any(one["outcome"] == Outcome.INCONCLUSIVE.value for one in others)
    violations = None if unsure and not broken else broken
    if goal is False or broken:
        return Judged(goal, violations, False)
    return Judged(goal, violations, None if goal is None or violations is None else True)


def _all_passed(outcomes: list[str]) -> bool | None:
    if Outcome.FAILED.value in outcomes:
        return False
    if Outcome.INCONCLUSIVE.value in outcomes or Outcome.PASSED.value not in outcomes:
        return None
    return True


def tokens_of(record: Mapping[str, Json]) -> int | None:
    """Input and output tokens of a run together; ``None`` when one of them is not known."""
    used = [record["tokens"]["input"], record["tokens"]["output"]]
    return None if None in used else sum(used)

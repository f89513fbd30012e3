"""Required calls: all of them, each by a call of its own, and nothing missing that counts as made."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import Outcome, Trajectory, Verdict
from redfirst.evaluators.assignment import assign
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.testing import ROOT, a_run, call


def recall(run: Trajectory, *required: object, when: object = None) -> Verdict:
    """The verdict on these required calls."""
    spec: dict[str, object] = {"kind": "recall", "id": "recall", "required_calls": list(required)}
    (verdict,) = judge(run, [check_from_spec(spec if when is None else {**spec, "when": when})])
    return verdict


OK = {"tool": "verify", "where": {"result.verified": True}}


def test_every_required_call_was_made() -> None:
    """Order and further calls do not matter."""
    verdict = recall(a_run(call("b"), call("c"), call("a")), "a", "b")

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.PASSED, 2, 2)


def test_a_missing_call_fails_and_is_the_subject() -> None:
    """The absence points at the root."""
    verdict = recall(a_run(call("a")), "a", "b")

    assert (verdict.outcome, verdict.score) == (Outcome.FAILED, 0.5)
    assert [finding.subject for finding in verdict.findings] == ["b"]
    assert [item.span_id for item in verdict.evidence] == [ROOT]


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (call("verify", result={"verified": False}), "does not meet the conditions"),
        (call("verify", status="tool_error"), "ended with tool_error"),
    ],
)
def test_a_call_that_did_not_do_it_is_named(made: object, why: str) -> None:
    """Only a success that meets the conditions counts; the near miss is evidence."""
    verdict = recall(a_run(made), OK)  # type: ignore[arg-type]

    assert verdict.outcome is Outcome.FAILED
    assert why in verdict.because
    assert len(verdict.evidence) == 2


def test_one_call_meets_one_requirement() -> None:
    """What is required twice must be made twice."""
    verdict = recall(a_run(call("a")), "a", "a")

    assert (verdict.outcome, verdict.numerator) == (Outcome.FAILED, 1)
    assert "meets another requirement" in verdict.because


def test_the_matching_is_the_largest_not_the_first() -> None:
    """A call that fits two requirements is given to the one that has no other."""
    run = a_run(call("a", x=1), call("a", x=2))

    assert recall(run, "a", {"tool": "a", "where": {"args.x": 1}}).outcome is Outcome.PASSED


def test_what_was_not_recorded_is_no_miss() -> None:
    """An unread result, an unknown end or an incomplete trace leaves the verdict open."""
    assert recall(a_run(call("verify", result={})), OK).outcome is Outcome.INCONCLUSIVE
    assert recall(a_run(call("a", status="unknown")), "a").outcome is Outcome.INCONCLUSIVE
    assert recall(a_run(complete=False), "a").outcome is Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"complete": False}, "the trace is incomplete"),
        ({"missing": ["tool_calls"]}, "tool calls were not recorded (not recorded)"),
    ],
)
def test_where_calls_may_be_missing_nothing_is_concluded(how: dict[str, Any], why: str) -> None:
    """Neither that a call was not made, nor that the task was done, nor that the run is of another task."""
    when = {"request": {"matches": "cancel"}}

    for verdict in (recall(a_run(**how), "a"), recall(a_run(call("a"), **how), "a")):
        assert verdict.outcome is Outcome.INCONCLUSIVE
        assert why in verdict.because
    assert recall(a_run(complete=False, request="refund"), "a", when=when).outcome is Outcome.INCONCLUSIVE
    told = recall(a_run(missing=["tool_calls"], request="refund"), "a", when=when)
    assert told.outcome is Outcome.NOT_APPLICABLE


def test_a_call_without_a_name_may_be_the_missing_one() -> None:
    """It cannot be told, unless every required call is there by its name."""
    run = a_run(call("span"), call("a"), missing=["tool_calls[0].name"])

    assert "the name of a call is missing" in recall(run, "a", "b").because
    assert recall(run, "a").outcome is Outcome.PASSED


def test_what_did_not_run_stands_in_messages_alone() -> None:
    """A requirement about what was asked for needs what the model answered."""
    run = a_run(missing=["model_calls[0].output"])

    asked = recall(run, {"tool": "a", "status": "not_executed"})
    assert "model_calls[0].output is missing" in asked.because
    assert recall(run, "a").outcome is Outcome.FAILED


def test_unknown_requirements_are_in_no_share() -> None:
    """Of three, one was made, one was not, and one cannot be told: one of two."""
    verdict = recall(a_run(call("a"), call("c", status="unknown")), "a", "b", "c")

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)
    assert verdict.because == "the required call of b was not made; 1 more could not be told"


def test_what_is_certainly_met_is_not_accused() -> None:
    """Two requirements and one call that certainly meets the second: the first is the one that lacks its call."""
    one = {"tool": "a", "where": {"result.x": 1}}
    verdict = recall(a_run(call("a")), one, "a")

    assert [finding.because for finding in verdict.findings] == [
        "the required call of a with result.x is 1 was not made (this call of a does not meet the conditions)"
    ]
    assert (verdict.numerator, verdict.denominator) == (1, 2)


def test_a_task_speaks_of_its_own_runs() -> None:
    """Another request is not applicable, an unread one inconclusive."""
    when = {"request": {"matches": "(?i)cancel"}}

    assert recall(a_run(request="Cancel it"), "a", when=when).outcome is Outcome.FAILED
    assert recall(a_run(request="Refund it"), "a", when=when).outcome is Outcome.NOT_APPLICABLE
    unread = recall(a_run(request=None), "a", when=when)
    assert (unread.outcome, "the request was not recorded" in unread.because) == (Outcome.INCONCLUSIVE, True)
    long = recall(a_run(request="x" * 20_000), "a", when=when)
    assert (long.outcome, "too long" in long.because) == (Outcome.INCONCLUSIVE, True)


def test_a_task_may_name_an_agent() -> None:
    """Any agent of the run will do; no known agent is unknown."""
    from dataclasses import replace

    run = a_run(call("a"))

    assert recall(replace(run, agents=("desk", "bot")), "a", when={"agent": "bot"}).outcome is Outcome.PASSED
    assert (
        recall(replace(run, agents=("desk",)), "a", when={"agent": "bot"}).outcome is Outcome.NOT_APPLICABLE
    )
    assert "agent's name" in recall(run, "a", when={"agent": "bot"}).because


def largest(choices: list[list[int]]) -> int:
    """The size of the largest matching, by trying everything."""

    def best(task: int, used: frozenset[int]) -> int:
        if task == len(choices):
            return 0
        here = [1 + best(task + 1, used | {worker}) for worker in choices[task] if worker not in used]
        return max([best(task + 1, used), *here])

    return best(0, frozenset())


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=6))
@settings(deadline=None)
def test_an_assignment_is_valid_and_largest(choices: list[list[int]]) -> None:
    """Nobody has two tasks, everybody fits, and no larger assignment exists."""
    found = assign(choices)

    assert len(set(found.values())) == len(found) == largest(choices)
    assert all(worker in choices[task] for task, worker in found.items())


@given(st.lists(st.lists(st.integers(0, 4), max_size=4, unique=True), max_size=6))
@settings(deadline=None)
def test_a_later_task_never_takes_the_place_of_an_earlier_one(choices: list[list[int]]) -> None:
    """More tasks at the end leave those at the front as well served as they were."""
    assert set(assign(choices[:-1])) <= set(assign(choices))

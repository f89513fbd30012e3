"""What holds for every run and every reference: optimal matchings, bounds, order of listing, no pass on nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import CallStatus, Completeness, Outcome, ToolCall, Trajectory, Verdict
from redfirst.evaluators.assignment import assign, heaviest
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.reference.checks import QUESTIONS
from redfirst.evaluators.reference.in_order import along_chains, in_part
from redfirst.evaluators.reference.steps import closed
from redfirst.evaluators.testing import a_run, call

MODES = ("strict", "unordered", "subset", "superset")
Pairs = tuple[tuple[int, int], ...]


def matchings(weights: list[dict[int, int]]) -> Iterator[Pairs]:
    """Every matching there is, by trying everything."""
    rows = [[None, *row] for row in weights]
    for chosen in itertools.product(*rows):
        pairs = tuple((task, worker) for task, worker in enumerate(chosen) if worker is not None)
        if len({worker for _, worker in pairs}) == len(pairs):
            yield pairs


def largest(weights: list[dict[int, int]], keeps: Callable[[Pairs], bool] = lambda _: True) -> int:
    """The largest weight of a matching that keeps what must be kept."""
    return max(
        sum(weights[task][worker] for task, worker in pairs) for pairs in matchings(weights) if keeps(pairs)
    )


tables = st.lists(st.dictionaries(st.integers(0, 4), st.integers(1, 3), max_size=4), max_size=5)


@given(tables)
@settings(deadline=None, max_examples=200)
def test_the_heaviest_assignment_is_a_matching_and_the_heaviest(weights: list[dict[int, int]]) -> None:
    """Nobody has two tasks, everybody fits, and trying everything finds nothing better."""
    found = heaviest(weights)

    assert len(set(found.values())) == len(found)
    assert sum(weights[task][worker] for task, worker in found.items()) == largest(weights)


@given(tables)
@settings(deadline=None)
def test_with_equal_weights_the_heaviest_is_the_largest(weights: list[dict[int, int]]) -> None:
    """Two ways to the same size."""
    ones = [dict.fromkeys(row, 1) for row in weights]

    assert len(heaviest(ones)) == len(assign([list(row) for row in ones]))


def by_number(pairs: Pairs) -> bool:
    """Whether the workers rise with the tasks."""
    return all(one[1] < other[1] for one, other in itertools.pairwise(pairs))


@given(tables)
@settings(deadline=None, max_examples=200)
def test_along_chains_nothing_heavier_keeps_both_orders(weights: list[dict[int, int]]) -> None:
    """A longest common subsequence, with weights."""

    def weight(task: int, worker: int) -> int:
        return weights[task].get(worker, 0)

    assert along_chains(weight, len(weights), 5, most=3) == largest(weights, by_number)


@given(st.lists(st.dictionaries(st.integers(0, 3), st.integers(1, 2), max_size=3), max_size=4), st.data())
@settings(deadline=None, max_examples=100)
def test_in_part_nothing_heavier_keeps_the_order(weights: list[dict[int, int]], data: st.DataObject) -> None:
    """Steps and calls ordered in part."""
    edges = [
        data.draw(st.sets(st.integers(0, place - 1))) if place else set() for place in range(len(weights))
    ]
    order = closed(edges)
    starts = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), min_size=4, max_size=4))

    def came(one: int, other: int) -> bool:
        return starts[one][0] + starts[one][1] <= starts[other][0]

    def keeps(pairs: Pairs) -> bool:
        held = dict(pairs)
        return all(came(held[s], held[t]) for s, t in order if s in held and t in held)

    assert in_part(weights, order, came) == largest(weights, keeps)


def test_a_search_that_reaches_no_optimum_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of nodes is limited; without an optimum there is no weight."""
    monkeypatch.setattr("scipy.optimize.milp", lambda **_: type("Stopped", (), {"status": 1, "fun": None})())

    assert in_part([{0: 1}, {0: 1}], frozenset({(0, 1)}), lambda *_: False) is None


def test_a_search_that_is_too_large_is_not_begun() -> None:
    """A run of a thousand calls of one tool does not hold up the others."""
    row = dict.fromkeys(range(1_000), 1)

    assert in_part([row] * 5, closed([[], [0], [1], [], []]), lambda *_: False) is None


arguments = st.fixed_dictionaries({}, optional={"x": st.integers(0, 1)})
calls = st.builds(
    call,
    st.sampled_from("abx"),
    args=st.none() | arguments,
    status=st.sampled_from([*["ok"] * 4, *CallStatus]),
)
known_calls = st.builds(call, st.sampled_from("abx"), args=arguments)
steps = st.fixed_dictionaries(
    {"tool": st.sampled_from(["a", "b", ["a", "b"]])},
    optional={"args": st.just({"x": 1}) | st.just({"x": {"in": [0, 1]}}), "optional": st.booleans()},
)
trajectories = st.lists(steps, min_size=1, max_size=4)
references = st.fixed_dictionaries(
    {"any_of": st.lists(trajectories, min_size=1, max_size=2)}, optional={"match": st.sampled_from(MODES)}
)


def asked(kind: str, run: Trajectory, reference: object) -> Verdict:
    """The verdict of one check."""
    (found,) = judge(run, [check_from_spec({"kind": kind, "id": "one", "reference": reference})])
    return found


def shown(verdict: Verdict) -> tuple[object, ...]:
    """What a verdict says, without which of two calls that both will do is the one too many."""
    return verdict.outcome, verdict.numerator, verdict.denominator, len(verdict.findings)


@given(st.lists(calls, max_size=6), references, st.sampled_from(sorted(QUESTIONS)))
@settings(deadline=None)
def test_ratios_are_ratios_and_failures_have_evidence(
    made: list[ToolCall], reference: dict[str, Any], kind: str
) -> None:
    """No evaluator error; 0 ≤ numerator ≤ denominator ≠ 0; a full score passes, and only a full score does."""
    found = asked(kind, a_run(*made), reference)

    assert "evaluator error" not in found.because
    if found.outcome in (Outcome.PASSED, Outcome.FAILED):
        assert found.numerator is not None
        assert found.denominator is not None
        assert 0 <= found.numerator <= found.denominator > 0
        if found.outcome is Outcome.FAILED:
            assert found.numerator < found.denominator
            assert all(finding.evidence and finding.subject for finding in found.findings)
        elif kind != "efficiency":  # optional steps that were made cost efficiency and are no fault
            assert found.numerator == found.denominator
    else:
        assert found.score is found.numerator is found.denominator is None


@given(st.lists(calls, max_size=6), references, st.sampled_from(sorted(QUESTIONS)))
@settings(deadline=None)
def test_nothing_passes_on_nothing(made: list[ToolCall], reference: dict[str, Any], kind: str) -> None:
    """A run without calls passes nothing; an incomplete one neither."""
    assert asked(kind, a_run(), reference).outcome is not Outcome.PASSED
    less = replace(a_run(*made), completeness=Completeness.INCOMPLETE)
    assert asked(kind, less, reference).outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE)


@given(st.lists(known_calls, max_size=5), references, st.sampled_from(sorted(QUESTIONS)), st.randoms())
@settings(deadline=None)
def test_where_order_does_not_count_it_does_not(
    made: list[ToolCall], reference: dict[str, Any], kind: str, random: Any
) -> None:
    """Calls in another order get the same verdict in every mode but strict."""
    if reference.get("match") == "strict":
        reference = {**reference, "match": "unordered"}
    shuffled = list(made)
    random.shuffle(shuffled)

    assert shown(asked(kind, a_run(*made), reference)) == shown(asked(kind, a_run(*shuffled), reference))


@given(st.lists(calls, min_size=1, max_size=6), references, st.sampled_from(sorted(QUESTIONS)), st.randoms())
@settings(deadline=None)
def test_the_order_of_listing_decides_nothing(
    made: list[ToolCall], reference: dict[str, Any], kind: str, random: Any
) -> None:
    """The same calls at the same times, listed differently."""
    run = a_run(*made)
    listed = list(run.tool_calls)
    random.shuffle(listed)

    assert asked(kind, run, reference) == asked(kind, replace(run, tool_calls=tuple(listed)), reference)


@given(st.lists(known_calls, min_size=1, max_size=6), trajectories, st.data())
@settings(deadline=None)
def test_a_call_less_never_matches_more(
    made: list[ToolCall], one: list[dict[str, Any]], data: st.DataObject
) -> None:
    """What recall, precision and every mode count as matched shrinks, or stays, when a call is taken away."""
    gone = data.draw(st.integers(0, len(made) - 1))
    fewer = made[:gone] + made[gone + 1 :]

    for kind, mode in [
        ("recall", "superset"),
        ("precision", "superset"),
        *(("match", mode) for mode in MODES),
    ]:
        reference = {"steps": one, "match": mode}
        more, less = asked(kind, a_run(*made), reference), asked(kind, a_run(*fewer), reference)
        assert (less.numerator or 0) <= (more.numerator or 0), (kind, mode)


@given(st.lists(known_calls, max_size=5), trajectories, known_calls)
@settings(deadline=None)
def test_one_more_call_never_breaks_a_superset_nor_heals_a_subset(
    made: list[ToolCall], one: list[dict[str, Any]], more: ToolCall
) -> None:
    """What was done stays done, and what was too much stays too much."""
    for kind, mode, outcome in [
        ("match", "superset", Outcome.PASSED),
        ("recall", "superset", Outcome.PASSED),
        ("match", "subset", Outcome.FAILED),
        ("precision", "subset", Outcome.FAILED),
        ("tool_selection", "subset", Outcome.FAILED),
        ("argument_validity", "subset", Outcome.FAILED),
        ("efficiency", "subset", Outcome.FAILED),
    ]:
        reference = {"steps": one, "match": mode}
        if asked(kind, a_run(*made), reference).outcome is outcome:
            assert asked(kind, a_run(*made, more), reference).outcome is outcome, (kind, mode)


@given(st.lists(known_calls, max_size=5), trajectories)
@settings(deadline=None)
def test_modes_imply_each_other(made: list[ToolCall], one: list[dict[str, Any]]) -> None:
    """Strict is unordered in order; unordered is both superset and subset, wherever those have something to judge."""
    accepts = {
        mode: asked("match", a_run(*made), {"steps": one, "match": mode}).outcome is not Outcome.FAILED
        for mode in MODES
    }

    assert accepts["unordered"] or not accepts["strict"]
    assert accepts["unordered"] is (accepts["subset"] and accepts["superset"])


@given(st.lists(known_calls, max_size=5), trajectories)
@settings(deadline=None)
def test_the_modes_score_what_trying_everything_finds(
    made: list[ToolCall], one: list[dict[str, Any]]
) -> None:
    """Required steps and calls that the best matching covers; strict: the best one in order."""
    fits = [
        {
            place: 1
            for place, made_call in enumerate(made)
            if made_call.name in step["tool"] and _fits(step.get("args"), made_call)
        }
        for step in one
    ]
    required = [not step.get("optional", False) for step in one]
    best = {
        mode: max(
            sum((mode != "subset") * required[step] + (mode != "superset") for step, _ in pairs)
            for pairs in matchings(fits)
            if mode != "strict" or by_number(pairs)
        )
        for mode in MODES
    }

    for mode in MODES:
        found = asked("match", a_run(*made), {"steps": one, "match": mode})
        if found.denominator is not None:
            assert found.numerator == best[mode], mode


def _fits(wanted: dict[str, Any] | None, made: ToolCall) -> bool:
    x = (made.arguments or {}).get("x")
    return wanted is None or x == 1 or (wanted["x"] != 1 and x is not None)


@given(st.lists(calls, max_size=5), references, st.sampled_from(sorted(QUESTIONS)))
@settings(deadline=None)
def test_what_is_certain_holds_however_the_unknown_turns_out(
    made: list[ToolCall], reference: dict[str, Any], kind: str
) -> None:
    """A verdict stays what it was when unrecorded arguments and endings come to light."""
    before = asked(kind, a_run(*made), reference)
    if before.outcome is Outcome.INCONCLUSIVE:
        return
    for told in _told(made):
        assert asked(kind, a_run(*told), reference).outcome is before.outcome


def _told(made: list[ToolCall]) -> Iterable[list[ToolCall]]:
    """The run with what was not recorded filled in, one way and another."""
    for status in (CallStatus.OK, CallStatus.TOOL_ERROR):
        for x in (0, 1):
            yield [
                replace(
                    one,
                    arguments={"x": x} if one.arguments is None else one.arguments,
                    status=status if one.status is CallStatus.UNKNOWN else one.status,
                )
                for one in made
            ]

"""What the equivalents promise of every run, and what they leave alone because it is a difference."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import Outcome, ToolCall, Trajectory
from redfirst.evaluators.check import Check, check_from_spec, default_checks, judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.sensitivity.equivalents import equivalents
from redfirst.evaluators.sensitivity.operators import original
from redfirst.evaluators.testing import a_run, call
from redfirst.evaluators.trajectory import CallStatus, StateSnapshot

RULES = load_rules(
    """
schema: redfirst.rules/1
rules:
  - {id: need, kind: require_before, call: w, needs: {tool: r, where: {result.x: 1}}, same: [args.a]}
  - {id: joined, kind: require_before, call: w, needs: r, same: [[args.a, result_of.g.x]]}
  - {id: follow, kind: require_after, call: r, needs: [w, g]}
  - {id: never, kind: forbid, call: {tool: w, where: {result_of.g.x: {gt: 0}}}}
  - {id: after, kind: forbid, call: w, after: g, same: [args.a]}
  - {id: either, kind: mutually_exclusive, calls: [w, g]}
  - {id: few, kind: max_calls, call: [r, g], max: 2, same: [args.a]}
  - {id: row, kind: max_consecutive, call: s, max: 2}
  - {id: steps, kind: sequence, steps: [r, g, w]}
  - {id: flow, kind: no_flow, from: s, to: {tool: w, arg: args.a}}
  - {id: fits, kind: args_schema, call: w, must: {args.a: {in: {value_of: results_of.r.x}}}}
tasks:
  - {id: t, when: {request: {matches: please}}, required_calls: [r, w]}
""",
    "equivalents.yaml",
)
CHECKS = (*default_checks(), *RULES)
SAID = {
    "swap_two_reads",
    "rename_call_id",
    "reformat_json",
    "add_optional_read",
    "drop_optional_read",
}

answers = st.sampled_from(
    [{"x": 1, "y": [2, {"p": 1, "q": 2}]}, {"x": 2}, '{"x": 1, "y": 2}', '{"x":1}', "text 2", [], None]
)
calls = st.builds(
    call,
    st.sampled_from(["r", "w", "g", "s", "n", "m"]),
    args=st.fixed_dictionaries({"a": st.integers(0, 2)}, optional={"b": st.sampled_from(["p", "q"])})
    | st.none(),
    result=answers,
    status=st.sampled_from(
        [CallStatus.OK] * 5 + [CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR, CallStatus.UNKNOWN]
    ),
    effect=st.sampled_from([None, "read", "read", "write"]),
    turn=st.sampled_from([-1, -1, 1, 2]),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(calls, max_size=8), st.booleans())
def test_an_equivalent_changes_no_verdict(made: list[ToolCall], complete: bool) -> None:
    """Whatever the run, no check says anything else of it; a check that failed already is not asked."""
    of = original(a_run(*made, complete=complete), CHECKS)

    for mutant in equivalents(of):
        assert mutant.operator in SAID
        for old, new in zip(of.verdicts, judge(mutant.run, CHECKS), strict=True):
            assert old.outcome is Outcome.FAILED or new.outcome is old.outcome, (
                mutant.operator,
                mutant.place,
                new,
            )


def operators(run: Trajectory, *specs: dict[str, object]) -> set[str]:
    """The equivalents that a run has beside these rules."""
    checks: tuple[Check, ...] = tuple(
        check_from_spec({"id": f"c{n}", **spec}) for n, spec in enumerate(specs)
    )
    return {mutant.operator for mutant in equivalents(original(run, checks))}


ONE, TWO = call("s", effect="read", q="a"), call("s", effect="read", q="b")


def test_a_plain_run_has_every_equivalent() -> None:
    """Where no rule names a tool every operator has a place; a run without calls has none."""
    assert operators(a_run(ONE, TWO)) == {
        "swap_two_reads",
        "rename_call_id",
        "reformat_json",
        "add_optional_read",
        "drop_optional_read",
    }
    assert operators(a_run()) == set()


@pytest.mark.parametrize(
    "spec",
    [
        {"kind": "sequence", "steps": ["s", "t", "s"]},
        {"kind": "require_before", "call": "s", "needs": "s"},
        {"kind": "max_consecutive", "call": "s", "max": 3, "same": ["args.q"]},
        {"kind": "forbid", "call": {"tool": "w", "where": {"result_of.s.x": 1}}},
    ],
    ids=lambda spec: str(spec["kind"]),
)
def test_reads_that_a_rule_tells_apart_are_not_swapped(spec: dict[str, object]) -> None:
    """Their order is a difference."""
    run = a_run(ONE, TWO, call("w", effect="write"))

    assert "swap_two_reads" in operators(run)
    assert "swap_two_reads" not in operators(run, spec)


def test_a_call_that_says_which_read_it_means_lets_them_be_swapped() -> None:
    """``result_of`` goes by the argument they share."""
    spec = {"kind": "forbid", "call": {"tool": "w", "where": {"result_of.s.x": 1}}}

    assert "swap_two_reads" in operators(a_run(ONE, TWO, call("w", q="a")), spec)


def test_what_may_be_a_write_is_not_swapped() -> None:
    """A tool that declares nothing, and that a rule judges, is no read."""
    run = a_run(call("s", q="a"), call("s", q="b"))

    assert "swap_two_reads" in operators(run)
    assert "swap_two_reads" not in operators(run, {"kind": "max_calls", "call": "s", "max": 3})


def test_a_state_between_two_reads_keeps_them_apart() -> None:
    """What was reported in between came after one and before the other."""
    run = replace(a_run(ONE, TWO), states=(StateSnapshot(time_ns=1500, state={}, span_id="a"),))

    assert "swap_two_reads" not in operators(run)


def test_where_calls_are_counted_none_is_added_or_dropped() -> None:
    """One more is one more."""
    budget = {"kind": "budget", "limits": {"tool_calls": 3}}

    assert {"add_optional_read", "drop_optional_read"}.isdisjoint(operators(a_run(ONE, TWO), budget))
    within = {"kind": "require_before", "call": "w", "needs": "v", "within_steps": 2}
    assert "add_optional_read" not in operators(a_run(ONE), within)
    assert "add_optional_read" not in operators(
        a_run(ONE), {"kind": "max_consecutive", "call": "s", "max": 3}
    )

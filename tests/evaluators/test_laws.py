"""What holds for every run: checks answer, do not depend on listing order, and never pass on nothing."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redfirst.evaluators import (
    MISSING,
    CallStatus,
    Completeness,
    Coverage,
    Effect,
    Gap,
    Outcome,
    RunEvent,
    ToolCall,
    Trajectory,
    Verdict,
)
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.conditions import parse_condition
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import a_run, call

RULES = load_rules(
    """
schema: redfirst.rules/1
rules:
  - id: need
    kind: require_before
    call: {tool: w, where: {args.x: {ge: 1}}}
    needs: {tool: r, where: {result: 1}}
    same: [args.x]
  - {id: need-once, kind: require_before, call: w, needs: r, once: true, order: executed}
  - {id: joined, kind: require_before, call: w, needs: r, same: [[args.x, result_of.g.x]]}
  - {id: never, kind: forbid, call: g}
  - {id: after, kind: forbid, call: {tool: w, where: {args.x: 1}}, after: g, same: [args.x]}
  - {id: few, kind: max_calls, call: [w, r], max: 1, same: [args.x]}
  - {id: few-sent, kind: max_calls, call: {tool: w, status: [ok, denied], where: {result.x: 1}}, max: 1}
  - {id: asked, kind: forbid, call: [g, r], after: w, attempts: true}
  - {id: shown, kind: forbid, call: {tool: w, where: {result_of.g.x: 1}}, missing: failed}
  - {id: followed, kind: require_after, call: w, needs: r, same: [args.x], within_steps: 2, until: g}
  - {id: followed-once, kind: require_after, call: g, needs: w, once: true}
  - id: lasting
    kind: require_before
    call: w
    needs: r
    until: g
    within_steps: 2
    covers: {args.x: {ge: call.args.x}}
  - {id: scoped, kind: require_before, call: w, needs: r, scope: agent}
  - {id: either, kind: mutually_exclusive, calls: [w, r], same: [args.x]}
  - {id: row, kind: max_consecutive, call: r, max: 2}
  - {id: row-same, kind: max_consecutive, call: [r, w], max: 1, same: [args.x]}
  - {id: chain, kind: sequence, steps: [g, r, w], same: [args.x]}
  - {id: kept, kind: invariant, state: "*", must: {ge: 1}}
  - {id: taint, kind: no_flow, from: g, to: {tool: w}, trusted: [r]}
  - {id: taint-order, kind: no_flow, from: g, to: {tool: w}, mode: order, unless: r}
  - {id: secret, kind: no_flow, pattern: "a", to: {tool: w, arg: args.x}}
  - {id: fits, kind: args_schema, call: w, must: {args.x: {in: {value_of: results_of.g.x}}}}
  - {id: shape, kind: args_schema, call: r, schema: {type: object, properties: {x: {type: integer}}}}
  - {id: cheap, kind: budget, limits: {tool_calls: 2, seconds: 1}}
  - {id: summed, kind: budget, call: w, sum: args.x, by: [args.y], max: 2}
  - {id: granted, kind: approval, call: w, same: [args.x], distinct: 2, approver: args.by}
  - {id: granted-once, kind: approval, call: w, once: true}
  - {id: confirmed, kind: require_before, call: w, needs: {tool: $user, where: {args.text: {matches: b}}}}
  - {id: concluded, kind: require_before, call: $answer, needs: r}
  - {id: joint, kind: state_diff, together: [a, b], required: [{path: a, equals: 1}]}
  - {id: end, kind: termination, ends: completed, answer: {exists: true}, pending: false}
tasks:
  - id: t
    when: {request: {matches: please}}
    required_calls: [r, {tool: w, where: {args.x: 1}}, r]
    state: {required: [{path: a.b, equals: 1}], allowed: [{path: "a.*", mentioned: true}]}
    outcome: {answer: {contains: A-7}, state: [{path: a.b, equals: 1}]}
  - id: narrow
    when: {request: {matches: b}}
    state: {allowed: [{path: a}], collateral: fail}
state: {allowed: [{path: b.**, to: [1, 2]}]}
""",
    "laws.yaml",
)
CHECKS = (*default_checks(), *RULES)

values = (
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["1", "a", '{"x": 1}', 1.5, "A-7", "B-8"])
)
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
plain_calls = st.builds(
    call,
    st.sampled_from(["r", "w", "g"]),
    args=st.none() | st.dictionaries(st.sampled_from(["x", "y"]), values, max_size=2),
    result=st.just(MISSING) | values | st.dictionaries(st.sampled_from(["x", "y"]), values, max_size=2),
    status=st.sampled_from(CallStatus),
    turn=st.none() | st.integers(0, 3),
    agent=st.sampled_from([None, "a"]),
    effect=st.none() | st.sampled_from(Effect),
    idempotent=st.none() | st.booleans(),
    poll=st.booleans(),
)
calls = st.builds(
    lambda made, schema: replace(made, schema=schema), plain_calls, st.sampled_from([None, SCHEMA])
)
states = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b"]), values | st.dictionaries(st.sampled_from("bc"), values), max_size=2
    ),
    max_size=3,
)
events = st.builds(
    RunEvent,
    name=st.just("approval"),
    time_ns=st.integers(500, 9_000),
    attributes=st.dictionaries(st.sampled_from(["x", "by"]), values, max_size=2),
    span_id=st.just("00000000000000ff"),
)
runs = st.builds(
    lambda made, reported, **how: replace(a_run(*made, **how), events=tuple(reported)),
    st.lists(calls, max_size=7),
    st.lists(events, max_size=3),
    request=st.sampled_from([None, "please b", "no"]),
    answer=st.sampled_from([None, "done", "A-7 costs 41.50"]),
    states=states,
    stop=st.sampled_from(["completed", "step_cap", "unknown"]),
    complete=st.booleans(),
)


def told(verdict: Verdict) -> tuple[Any, ...]:
    """What a verdict says, without the places it points at."""
    return verdict.check, verdict.outcome, verdict.numerator, verdict.denominator, verdict.signature()


@given(runs)
@settings(max_examples=300, deadline=None)
def test_every_check_answers_every_run(run: Trajectory) -> None:
    """No run makes a check raise, a failure has evidence, and a share is a share."""
    for verdict in judge(run, CHECKS):
        assert not verdict.because.startswith("evaluator error"), verdict.because
        assert verdict.because
        assert "\n" not in verdict.because
        assert (verdict.outcome is Outcome.FAILED) is bool(verdict.findings)
        if verdict.denominator is not None:
            assert verdict.numerator is not None
            assert 0 <= verdict.numerator <= verdict.denominator != 0
        for evidence in verdict.evidence:
            assert evidence.span_id in run.span_ids or evidence.pointer.startswith("/states/")


@given(runs, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_listing_order_of_concurrent_calls_decides_nothing(run: Trajectory, random: Any) -> None:
    """Calls of one turn that began together can be listed in any order."""
    together = [
        replace(one, start_ns=1_000 * (one.turn + 1), end_ns=1_000 * (one.turn + 1) + 5)
        for one in run.tool_calls
        if one.turn is not None
    ]
    ordered = sorted(together, key=lambda one: one.turn or 0)
    shuffled = sorted(random.sample(ordered, len(ordered)), key=lambda one: one.turn or 0)

    first, second = (
        replace(run, tool_calls=tuple(replace(one, index=index) for index, one in enumerate(listed)))
        for listed in (ordered, shuffled)
    )

    assert [told(v) for v in judge(first, CHECKS)] == [told(v) for v in judge(second, CHECKS)]


@given(st.lists(calls, max_size=6))
@settings(deadline=None)
def test_nothing_passes_on_nothing(made: list[ToolCall]) -> None:
    """A rule about calls that were not made is never a pass."""
    others = [one for one in made if one.name == "r"]
    verdicts = {v.check: v for v in judge(a_run(*others), CHECKS)}

    assert verdicts["need"].outcome is verdicts["need-once"].outcome is Outcome.NOT_APPLICABLE
    assert verdicts["after"].outcome is Outcome.NOT_APPLICABLE
    nothing = judge(a_run(stop="unknown", request=None), CHECKS)
    assert {v.check for v in nothing if v.outcome is Outcome.PASSED} == {"cheap"}  # nothing was spent


RETRIED = a_run(call("r"), call("r", x=1, status="infra_error", effect="read"), call("r", x=1, effect="read"))
"""Two calls, of which one was tried again; with the arguments unread there may be three."""


@given(runs)
@example(RETRIED)
@settings(deadline=None)
def test_forgetting_never_turns_a_failure_into_a_pass(run: Trajectory) -> None:
    """With every argument and result unread no rule passes that failed before, nor fails that passed before."""
    blind = replace(
        run, tool_calls=tuple(replace(one, arguments=None, result=MISSING) for one in run.tool_calls)
    )
    turned = {
        (seen.outcome, unseen.outcome)
        for seen, unseen in zip(judge(run, RULES), judge(blind, RULES), strict=True)
    }

    assert (Outcome.FAILED, Outcome.PASSED) not in turned
    assert (Outcome.PASSED, Outcome.FAILED) not in turned


FACTS: dict[str, dict[str, Any]] = {
    "arguments": {"arguments": None},
    "result": {"result": MISSING},
    "status": {"status": CallStatus.UNKNOWN},
}
OPEN = (Outcome.FAILED, Outcome.INCONCLUSIVE)


NOT_OF_CALLS = ("state.", "recall:", "outcome:", "kept", "joint", "end")
"""Checks that do not look at calls, or say themselves that none of the task can be told."""


def never_passes(before: Trajectory, after: Trajectory) -> None:
    """What failed or was open in the one does not pass in the other."""
    for seen, later in zip(judge(before, CHECKS), judge(after, CHECKS), strict=True):
        assert seen.outcome not in OPEN or later.outcome is not Outcome.PASSED, (seen, later)


@given(runs, st.data())
@settings(max_examples=200, deadline=None)
def test_a_fact_that_is_deleted_heals_nothing(run: Trajectory, data: st.DataObject) -> None:
    """No argument, result, status, request or report that is missing turns a failed or open verdict into a pass."""
    never_passes(run, replace(run, request=None, history=None))
    states = Coverage(missing=(Gap(fact="states", because="lost"),))
    for place in range(len(run.states)):
        rest = (*run.states[:place], *run.states[place + 1 :])
        never_passes(run, replace(run, states=rest, coverage=states))
    less = run
    for _ in run.tool_calls:
        place = data.draw(st.integers(0, len(run.tool_calls) - 1))
        fact = FACTS[data.draw(st.sampled_from(sorted(FACTS)))]
        made = list(less.tool_calls)
        made[place] = replace(made[place], **fact)
        less = replace(less, tool_calls=tuple(made))
        never_passes(run, less)


@given(runs, st.sampled_from(["incomplete", "tool_calls"]), st.data())
@settings(max_examples=200, deadline=None)
def test_a_span_that_is_deleted_heals_nothing(run: Trajectory, how: str, data: st.DataObject) -> None:
    """Calls whose spans are missing turn no failed or open verdict into a pass: nothing about calls passes then."""
    kept = data.draw(st.lists(st.sampled_from(run.tool_calls), unique_by=id)) if run.tool_calls else []
    gap = Coverage(missing=(Gap(fact="tool_calls", because="lost"),))
    less = replace(
        run,
        tool_calls=tuple(one for one in run.tool_calls if one in kept),
        completeness=Completeness.INCOMPLETE if how == "incomplete" else run.completeness,
        coverage=gap if how == "tool_calls" else run.coverage,
    )

    never_passes(run, less)
    for verdict in judge(less, CHECKS):
        if verdict.check == "termination" or (how == "tool_calls" and verdict.check.startswith(NOT_OF_CALLS)):
            continue
        assert verdict.outcome in OPEN, verdict


@given(st.lists(calls, max_size=6), calls)
@settings(deadline=None)
def test_one_more_call_never_heals_a_limit(made: list[ToolCall], more: ToolCall) -> None:
    """What was called too often stays called too often."""
    limits = (
        "few",
        "never",
        "either",
        "row",
        "row-same",
        "summed",
        "shape",
        "taint-order",
        "secret",
        "chain",
    )
    for check in (one for one in RULES if one.id in limits):
        (verdict,) = judge(a_run(*made), [check])
        (later,) = judge(a_run(*made, replace(more, turn=None)), [check])
        if verdict.outcome is Outcome.FAILED:
            assert later.outcome is Outcome.FAILED


@given(st.lists(calls, max_size=5))
@settings(deadline=None)
def test_one_more_success_never_breaks_a_need(made: list[ToolCall]) -> None:
    """An earlier successful call can only help those that need it."""
    need = next(c for c in RULES if c.id == "need")
    (verdict,) = judge(a_run(*made), [need])
    helped = [call("r", args={"x": x}, result=1, at=(1, 2), turn=None) for x in (0, 1, 2)]
    shifted = [replace(one, turn=None) for one in made]
    (plain,) = judge(a_run(*shifted), [need])
    (better,) = judge(a_run(*helped, *shifted), [need])

    assert verdict.outcome in Outcome
    if plain.outcome is Outcome.PASSED:
        assert better.outcome is Outcome.PASSED


@given(values, values)
@settings(deadline=None)
def test_a_condition_and_its_opposite_never_agree(value: object, wanted: object) -> None:
    """Exactly one of eq and ne holds, or both are unknown."""
    equal, different = (parse_condition({name: wanted}).holds(value) for name in ("eq", "ne"))

    assert (equal, different) in [(True, False), (False, True), (None, None)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_check_has_no_memory(check: Any) -> None:
    """The same run gets the same verdict twice."""
    run = a_run(call("r", x=1, result=1), call("w", x=1), states=[{"a": {}}, {"a": {"b": 1}}])

    assert judge(run, [check]) == judge(run, [check])

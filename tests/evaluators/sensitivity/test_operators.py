"""Each kind of rule has breaks that its own check notices, and evidence that it misses when it is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import ToolCall, Trajectory
from redfirst.evaluators.check import check_from_spec
from redfirst.evaluators.sensitivity.measuring import Fate, sensitivity
from redfirst.evaluators.sensitivity.mutant import Expected
from redfirst.evaluators.sensitivity.values import placed, text_like
from redfirst.evaluators.testing import a_run, call
from redfirst.evaluators.trajectory import Message, RunEvent, StateSnapshot

READ = call("read", id=1, result={"limit": 5, "status": "open"})
WRITE = call("write", id=1, amount=3)


def broken(run: Trajectory, spec: dict[str, Any]) -> set[str]:
    """The operators that had a place, each of which did what it had to."""
    found = sensitivity([run], [check_from_spec({"id": "one", **spec})]).results
    assert [one for one in found if not one.as_expected] == []
    return {one.operator for one in found if one.expected is not Expected.SURVIVES}


@pytest.mark.parametrize(
    ("spec", "calls", "expected"),
    [
        (
            {"kind": "require_before", "call": "write", "needs": {"tool": "read", "where": {"result.status": "open"}},
             "same": ["args.id"], "once": True, "covers": {"result.limit": {"ge": "call.args.amount"}}},
            [READ, WRITE],
            {"drop_need", "fail_then_continue", "wrong_subject", "unmet_need", "swap", "overlap", "amount_over",
             "reuse_need", "drop_attr"},
        ),
        (
            {"kind": "require_before", "call": {"tool": "write", "where": {"args.amount": {"gt": 100}}}, "needs": "ask"},
            [READ, WRITE],
            {"make_needy"},
        ),
        (
            {"kind": "require_before", "call": "write", "needs": {"tool": "$user", "where": {"args.text": "please"}}},
            [WRITE],
            {"drop_need"},
        ),
        ({"kind": "require_after", "call": "read", "needs": "write"}, [READ, WRITE], {"drop_need", "swap"}),
        (
            {"kind": "require_after", "call": "read", "needs": {"tool": "$answer", "where": {"args.text": "done"}}},
            [READ],
            {"drop_need"},
        ),
        ({"kind": "sequence", "steps": ["read", "write"]}, [READ, WRITE], {"drop_need", "swap"}),
        ({"kind": "forbid", "call": "erase"}, [READ], {"forbidden_call"}),
        ({"kind": "forbid", "call": "write", "after": "stop", "same": ["args.id"]},
         [WRITE, call("stop", id=1)], {"call_after"}),
        (
            {"kind": "forbid", "call": {"tool": "write", "where": {
                "args.amount": {"gt": 100}, "result_of.read.status": {"in": ["shut"]}}}},
            [READ, WRITE],
            {"make_forbidden"},
        ),
        ({"kind": "mutually_exclusive", "calls": ["write", "undo"], "same": ["args.id"]}, [WRITE], {"both_actions"}),
        ({"kind": "max_calls", "call": "write", "max": 1, "same": ["args.id"]}, [WRITE], {"extra_call"}),
        ({"kind": "max_consecutive", "call": "read", "max": 2}, [READ, WRITE], {"extra_call"}),
        ({"kind": "budget", "limits": {"tool_calls": 4}}, [READ, WRITE], {"extra_call"}),
        ({"kind": "budget", "call": "write", "sum": "args.amount", "max": 9}, [READ, WRITE], {"amount_over"}),
        (
            {"kind": "budget", "call": "write", "sum": "args.amount", "max": {"value_of": "result_of.read.limit"}},
            [READ, WRITE],
            {"amount_over"},
        ),
        (
            {"kind": "args_schema", "call": "write", "must": {"args.amount": {"le": 5}, "args.id": {"in": [1, 2]}}},
            [WRITE],
            {"past_bound", "bad_argument", "drop_attr"},
        ),
        (
            {"kind": "args_schema", "call": "write", "schema": {"properties": {
                "amount": {"type": "number", "maximum": 5, "minimum": 1, "multipleOf": 1}, "id": {"enum": [1]}}}},
            [WRITE],
            {"past_bound", "bad_argument"},
        ),
        ({"kind": "termination", "ends": ["completed"]}, [WRITE], {"truncate_tail", "no_final_message"}),
        ({"kind": "recall", "required_calls": ["write"]}, [WRITE], {"drop_required"}),
        ({"kind": "repeats"}, [call("read", effect="read"), call("see", effect="read"), call("write", effect="write")],
         {"repeat_read", "cycle", "duplicate_write"}),
        ({"kind": "termination"}, [WRITE], {"truncate_tail", "no_final_message"}),
        ({"kind": "tool_errors"}, [WRITE], {"error_call"}),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else None,
)  # fmt: skip
def test_every_break_of_a_kind_is_killed(
    spec: dict[str, Any], calls: list[ToolCall], expected: set[str]
) -> None:
    """What has a place in a run that is right, and nothing less."""
    assert broken(a_run(*calls), spec) == expected


def test_approvals_by_events_and_by_two() -> None:
    """An event is a need that can be dropped; of two approvals both may be of one person."""
    events = (RunEvent(name="approval", time_ns=500, attributes={"approver": "a"}, span_id="e"),)
    by_event = replace(a_run(WRITE), events=events)
    two = a_run(call("approve", approver="a"), call("approve", approver="b"), WRITE)
    spec = {"kind": "approval", "call": "write", "approval": "approve", "distinct": 2}

    assert broken(by_event, {"kind": "approval", "call": "write"}) == {"drop_need"}
    assert {"drop_need", "same_approver", "fail_then_continue"} <= broken(two, spec)


def test_a_state_diff_is_broken_by_a_row_and_by_a_value() -> None:
    """What nothing allows, and what was not reached."""
    states = [{"a": {"status": "open"}}, {"a": {"status": "shut"}}]
    spec = {"kind": "state_diff", "required": [{"path": "a.status", "equals": "shut"}], "allowed": []}

    assert broken(a_run(WRITE, states=states), spec) >= {"wrong_value", "unrelated_row"}


def test_nothing_is_planted_where_the_rule_says_nothing_or_is_broken_already() -> None:
    """A need of another run, and one that was not met."""
    spec = {"kind": "require_before", "call": "write", "needs": "read"}

    assert broken(a_run(call("other")), spec) == set()
    found = sensitivity([a_run(WRITE)], [check_from_spec({"id": "one", **spec})])
    assert [one.operator for one in found.of(Expected.KILLED)] == []


def test_a_need_in_the_earlier_conversation_is_forgotten_too() -> None:
    """To drop a need is to drop it wherever it was met."""
    asked = Message(role="assistant", tool_calls=())
    run = replace(a_run(READ, WRITE), history=(Message(role="user", content="please"), asked))
    spec = {"kind": "require_before", "call": "write", "needs": "read"}
    found = sensitivity([run], [check_from_spec({"id": "one", **spec})])

    assert {one.fate for one in found.of(Expected.KILLED)} == {Fate.KILLED}


def test_values_are_placed_without_touching_the_original() -> None:
    """JSON text stays text, lists grow by one, and what is absent is taken out."""
    from redfirst.evaluators.paths import ABSENT

    whole = {"a": [1, {"b": 2}]}
    assert placed(whole, ["a", "1", "b"], 3) == {"a": [1, {"b": 3}]}
    assert placed(whole, ["a", "2"], 9) == {"a": [1, {"b": 2}, 9]}
    assert placed(whole, ["a", "1"], ABSENT) == {"a": [1]}
    assert placed(whole, ["a"], ABSENT) == {}
    assert placed('{"a": 1}', ["a"], 2) == '{"a": 2}'
    assert whole == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(credit_card|paypal)", "credit_card"),
        ("(?i)\\b(yes|no)\\b", "yes"),
        ("plain", "plain"),
        ("a(?:b|c)d", "abd"),
    ],
)
def test_a_text_is_made_from_literals_and_alternatives(pattern: str, text: str) -> None:
    """The first of each."""
    assert text_like(pattern) == text


def test_the_dip_is_between_the_states_and_not_at_the_end() -> None:
    """One observation more, in the middle, just below the bound."""
    run = a_run(WRITE)
    states = tuple(StateSnapshot(time_ns=at, state={"x": 7}, span_id=f"{at}") for at in (1, 2))

    assert broken(replace(run, states=states), {"kind": "invariant", "state": "x", "must": {"ge": 5}}) == {
        "dip_one_step"
    }

"""A run that a rules file writes down is the run that was meant."""

from __future__ import annotations

from typing import Any

import pytest

from redfirst.evaluators import MISSING, CallStatus, ConfigurationError, Stop
from redfirst.evaluators.rules import read_rules
from redfirst.evaluators.strict_yaml import dump
from redfirst.evaluators.trajectory import Trajectory

SECOND = 10**9


def the_run(**test: Any) -> Trajectory:
    """The run of one test."""
    file = {
        "schema": "redfirst.rules/1",
        "rules": [{"id": "r", "kind": "forbid", "call": "x"}],
        "tests": [{**test, "expect": {"r": "passed"}}],
    }
    (found,) = read_rules(dump(file), "x.yaml").tests
    assert found.run is not None
    return found.run


def test_steps_follow_each_other() -> None:
    """A second apart, each call in a turn of its own, answered unless it says otherwise."""
    run = the_run(
        steps=[
            "look",
            {"tool": "pay", "args": {"n": 1}, "result": None, "effect": "write", "idempotent": True},
            {
                "tool": "pay",
                "status": "tool_error",
                "error": "no",
                "agent": "a",
                "poll": True,
                "unrecorded": ["args"],
            },
            {"tool": "see", "unrecorded": ["result"]},
        ]
    )
    look, pay, failed, see = run.tool_calls

    assert [call.start_ns for call in run.tool_calls] == [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND]
    assert [call.turn for call in run.tool_calls] == [0, 1, 2, 3]
    assert (look.arguments, look.result, look.status) == ({}, {}, CallStatus.OK)
    assert (pay.arguments, pay.result, str(pay.effect), pay.idempotent) == ({"n": 1}, None, "write", True)
    assert (failed.status, failed.error, failed.arguments, failed.agent, failed.poll) == (
        CallStatus.TOOL_ERROR,
        "no",
        None,
        "a",
        True,
    )
    assert see.result is MISSING
    assert [turn.index for turn in run.model_calls] == [0, 1, 2, 3, 4]
    assert (run.start_ns, run.end_ns) == (SECOND // 2, 4 * SECOND + SECOND // 2)


def test_calls_of_one_turn_are_parallel() -> None:
    """They have one model call; a run without an answer has none for it."""
    run = the_run(steps=[{"tool": "a", "turn": 0}, {"tool": "b", "turn": 0}], answer=None)

    assert [call.turn for call in run.tool_calls] == [0, 0]
    assert [turn.index for turn in run.model_calls] == [0]
    assert run.answer is None


def test_what_is_said_and_reported() -> None:
    """Before the run, with the request, and between its calls."""
    run = the_run(
        before=[
            {"system": "be kind"},
            {"user": "hello"},
            {"tool": "verify", "args": {"id": 7}, "result": {"ok": True}},
            {"tool": "look", "unrecorded": ["result"]},
        ],
        request="cancel",
        steps=[
            "a",
            {"user": "yes"},
            {"event": "approval", "args": {"by": "ann"}},
            {"handoff": "billing"},
            {"state": {"x": 1}},
        ],
    )

    assert run.history is not None
    assert [(message.role, message.content) for message in run.history] == [
        ("system", "be kind"),
        ("user", "hello"),
        ("assistant", None),
        ("tool", '{"ok":true}'),
        ("assistant", None),
        ("user", "cancel"),
    ]
    assert run.model_calls[1].input_messages is not None
    assert run.model_calls[1].input_messages[-1].content == "yes"
    assert (run.events[0].name, run.events[0].attributes) == ("approval", {"by": "ann"})
    assert run.handoffs[0].target == "billing"
    assert run.states[0].state == {"x": 1}


def test_what_a_run_says_of_itself() -> None:
    """End, cap, completeness, missing facts, tokens, time and money."""
    run = the_run(
        request=None,
        stop="step_cap",
        cap=3,
        complete=False,
        missing=["states"],
        tokens={"input": 5, "output": 6},
        seconds=9,
        usd=0.5,
    )

    assert (run.termination.reason, run.termination.cap) == (Stop.STEP_CAP, 3)
    assert run.completeness.value == "incomplete"
    assert [gap.fact for gap in run.coverage.missing] == ["states"]
    assert (run.tokens.input, run.tokens.output, run.cost_usd) == (5, 6, 0.5)
    assert run.end_ns - run.start_ns == 9 * SECOND
    assert (run.request, run.history) == (None, None)


@pytest.mark.parametrize(
    "moment", ["2026-11-30T10:00:00Z", "2026-11-30T10:00:00", "2026-11-30T11:00:00+01:00"]
)
def test_a_step_may_say_when(moment: str) -> None:
    """In UTC unless it says so; what follows is a second later."""
    run = the_run(steps=[{"tool": "a", "at": moment}, "b"])

    assert [call.start_ns for call in run.tool_calls] == [1_796_032_800 * SECOND, 1_796_032_801 * SECOND]


@pytest.mark.parametrize(
    ("step", "what"),
    [
        ({"tool": "a", "at": 5}, "at: expected"),
        ({}, "a step is one of"),
        ({"tool": "$who"}, "is nothing that happens"),
    ],
)
def test_a_faulty_step_is_named(step: dict[str, Any], what: str) -> None:
    """As every fault of a rules file."""
    with pytest.raises(ConfigurationError, match=what):
        the_run(steps=[step])

"""What the linter complains of, and what it lets pass; how a rule reads in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import MISSING, ModelCall, Trajectory
from redfirst.evaluators.conditions import parse_condition
from redfirst.evaluators.declared import declared_shape
from redfirst.evaluators.explaining import explained
from redfirst.evaluators.linting import lint
from redfirst.evaluators.rule_reach import contradiction
from redfirst.evaluators.rules import read_rules
from redfirst.evaluators.strict_yaml import dump
from redfirst.evaluators.testing import a_run, call

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}
RUN = replace(
    a_run(
        call("get_order", order_id="A-1", result={"status": "new", "lines": []}),
        replace(call("cancel", order_id="A-1", result="cancelled"), schema=SCHEMA),
        call("list_orders", result=MISSING),
    ),
    model_calls=(
        ModelCall(
            index=0,
            span_id="m",
            tools=(
                {"type": "function", "function": {"name": "refund", "parameters": SCHEMA}},
                {"name": "odd"},
            ),  # type: ignore[arg-type]
        ),
    ),
)


def complaints(rules: list[Mapping[str, Any]], *runs: Trajectory, **more: Any) -> list[tuple[int, str, str]]:
    """Line, level and kind of each complaint; every rule begins on its own line from 3 on."""
    text = dump(
        {
            "schema": "redfirst.rules/1",
            "rules": [{"id": f"r{place}", **one} for place, one in enumerate(rules)],
            **more,
        }
    )
    return [(one.line, one.level.value, one.what) for one in lint(read_rules(text, "x.yaml"), runs)]


def kinds(*rules: Mapping[str, Any], runs: tuple[Trajectory, ...] = (RUN,), **more: Any) -> set[str]:
    """Which complaints there are, but for those of rules that judged nothing."""
    return {f"{what} ({level})" for _, level, what in complaints(list(rules), *runs, **more)} - {
        "vacuous (warning)"
    }


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"kind": "forbid", "call": "cancel"}, set()),
        ({"kind": "forbid", "call": "refund"}, set()),
        ({"kind": "forbid", "call": "cancl"}, {"unknown_tool (error)"}),
        ({"kind": "forbid", "call": "$answer"}, set()),
        ({"kind": "forbid", "call": "cancel", "after": "escalate"}, {"unknown_tool (error)"}),
        ({"kind": "mutually_exclusive", "calls": ["cancel", "refnd"]}, {"unknown_tool (error)"}),
        ({"kind": "sequence", "steps": ["get_order", "kancel"]}, {"unknown_tool (error)"}),
        (
            {"kind": "no_flow", "from": "get_order", "to": {"tool": "cancel"}, "trusted": ["friend"]},
            {"unknown_tool (error)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": "cancel", "where": {"result_of.get_ordr.status": 1}}},
            {"unknown_tool (error)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": "cancel", "where": {"args.ordr_id": 1}}},
            {"unknown_path (error)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": "get_order", "where": {"args.ordr_id": 1}}},
            {"unknown_path (warning)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": ["get_order", "list_orders"], "where": {"args.nr": 1}}},
            {"unknown_path (warning)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": ["get_order", "odd_one"], "where": {"args.nr": 1}}},
            {"unknown_tool (error)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": "cancel", "where": {"result_of.get_order.state": 1}}},
            {"unknown_path (warning)"},
        ),
        ({"kind": "forbid", "call": {"tool": "cancel", "where": {"result_of.get_order.status": 1}}}, set()),
        ({"kind": "forbid", "call": {"tool": "cancel", "where": {"result.status": 1}}}, set()),
        (
            {
                "kind": "args_schema",
                "call": "cancel",
                "must": {"args.order_id": {"in": {"value_of": "results_of.get_order.*.id"}}},
            },
            set(),
        ),
        (
            {
                "kind": "args_schema",
                "call": "cancel",
                "must": {"args.id": {"in": {"value_of": "results_of.get_order.id"}}},
            },
            {"unknown_path (error)", "unknown_path (warning)"},
        ),
        (
            {
                "kind": "require_before",
                "call": "cancel",
                "needs": "get_order",
                "same": [["args.order", "args.order_id"]],
            },
            {"unknown_path (warning)"},
        ),
        (
            {
                "kind": "require_before",
                "call": "cancel",
                "needs": "get_order",
                "covers": {"result.max": {"ge": "call.args.sum"}},
            },
            {"unknown_path (error)", "unknown_path (warning)"},
        ),
        (
            {
                "kind": "require_before",
                "call": "cancel",
                "needs": "get_order",
                "covers": {"result.max": "call.args.sum"},
            },
            {"unknown_path (error)", "unknown_path (warning)"},
        ),
        (
            {"kind": "approval", "call": "cancel", "approval": "get_order", "approver": "args.by"},
            {"unknown_path (warning)"},
        ),
        ({"kind": "approval", "call": "cancel", "approver": "args.by"}, set()),
        (
            {"kind": "budget", "call": "cancel", "sum": "args.amount", "by": ["args.nr"], "max": 1},
            {"unknown_path (error)"},
        ),
        ({"kind": "budget", "limits": {"steps": 1}}, set()),
        ({"kind": "max_calls", "call": "cancel", "max": 1, "same": ["args.nr"]}, {"unknown_path (error)"}),
        (
            {"kind": "no_flow", "from": "get_order", "to": {"tool": "cancel", "arg": "args.x"}},
            {"unknown_path (error)"},
        ),
        (
            {
                "kind": "no_flow",
                "from": "get_order",
                "to": {"tool": "cancel"},
                "differs": [["args.x", "args.y"]],
            },
            {"unknown_path (error)", "unknown_path (warning)"},
        ),
        (
            {"kind": "forbid", "call": {"tool": "cancel", "where": {"result.0.status": 1, "state.x": 1}}},
            set(),
        ),
        (
            {
                "kind": "forbid",
                "call": {"tool": "cancel", "where": {"args.order_id": {"eq": "a", "ne": "a"}}},
            },
            {"unreachable (error)"},
        ),
        ({"kind": "state_diff", "allowed": [{"path": "orders.**"}]}, {"wildcard (warning)"}),
        ({"kind": "state_diff", "allowed": [{"path": "**"}]}, {"wildcard (warning)"}),
        ({"kind": "state_diff", "allowed": [{"path": "orders.*.status"}]}, {"wildcard (warning)"}),
        ({"kind": "state_diff", "allowed": [{"path": "*.x"}]}, {"wildcard (warning)"}),
        ({"kind": "state_diff", "allowed": [{"path": "orders.*.status", "mentioned": True}]}, set()),
        ({"kind": "state_diff", "allowed": [{"path": "orders.A-1.**"}]}, set()),
        ({"kind": "state_diff", "together": ["a", "b"]}, set()),
    ],
)
def test_a_complaint_and_no_other(rule: Mapping[str, Any], found: set[str]) -> None:
    """Each mistake is found, and what is no mistake is let pass."""
    assert kinds(rule) == found


def test_a_need_that_another_rule_forbids() -> None:
    """No call can ever meet it, so every call of the other fails."""
    ban = {"kind": "forbid", "call": "get_order"}
    need = {"kind": "require_before", "call": "cancel", "needs": "get_order"}

    assert kinds(ban, need) == {"unreachable (error)"}
    assert kinds({**ban, "after": "cancel"}, need) == set()
    assert kinds(ban, {"kind": "sequence", "steps": ["get_order", "cancel"]}) == {"unreachable (error)"}
    assert kinds(ban, {"kind": "sequence", "steps": ["cancel", "get_order"]}) == set()


def test_tasks_are_looked_at() -> None:
    """Their calls, their state, and whether a run was of them."""
    task = {
        "id": "t",
        "when": {"request": {"matches": "nobody asks this"}},
        "required_calls": ["get_ordr"],
        "state": {"allowed": [{"path": "a.**"}]},
    }
    found = complaints([], RUN, tasks=[task])

    assert {what for _, _, what in found} == {"unknown_tool", "wildcard", "vacuous"}
    assert complaints(
        [],
        RUN,
        tasks=[{**task, "required_calls": ["cancel"], "state": {"required": [{"path": "a", "equals": 1}]}}],
    )


def test_without_runs_nothing_is_unknown() -> None:
    """What is compared with runs needs some."""
    assert complaints([{"kind": "forbid", "call": "nothing_like_it"}]) == []


@pytest.mark.parametrize(
    ("condition", "impossible"),
    [
        ({"gt": 1, "lt": 2}, False),
        ({"gt": 2, "lt": 1}, True),
        ({"ge": 1, "le": 1}, False),
        ({"gt": 1, "le": 1}, True),
        ({"ge": 1, "lt": "1.0"}, True),
        ({"gt": 1}, False),
        ({"lt": 1}, False),
        ({"gt": "b", "lt": "a"}, False),
        ({"in": [1, 2], "gt": 2}, True),
        ({"in": [1, 3], "gt": 2}, False),
        ({"eq": "a", "matches": "b"}, True),
        ({"exists": False, "eq": 1}, True),
        ({"exists": False}, False),
        ({"exists": True, "eq": 1}, False),
        ({"eq": {"value_of": "args.x"}, "gt": 1}, False),
    ],
)
def test_what_can_never_hold(condition: Mapping[str, Any], impossible: bool) -> None:
    """Bounds that cross, values that the rest refuses; text is not ordered here."""
    assert (contradiction(parse_condition(condition, lambda path: path)) is not None) is impossible


TAIL = "; what cannot be told leaves it inconclusive."
ORDER = "; calls of one model turn are simultaneous" + TAIL


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {
                "kind": "require_before",
                "call": "pay",
                "needs": "ask",
                "same": [["result.id", "args.id"]],
                "once": True,
                "scope": "agent",
            },
            "Every call of pay comes after a call of ask with the same result.id (of the former) as args.id (of the latter)"
            " by the same agent that ended ok, one for each" + ORDER,
        ),
        (
            {
                "kind": "require_before",
                "call": "$answer",
                "needs": ["ask", "$user"],
                "order": "executed",
                "scope": "subtree",
            },
            "The final answer comes after a call of ask or a message of the user under the same agent's span that ended ok;"
            " calls are in the order in which they were executed" + TAIL,
        ),
        (
            {
                "kind": "require_after",
                "call": {"tool": "open", "where": {"args.x": 1}},
                "needs": "$handoff",
                "within": "PT1M",
                "within_steps": 2,
                "until": "quit",
                "missing": "failed",
            },
            "Every call of open where args.x is 1 is followed by a handoff, at most PT1M apart,"
            " at most 2 model turn(s) apart, with no call of quit that may have taken effect in between before"
            " the run ends; calls of one model turn are"
            " simultaneous; what cannot be told is a failure.",
        ),
        (
            {
                "kind": "forbid",
                "call": {"tool": ["a", "b", "c"], "status": "denied"},
                "after": "$event.stop",
                "missing": "ignore",
            },
            "There is no call of a, b or c that ended as denied after a report of stop; calls of one model turn are"
            " simultaneous; what cannot be told is not counted.",
        ),
        (
            {"kind": "mutually_exclusive", "calls": ["a", "b"], "same": ["args.x"], "scope": "agent"},
            "At most one of a and b is called for each args.x and agent, in whatever order" + TAIL,
        ),
        (
            {"kind": "max_calls", "call": "a", "max": 2, "attempts": True},
            "There are at most 2 call(s) of a (also one that did not run); every attempt counts" + TAIL,
        ),
        (
            {"kind": "python", "function": "pydantic-evals", "params": {"at_least": 1}},
            "The function pydantic-evals says so, given {'at_least': 1}.",
        ),
        (
            {"kind": "max_consecutive", "call": "a", "max": 2, "same": ["args.x"]},
            "One agent calls a with the same args.x at most 2 time(s) in a row; any other call that ran ends the row"
            + ORDER,
        ),
        (
            {"kind": "sequence", "steps": ["a", "b", "c"]},
            "Every call of c comes after a call of a that ended ok, then a call of b that ended ok, and each step"
            " between after those before it" + ORDER,
        ),
        (
            {"kind": "invariant", "state": "a.b", "must": {"ge": 5}, "when": {"request": "x", "agent": "y"}},
            "In runs whose request is x and agent is y, in every state that was reported, a.b is at least 5; between reports"
            " nothing is claimed" + TAIL,
        ),
        (
            {
                "kind": "no_flow",
                "from": "web",
                "to": {"tool": "send", "arg": "args.to", "where": {"args.k": 1}},
                "pattern": "x",
                "unless": "ok",
                "trusted": "book",
            },
            "No value in which x is found that a call of web answered, and that none of the user, the system prompt and"
            " book gave before, reaches args.to of send where args.k is 1, unless a call of ok that ended ok came in between"
            + ORDER,
        ),
        (
            {"kind": "no_flow", "from": "web", "to": {"tool": "send"}, "mode": "order"},
            "No call of send is made after a call of web answered" + ORDER,
        ),
        (
            {"kind": "no_flow", "pattern": "x", "to": {"tool": "send"}},
            "No value in which x is found reaches args of send" + ORDER,
        ),
        (
            {"kind": "args_schema", "call": "a"},
            "The arguments of every call of a fit the schema that the trace carries" + TAIL,
        ),
        (
            {"kind": "args_schema", "call": "a", "schema": {"type": "object"}, "must": {"args.x": 1}},
            'The arguments of every call of a are such that args.x is 1, and they fit the schema {"type":"object"}'
            + TAIL,
        ),
        (
            {"kind": "args_schema", "call": "a", "schema": {"type": "object"}},
            'The arguments of every call of a fit the schema {"type":"object"}' + TAIL,
        ),
        (
            {"kind": "budget", "limits": {"tool_calls": 3, "usd": 0.5}},
            "The run spends at most 3 tool calls and 0.5 usd" + TAIL,
        ),
        (
            {"kind": "budget", "call": "a", "sum": "args.x", "by": ["args.y"], "max": 5, "within": "P1D"},
            "The sum of args.x over every call of a is at most 5 for each args.y within any P1D of the run; a call with its"
            " retries counts once" + TAIL,
        ),
        (
            {"kind": "approval", "call": "a", "distinct": 2, "covers": {"args.m": "call.args.m"}},
            "Every call of a comes after a report of approval by each of 2 different values of args.approver,"
            " whose args.m is args.m of that call" + ORDER,
        ),
        (
            {
                "kind": "state_diff",
                "required": [{"path": "a", "equals": 1}],
                "allowed": [{"path": "b.*", "mentioned": True, "to": [1, 2]}],
                "together": ["c", "d"],
            },
            "At the end a is 1 and nothing else changes but b.* where the user mentioned the key under the first *"
            " to 1 or 2 and"
            " what stands at c and d changes together or not at all" + TAIL,
        ),
        ({"kind": "state_diff", "allowed": []}, "Nothing else changes but nothing" + TAIL),
        (
            {
                "kind": "termination",
                "ends": ["completed", "refused"],
                "answer": {"exists": True},
                "pending": False,
            },
            "The run ends as completed or refused, its answer is present, and no call of its last turn is left unexecuted"
            + TAIL,
        ),
        (
            {"kind": "recall", "required_calls": ["a", "b"]},
            "Each of these is called, in any order, one call for each:"
            " a call of a that ended ok; a call of b that ended ok.",
        ),
        (
            {"kind": "state.required", "required": [{"path": "a", "must": {"ge": 1}}]},
            "At the end a is at least 1.",
        ),
        (
            {
                "kind": "state.collateral",
                "scopes": [
                    {"allowed": [{"path": "a"}]},
                    {"when": {"agent": "x"}, "collateral": "ignore"},
                    {"required": [{"path": "b", "equals": 1}]},
                ],
            },
            "Between the first and the last state nothing changes but what is allowed: in every run a"
            " may change; in runs whose"
            " agent is x, anything may change; in every run nothing may change, and what is under b.",
        ),
    ],
)
def test_a_rule_in_words(spec: Mapping[str, Any], sentence: str) -> None:
    """One sentence that says what is demanded, of what, when, and what becomes of the unknown."""
    assert explained(declared_shape({"id": "x", **spec})) == sentence

"""Breaks of rules that limit calls: one call too many, both of two, a forbidden one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.check import Check
from redfirst.evaluators.conditions import parse_condition
from redfirst.evaluators.paths import call_path, look_into_call
from redfirst.evaluators.rule_base_shapes import OrderedShape
from redfirst.evaluators.rule_kinds.keys import Key, bound, describe, equal_keys
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.meeting import made_true
from redfirst.evaluators.sensitivity.mutant import Mutant, Original
from redfirst.evaluators.sensitivity.places import (
    argument,
    conditions_of,
    judged,
    speaks_of,
    value_at,
)
from redfirst.evaluators.sensitivity.values import spelt_as
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory

_MOST_ADDED = 60
"""Calls that are added to pass a limit."""


def breaks_of_forbid(of: Original, check: Check, shape: shapes.ForbidShape) -> Iterator[Mutant]:
    """A forbidden call is made; where one is forbidden by its values, a call is given these."""
    if not of.unbroken(check):
        return
    run = of.run
    if shape.after is not None and not shape.call.where:
        for event in run.calls_to(*shape.after.tool):
            if event.status is CallStatus.OK and conditions_of(shape.after).conditions == ():
                made = _made(shape.call.tool[0], shape, event, run)
                new = editing.inserted(run, event, [made])
                yield _mutant("call_after", f"{made.name} after {describe(event)}", new, check)
                return
    elif shape.after is None and not shape.call.where:
        last = run.tool_calls[-1] if run.tool_calls else None
        made = ToolCall(index=0, name=shape.call.tool[0], arguments={}, result={}, status=CallStatus.OK)
        yield _mutant("forbidden_call", made.name, editing.inserted(run, last, [made]), check)
    elif shape.after is None:
        for call in run.calls_to(*shape.call.tool):
            yield from _made_forbidden(run, check, shape, call)


def breaks_of_exclusion(of: Original, check: Check, shape: shapes.MutuallyExclusiveShape) -> Iterator[Mutant]:
    """Beside a call of one kind one of another is made, for the same values."""
    if not of.right(check):
        return
    for place, kind in enumerate(shape.calls):
        other = shape.calls[1 if place == 0 else 0]
        for call in judged(kind, shape, of.run)[:1]:
            if other.where or set(other.tool) & set(kind.tool):
                continue
            made = _made(other.tool[0], shape, call, of.run, judged_too=True)
            new = editing.inserted(of.run, call, [made])
            yield _mutant("both_actions", f"{made.name} beside {describe(call)}", new, check)


def breaks_of_max_calls(of: Original, check: Check, shape: shapes.MaxCallsShape) -> Iterator[Mutant]:
    """The last call of a key is made again until there is one over the limit."""
    if not of.right(check):
        return
    done: list[Key] = []
    for call in reversed(judged(shape.call, shape, of.run)):
        key = tuple(value_at(path, call, of.run) for _, path in shape.same)
        if not bound(key) or any(equal_keys(key, other) for other in done):
            continue
        done.append(key)
        if shape.limit <= _MOST_ADDED:
            more = editing.inserted(of.run, call, [replace(call, status=CallStatus.OK)] * shape.limit)
            yield _mutant("extra_call", f"{describe(call)}, {shape.limit} more", more, check)


def breaks_of_rows(of: Original, check: Check, shape: shapes.MaxConsecutiveShape) -> Iterator[Mutant]:
    """A call is followed by others of its tool, one more than may stand in a row."""
    if not of.right(check) or shape.call.where or shape.limit > _MOST_ADDED:
        return
    calls = [call for call in of.run.calls_to(*shape.call.tool) if call.status is CallStatus.OK]
    for call in calls[-1:]:
        kept = {argument(pair[1]) for pair in shape.same}
        more = editing.inserted(of.run, call, [_varied(call, n, kept) for n in range(shape.limit)])
        yield _mutant("extra_call", f"{describe(call)}, {shape.limit} more in a row", more, check)


def breaks_of_budget(of: Original, check: Check, shape: shapes.BudgetShape) -> Iterator[Mutant]:
    """More is spent than the limit: calls, money, or the sum of an argument."""
    if not of.right(check) or not of.run.tool_calls:
        return
    run, last = of.run, of.run.tool_calls[-1]
    if shape.limits is not None:
        calls = shape.limits.tool_calls
        if calls is not None and calls <= _MOST_ADDED:
            made = [_varied(replace(last, status=CallStatus.OK), n, set()) for n in range(calls + 1)]
            yield _mutant("extra_call", f"{calls + 1} calls more", editing.inserted(run, last, made), check)
        if shape.limits.usd is not None:
            spent = replace(run, cost_usd=float(shape.limits.usd) + 1)
            yield _mutant("amount_over", f"{shape.limits.usd} + 1 USD", spent, check)
        return
    keys = argument(shape.sum or "args")
    for call in run.calls_to(*(shape.call.tool if shape.call else ())):
        (test,) = parse_condition({"le": shape.limit}, call_path).tests
        limit = number_of(
            value_at(test.wanted.path, call, run) if hasattr(test.wanted, "path") else test.wanted
        )
        if keys is None or limit is None or call.arguments is None or not call.ran:
            continue
        more = spelt_as(limit + 1, look_into_call(call, ("args", *keys)))
        over = editing.with_call(run, call, editing.given(call, keys, more))
        yield _mutant("amount_over", f"{describe(call)}: {limit} + 1", over, check)


def _made_forbidden(
    run: Trajectory, check: Check, shape: shapes.ForbidShape, call: ToolCall
) -> Iterator[Mutant]:
    """The call with the values that are forbidden, in its arguments or in what was read for it."""
    new = made_true(conditions_of(shape.call), call, run)
    if new is not None and speaks_of(shape.call, shape, new.tool_calls[call.index], new):
        yield _mutant("make_forbidden", f"{describe(call)}: {conditions_of(shape.call)}", new, check)


def _made(
    tool: str, shape: OrderedShape, event: ToolCall, run: Trajectory, *, judged_too: bool = False
) -> ToolCall:
    """A call of the tool that has the values of the event at the paths that tie the two together."""
    earlier = [call for call in run.calls_to(tool) if call.arguments]
    made = ToolCall(
        index=0,
        name=tool,
        arguments=earlier[-1].arguments if earlier else {},
        result={},
        status=CallStatus.OK,
        agent=event.agent,
        agent_spans=event.agent_spans,
    )
    for other, own in shape.same:
        keys = argument(own)
        if keys is not None:
            made = editing.given(made, keys, value_at(own if judged_too else other, event, run))
    return made


def _varied(call: ToolCall, number: int, kept: set[tuple[str, ...] | None]) -> ToolCall:
    """The call with other arguments, but for those that are kept."""
    given = dict(call.arguments or {})
    free = [name for name, value in given.items() if isinstance(value, str) and (name,) not in kept]
    name = free[0] if free else "note"
    return replace(call, arguments={**given, name: f"{given.get(name, 'more')} ({number + 2})"})


def _mutant(operator: str, place: str, run: Trajectory, check: Check) -> Mutant:
    return Mutant(operator=operator, place=place, run=run, killers=frozenset({check.id}))

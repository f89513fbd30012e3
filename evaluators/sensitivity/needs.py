"""Breaks of rules on what must come before or after a call: the need is dropped, late, beside it, failed, or of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.check import Check
from redfirst.evaluators.paths import call_path, look_into_call
from redfirst.evaluators.rule_base_shapes import OrderedShape
from redfirst.evaluators.rule_kinds.happenings import ANSWER, EVENT, USER
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.meeting import made_true
from redfirst.evaluators.sensitivity.mutant import Mutant, Original
from redfirst.evaluators.sensitivity.places import (
    argument,
    conditions_of,
    judged,
    looking,
    read_elsewhere,
    speaks_of,
    told,
    value_at,
)
from redfirst.evaluators.sensitivity.values import NOTHING_SAID, another, breaking, spelt_as
from redfirst.evaluators.shapes import CallShape
from redfirst.evaluators.trajectory import MISSING, ToolCall, Trajectory

_Before = shapes.RequireBeforeShape | shapes.ApprovalShape
_Edit = Callable[[ToolCall], ToolCall]


def breaks_of_before(of: Original, check: Check, shape: _Before) -> Iterator[Mutant]:
    """Breaks of ``require_before`` and ``approval``, for each call that the rule judges.

    Every call of the need's name is changed alike, so that no other one can meet the need.
    """
    if not of.right(check):
        return
    needs = need_of(shape)
    if set(needs.tool) & set(shape.call.tool):
        return
    run = of.run
    first = True
    for call in judged(shape.call, shape, run):
        if first:
            yield from _never(of, check, shape, needs, call)
            first = False
        yield from _untimely(of, check, shape, needs, call)
        yield from _not_enough(of, check, shape, needs, call)
        if shape.once and len(_inside(needs, run)) <= len(judged(shape.call, shape, run)):
            twice = editing.inserted(run, call, [call])
            yield _mutant("reuse_need", f"{describe(call)} twice", twice, check)


def made_needy(of: Original, check: Check, shape: shapes.RequireBeforeShape) -> Iterator[Mutant]:
    """A call of which the rule did not speak is made one that needs what the run does not have."""
    run, needs = of.run, shape.needs
    if not shape.call.where or not of.unbroken(check) or USER in needs.tool or _earlier(needs, run):
        return
    for call in run.calls_to(*shape.call.tool):
        if any(one is not call for one in _inside(needs, run)) or speaks_of(shape.call, shape, call, run):
            continue
        new = made_true(conditions_of(shape.call), call, run)
        if new is not None and speaks_of(shape.call, shape, new.tool_calls[call.index], new):
            yield _mutant("make_needy", f"{describe(call)}: {conditions_of(shape.call)}", new, check)


def breaks_of_after(of: Original, check: Check, shape: shapes.RequireAfterShape) -> Iterator[Mutant]:
    """Breaks of ``require_after``: nothing follows, or it comes first."""
    calls = judged(shape.call, shape, of.run)
    if not of.right(check) or not calls or set(shape.needs.tool) & set(shape.call.tool):
        return
    gone = _dropped(of.run, shape.needs)
    if gone is not None:
        yield _mutant("drop_need", f"no {' or '.join(shape.needs.tool)}", gone, check)
    later = [one for one in _inside(shape.needs, of.run) if before(calls[-1], one, shape.order)]
    if later and later[-1].name in shape.needs.tool:
        swapped = editing.exchanged(of.run, calls[-1], later[-1])
        yield _mutant("swap", f"{describe(later[-1])} before {describe(calls[-1])}", swapped, check)


def breaks_of_sequence(of: Original, check: Check, shape: shapes.SequenceShape) -> Iterator[Mutant]:
    """Breaks of ``sequence``: a step is left out, or taken too late."""
    if not of.right(check):
        return
    for place in range(1, len(shape.steps)):
        step, need = shape.steps[place], shape.steps[place - 1]
        calls = [] if step.tool[0].startswith("$") else judged(step, shape, of.run)
        if not calls or any(set(need.tool) & set(other.tool) for other in shape.steps if other is not need):
            continue
        gone = _dropped(of.run, need)
        if gone is not None:
            yield _mutant("drop_need", f"no {' or '.join(need.tool)}", gone, check)
        for call in calls:
            yield from _late(of.run, check, shape, need, step, call)


def need_of(shape: _Before) -> CallShape:
    """What must come first."""
    if isinstance(shape, shapes.RequireBeforeShape):
        return shape.needs
    return shape.approval or CallShape(tool=[f"{EVENT}approval"])


def _never(of: Original, check: Check, shape: _Before, needs: CallShape, call: ToolCall) -> Iterator[Mutant]:
    """The need is never met in the whole run."""
    run, tools = of.run, editing.tools_among(needs.tool)
    if read_elsewhere(shape.call.where) & set(needs.tool):
        return  # without the answer nobody knows whether the rule speaks of the call
    gone = _dropped(run, needs)
    if gone is not None:
        yield _mutant("drop_need", f"no {' or '.join(needs.tool)}", gone, check)
    inside = _inside(needs, run)
    if len(tools) < len(needs.tool) or not inside or _earlier(needs, run):
        return
    if not needs.status or "tool_error" not in needs.status:
        yield _edited("fail_then_continue", editing.failing, inside, run, check)
    pairs = [pair for pair in shape.same if call_path(pair[0])[0] in ("args", "result")]
    if pairs:
        edit = partial(editing.with_value, parts=call_path(pairs[0][0]), new=another)
        yield _edited("wrong_subject", edit, inside, run, check)
    for path, condition in conditions_of(needs).conditions:
        wrong = breaking(condition, value_at(path, inside[0], run), looking(call, run, shape.order))
        if wrong is not MISSING and call_path(path)[0] in ("args", "result"):
            edit = partial(editing.with_value, parts=call_path(path), new=partial(_always, wrong))
            yield _edited("unmet_need", edit, inside, run, check)
    if isinstance(shape, shapes.ApprovalShape) and shape.distinct > 1:
        edit = partial(editing.with_value, parts=call_path(shape.approver), new=partial(_always, "one"))
        yield _edited("same_approver", edit, inside, run, check)


def _untimely(
    of: Original, check: Check, shape: _Before, needs: CallShape, call: ToolCall
) -> Iterator[Mutant]:
    """The need comes after the call, or beside it."""
    if len(editing.tools_among(needs.tool)) < len(needs.tool) or _earlier(needs, of.run):
        return
    yield from _late(of.run, check, shape, needs, shape.call, call)
    earlier = [one for one in _inside(needs, of.run) if before(one, call, shape.order) is True]
    if not earlier:
        return
    together = editing.beside(of.run, call, earlier)
    twin = next(one for one in together.tool_calls if one.span_id == call.span_id)
    if speaks_of(shape.call, shape, twin, together):
        yield _mutant("overlap", f"{told(earlier)} beside {describe(call)}", together, check)


def _late(
    run: Trajectory,
    check: Check,
    shape: OrderedShape,
    need: CallShape,
    step: CallShape,
    call: ToolCall,
) -> Iterator[Mutant]:
    earlier = [one for one in _inside(need, run) if before(one, call, shape.order) is True]
    if not earlier or _earlier(need, run):
        return
    swapped = editing.exchanged(run, earlier[0], call)
    twin = swapped.tool_calls[earlier[0].index]
    if speaks_of(step, shape, twin, swapped):
        yield _mutant("swap", f"{describe(call)} before {describe(earlier[0])}", swapped, check)


def _not_enough(
    of: Original, check: Check, shape: _Before, needs: CallShape, call: ToolCall
) -> Iterator[Mutant]:
    """The need covers less than the call takes."""
    for path, bounds in shape.covers.items():
        taken = next((str(wanted) for name, wanted in bounds.items() if name == "ge"), None)
        keys = argument(taken.removeprefix("call.")) if taken else None
        most = [
            number for one in _inside(needs, of.run) if (number := number_of(value_at(path, one, of.run)))
        ]
        if not keys or not most or taken in [f"call.{pair[1]}" for pair in shape.same]:
            continue
        enough = spelt_as(max(most) + 1, look_into_call(call, ("args", *keys)))
        over = editing.with_call(of.run, call, editing.given(call, keys, enough))
        yield _mutant("amount_over", f"{describe(call)} for {max(most) + 1}", over, check)


def _always(value: object, _: object) -> object:
    return value


def _dropped(run: Trajectory, needs: CallShape) -> Trajectory | None:
    """The run in which nothing has the name of the need, or in which nothing that was said meets it."""
    for name in needs.tool:
        if name == USER and not _unsaid(needs, USER, run):
            return None
        if name == ANSWER and not _unsaid(needs, ANSWER, run):
            return None
    gone = editing.without(run, [name for name in needs.tool if editing.is_removable(name)])
    if USER in needs.tool:
        gone = editing.retold(gone, lambda _: NOTHING_SAID)
    return replace(gone, answer=NOTHING_SAID) if ANSWER in needs.tool else gone


def _unsaid(needs: CallShape, name: str, run: Trajectory) -> bool:
    """Whether a text that says nothing does not meet the need."""
    said = ToolCall(index=0, name=name, arguments={"text": NOTHING_SAID})
    return conditions_of(needs).holds(lambda path: value_at(path, said, run)) is False


def _inside(needs: CallShape, run: Trajectory) -> list[ToolCall]:
    return [one for one in run.tool_calls if one.name in needs.tool]


def _earlier(needs: CallShape, run: Trajectory) -> bool:
    """Whether the need may have been met before the run."""
    return any(asked.name in needs.tool for message in run.history or () for asked in message.tool_calls)


def _edited(operator: str, edit: _Edit, calls: list[ToolCall], run: Trajectory, check: Check) -> Mutant:
    places = {call.index for call in calls}
    new = editing.changed(run, lambda one: edit(one) if one.index in places else one)
    return _mutant(operator, told(calls), new, check)


def _mutant(operator: str, place: str, run: Trajectory, check: Check) -> Mutant:
    return Mutant(operator=operator, place=place, run=run, killers=frozenset({check.id}))

"""Breaks of what every run is asked: repeats, an end, errors, and the calls that a task requires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.canonical import INTENT, canonical_text
from redfirst.evaluators.check import Check
from redfirst.evaluators.file_shapes import RecallShape
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.mutant import Mutant, Original
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Effect,
    Stop,
    Termination,
    ToolCall,
    Trajectory,
)

_ROUNDS = 3


def breaks_of_repeats(of: Original, check: Check) -> Iterator[Mutant]:
    """A read is made three times, a write twice, and two calls go round three times."""
    if not of.right(check):
        return
    calls = [
        call
        for call in of.run.tool_calls
        if call.status is CallStatus.OK
        and call.arguments is not None
        and call.result is not MISSING
        and not call.poll
    ]
    reads = [call for call in calls if call.effect in (Effect.READ, None)]
    for call in reads[:1]:
        run = editing.inserted(of.run, call, [call] * (_ROUNDS - 1))
        yield _mutant("repeat_read", f"{describe(call)} {_ROUNDS} times", run, check)
    for call in [call for call in calls if call.effect is Effect.WRITE][:1]:
        yield _mutant("duplicate_write", describe(call), editing.inserted(of.run, call, [call]), check)
    for one, other in pairwise(reads):
        if other.index == one.index + 1 and _intent(one) != _intent(other) and one.turn != other.turn:
            run = editing.inserted(of.run, other, [one, other] * (_ROUNDS - 1))
            yield _mutant("cycle", f"{one.name} and {other.name} {_ROUNDS} times", run, check)
            return


def breaks_of_termination(
    of: Original, check: Check, shape: shapes.TerminationShape | None = None
) -> Iterator[Mutant]:
    """The run is cut at its cap before its last call, or ends with an error and no answer."""
    if not of.right(check):
        return
    ends = () if shape is None else shape.ends
    if "step_cap" not in ends:
        cut = editing.with_calls(of.run, of.run.tool_calls[:-1])
        yield _mutant("truncate_tail", "cut at the step cap", _ended(cut, Stop.STEP_CAP), check)
    if "error" not in ends:
        yield _mutant("no_final_message", "ended with an error", _ended(of.run, Stop.ERROR), check)


def breaks_of_errors(of: Original, check: Check) -> Iterator[Mutant]:
    """A call that was answered is answered with an error."""
    calls = [call for call in of.run.tool_calls if call.status is CallStatus.OK]
    if of.right(check) and calls:
        call = calls[-1]
        run = editing.changed(of.run, lambda one: editing.failing(one) if one is call else one)
        yield _mutant("error_call", describe(call), run, check)


def breaks_of_recall(of: Original, check: Check, shape: RecallShape) -> Iterator[Mutant]:
    """A required call is never made."""
    if of.right(check):
        for one in shape.required_calls or ():
            gone = editing.without(of.run, one.tool)
            yield _mutant("drop_required", f"no {' or '.join(one.tool)}", gone, check)


def _intent(call: ToolCall) -> tuple[str, str]:
    return call.name, canonical_text(call.arguments, INTENT)


def _ended(run: Trajectory, reason: Stop) -> Trajectory:
    return replace(run, answer=None, termination=Termination(reason=reason, span_id=run.root_span_id))


def _mutant(operator: str, place: str, run: Trajectory, check: Check) -> Mutant:
    return Mutant(operator=operator, place=place, run=run, killers=frozenset({check.id}))

"""Breaks of what must stand in the state: a write left out, done twice or wrong, a row beside it, a dip on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators import rule_kind_shapes as shapes
from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.check import Check
from redfirst.evaluators.conditions import Look, parse_condition
from redfirst.evaluators.declared_parts import required_of, when_of
from redfirst.evaluators.paths import ABSENT, look_up, parse_path, show_path
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.rule_shapes import StateCollateralShape
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.mutant import Mutant, Original
from redfirst.evaluators.sensitivity.values import breaking, placed, spelt_as
from redfirst.evaluators.shapes import RequiredShape
from redfirst.evaluators.state_diff import ANY_ONE, ANY_REST, Change, changes, parse_pattern
from redfirst.evaluators.trajectory import MISSING, StateSnapshot, ToolCall, Trajectory

_UNRELATED = "unrelated_rows"


def breaks_of_required(of: Original, check: Check, required: Sequence[RequiredShape]) -> Iterator[Mutant]:
    """The write that made a required value true is left out, with its effect; or the value is another."""
    if not of.right(check) or len(of.run.states) < 2:
        return
    for one in required:
        path = required_of(one).path
        last = of.run.states[-1].state
        wrong = breaking(required_of(one).must, look_up(last, path), _looking(last))
        if wrong is not MISSING:
            states = (*of.run.states[:-1], _with(of.run.states[-1], path, wrong))
            name = "wrong_value" if number_of(wrong) is None else "amount_over"
            yield _mutant(name, f"{show_path(path)} at the end", replace(of.run, states=states), check)
        writer = _writer(of.run, path)
        if writer is not None and look_up(of.run.states[0].state, path) is not look_up(last, path):
            yield _mutant("drop_write", describe(writer), _undone(of.run, writer), check)
            if number_of(look_up(last, path)) is not None:
                yield _mutant("duplicate_write", describe(writer), _redone(of.run, writer), check)


def breaks_of_allowed(of: Original, check: Check, patterns: Sequence[str]) -> Iterator[Mutant]:
    """A row appears that no write of the run should touch."""
    if of.right(check) and len(of.run.states) > 1 and all(_spares(pattern) for pattern in patterns):
        states = (*of.run.states[:-1], _with(of.run.states[-1], (_UNRELATED, "X-1"), {"changed": 1}))
        yield _mutant("unrelated_row", f"{_UNRELATED}.X-1", replace(of.run, states=states), check)


def breaks_of_collateral(of: Original, check: Check, shape: StateCollateralShape) -> Iterator[Mutant]:
    """The same for what the tasks of a file allow."""
    scopes = [one for one in shape.scopes if one.when is None or when_of(one.when).holds(of.run) is not False]
    if not any(one.collateral == "ignore" for one in scopes):
        patterns = [allowed.path for one in scopes for allowed in one.allowed or ()]
        yield from breaks_of_allowed(
            of, check, [*patterns, *(r.path for one in scopes for r in one.required)]
        )


def breaks_of_invariant(of: Original, check: Check, shape: shapes.InvariantShape) -> Iterator[Mutant]:
    """One state between the first and the last in which the condition does not hold."""
    if not of.right(check) or ANY_ONE in parse_pattern(shape.state) or not of.run.states:
        return
    path = tuple(parse_path(part)[0] for part in parse_pattern(shape.state))
    place = len(of.run.states) // 2
    model = of.run.states[place]
    condition = parse_condition(shape.must, parse_path)
    wrong = breaking(condition, look_up(model.state, path), _looking(model.state))
    if wrong is MISSING:
        return
    dip = replace(_with(model, path, wrong), time_ns=model.time_ns)
    states = (*of.run.states[:place], dip, *of.run.states[place:])
    yield _mutant("dip_one_step", f"{shape.state} once {wrong!r:.30}", replace(of.run, states=states), check)


def breaks_of_state(of: Original, check: Check, shape: shapes.StateDiffShape) -> Iterator[Mutant]:
    """All of these for ``state_diff``."""
    yield from breaks_of_required(of, check, shape.required)
    if shape.allowed is not None and shape.collateral == "fail":
        patterns = [*(one.path for one in shape.allowed), *(one.path for one in shape.required)]
        yield from breaks_of_allowed(of, check, patterns)


def _looking(state: Mapping[str, object]) -> Look:
    return lambda path: look_up(state, parse_path(path))


def _spares(pattern: str) -> bool:
    return parse_pattern(pattern)[0] not in (ANY_ONE, ANY_REST, _UNRELATED)


def _writer(run: Trajectory, path: Sequence[str]) -> ToolCall | None:
    """The only call between the two snapshots between which the value last changed."""
    for before, after in reversed(list(zip(run.states, run.states[1:], strict=False))):
        if look_up(before.state, path) != look_up(after.state, path):
            between = [
                call
                for call in run.tool_calls
                if before.time_ns <= call.start_ns and call.end_ns <= after.time_ns
            ]
            return between[0] if len(between) == 1 else None
    return None


def _effect(run: Trajectory, call: ToolCall) -> tuple[list[Change], int]:
    """What a call changed, and the place of the first snapshot that shows it."""
    place = next(n for n, one in enumerate(run.states) if one.time_ns >= call.end_ns)
    return list(changes(run.states[place - 1].state, run.states[place].state)), place


def _undone(run: Trajectory, call: ToolCall) -> Trajectory:
    """The run without the call and without what it changed."""
    effect, place = _effect(run, call)
    later = []
    for one in run.states[place:]:
        state = one
        for change in effect:
            state = _with(state, change.path, change.before)
        later.append(state)
    kept = [other for other in run.tool_calls if other is not call]
    return editing.with_calls(replace(run, states=(*run.states[:place], *later)), kept)


def _redone(run: Trajectory, call: ToolCall) -> Trajectory:
    """The run with the call made twice, each number that it moved being moved twice as far."""
    effect, place = _effect(run, call)
    later = []
    for one in run.states[place:]:
        state = one
        for change in effect:
            old, new, now = (
                number_of(value) for value in (change.before, change.after, look_up(one.state, change.path))
            )
            if new is not None and now is not None:
                state = _with(state, change.path, spelt_as(now + new - (old or 0), change.after))
        later.append(state)
    return editing.inserted(replace(run, states=(*run.states[:place], *later)), call, [call])


def _with(snapshot: StateSnapshot, path: Sequence[str], value: object) -> StateSnapshot:
    state = placed(snapshot.state, path, ABSENT if value is MISSING else value)
    return replace(snapshot, state=state if isinstance(state, Mapping) else {})


def _mutant(operator: str, place: str, run: Trajectory, check: Check) -> Mutant:
    return Mutant(operator=operator, place=place, run=run, killers=frozenset({check.id}))

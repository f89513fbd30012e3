"""Edits of a run. Each gives a new run and leaves everything else in it as it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators.paths import look_into_call
from redfirst.evaluators.rule_kinds.happenings import ANSWER, EVENT, HANDOFF, USER, reserved
from redfirst.evaluators.sensitivity.values import placed
from redfirst.evaluators.trajectory import MISSING, CallStatus, Message, ToolCall, Trajectory

_NEW_SPANS = 0xE000


def with_calls(run: Trajectory, calls: Iterable[ToolCall]) -> Trajectory:
    """The run with these calls, numbered in their order."""
    listed = tuple(replace(call, index=place) for place, call in enumerate(calls))
    return replace(run, tool_calls=listed, span_ids=run.span_ids | {call.span_id for call in listed})


def changed(run: Trajectory, edit: Callable[[ToolCall], ToolCall]) -> Trajectory:
    """The run with every call as the edit gives it back."""
    return with_calls(run, map(edit, run.tool_calls))


def with_call(run: Trajectory, call: ToolCall, new: ToolCall) -> Trajectory:
    """The run with one call in place of another."""
    return changed(run, lambda one: new if one is call else one)


def exchanged(run: Trajectory, one: ToolCall, other: ToolCall) -> Trajectory:
    """Two calls made each at the other's time."""
    calls = list(run.tool_calls)
    calls[one.index], calls[other.index] = _at_the_time_of(other, one), _at_the_time_of(one, other)
    return with_calls(run, calls)


def beside(run: Trajectory, call: ToolCall, others: Collection[ToolCall]) -> Trajectory:
    """The other calls made at the same time as a call, in the same model turn."""
    moved = {other.index for other in others}
    kept = [one for one in run.tool_calls if one.index not in moved]
    place = next(number for number, one in enumerate(kept) if one is call)
    return with_calls(run, [*kept[:place], *(_at_the_time_of(one, call) for one in others), *kept[place:]])


def given(call: ToolCall, keys: Sequence[str], value: object) -> ToolCall:
    """The call with another value at a place of its arguments; ``ABSENT`` takes out what stands there."""
    arguments = placed(call.arguments or {}, keys, value)
    return replace(call, arguments=arguments) if isinstance(arguments, Mapping) else call


def with_value(call: ToolCall, parts: Sequence[str], new: Callable[[object], object]) -> ToolCall:
    """The call with another value at a path of its arguments or of its answer, as ``call_path`` gives it."""
    root, *rest = parts
    if root == "args":
        return given(call, rest, new(look_into_call(call, parts)))
    if call.result is MISSING:
        return call
    return replace(call, result=placed(call.result, rest, new(look_into_call(call, parts))))


def failing(call: ToolCall) -> ToolCall:
    """The call answered with an error."""
    return replace(call, status=CallStatus.TOOL_ERROR, result=MISSING, error="it failed")


def inserted(run: Trajectory, after: ToolCall | None, more: Sequence[ToolCall]) -> Trajectory:
    """Calls made one after the other behind a call and those of its turn, each in a turn of its own; at the
    beginning without one.

    What comes later keeps its time and is asked for so many turns later.
    """
    turn = -1 if after is None else after.turn
    beside_it = [one for one in run.tool_calls if one is after or (turn is not None and one.turn == turn)]
    place = max((one.index for one in beside_it), default=-1)
    time_ns = max((one.end_ns for one in beside_it), default=run.start_ns)
    new = [
        replace(
            call,
            start_ns=time_ns,
            end_ns=time_ns,
            turn=None if turn is None else turn + 1 + number,
            span_id=f"{_NEW_SPANS + number:016x}",
            call_id=None,
        )
        for number, call in enumerate(more)
    ]

    def later(one: ToolCall) -> ToolCall:
        moves = turn is not None and one.turn is not None and one.turn > turn
        return replace(one, turn=one.turn + len(new)) if moves and one.turn is not None else one

    models = tuple(
        replace(one, index=one.index + len(new)) if turn is not None and one.index > turn else one
        for one in run.model_calls
    )
    kept = list(map(later, run.tool_calls))
    return with_calls(replace(run, model_calls=models), [*kept[: place + 1], *new, *kept[place + 1 :]])


def without(run: Trajectory, names: Collection[str]) -> Trajectory:
    """The run in which no call of these names was made, now or in the earlier conversation, and no such event
    or handoff was reported."""
    history = None if run.history is None else tuple(_forgotten(run.history, names))
    return with_calls(
        replace(
            run,
            history=history,
            events=tuple(event for event in run.events if f"{EVENT}{event.name}" not in names),
            handoffs=() if HANDOFF in names else run.handoffs,
        ),
        [call for call in run.tool_calls if call.name not in names],
    )


def retold(run: Trajectory, told: Callable[[str], str]) -> Trajectory:
    """The run in which the user said something else, wherever that stands."""

    def heard(messages: tuple[Message, ...] | None) -> tuple[Message, ...] | None:
        if messages is None:
            return None
        return tuple(
            replace(one, content=told(one.content)) if one.role == "user" and one.content else one
            for one in messages
        )

    return replace(
        run,
        request=None if run.request is None else told(run.request),
        history=heard(run.history),
        model_calls=tuple(replace(one, input_messages=heard(one.input_messages)) for one in run.model_calls),
    )


def tools_among(names: Iterable[str]) -> list[str]:
    """Those of the names that are tools."""
    return [name for name in names if not reserved(name)]


def is_removable(name: str) -> bool:
    """Whether a run is still one without what has this name: not without its user and its answer."""
    return name not in (USER, ANSWER)


def _at_the_time_of(call: ToolCall, other: ToolCall) -> ToolCall:
    return replace(call, start_ns=other.start_ns, end_ns=other.end_ns, turn=other.turn)


def _forgotten(messages: Sequence[Message], names: Collection[str]) -> Iterable[Message]:
    gone = {asked.call_id for message in messages for asked in message.tool_calls if asked.name in names} - {
        None
    }
    for message in messages:
        if message.role == "tool" and message.tool_call_id in gone:
            continue
        yield replace(
            message, tool_calls=tuple(asked for asked in message.tool_calls if asked.name not in names)
        )

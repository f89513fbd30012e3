"""A run so far as rules see it. Imported when a guard is asked, because it costs the evaluators."""

from __future__ import annotations

import json
from collections.abc import Mapping

from redfirst.evaluators.dialects.values import error_in_result
from redfirst.evaluators.ending import is_infrastructure
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Completeness,
    Effect,
    Message,
    ModelCall,
    RequestedCall,
    RunEvent,
    StateSnapshot,
    ToolCall,
    Trajectory,
)
from redfirst.instrumentation.capture import shown
from redfirst.instrumentation.conversation import Turn
from redfirst.instrumentation.memory import NOTHING, CallSoFar, Frame, Memory


def trajectory_of(pending: CallSoFar, frame: Frame | None) -> tuple[Trajectory, ToolCall]:
    """The run so far with the pending call in it, and that call.

    Outside of an agent nothing is known of what came before, so the run is incomplete: then only what the
    call itself shows is a violation.
    """
    memory = Memory(calls=[pending]) if frame is None else frame.memory
    with memory.lock:
        calls, turns = list(memory.calls), list(memory.turns)
        states, events = list(memory.states), list(memory.events)
    read = tuple(_call(one, index, pending=one is pending) for index, one in enumerate(calls))
    first = turns[0].messages if turns else None
    run = Trajectory(
        run_id="run so far",
        trace_ids=(),
        root_span_id="root",
        completeness=Completeness.INCOMPLETE if frame is None else Completeness.COMPLETE,
        request=memory.request,
        history=None if first is None else tuple(map(_message, first)),
        tool_calls=read,
        model_calls=tuple(
            ModelCall(
                index=index,
                span_id=f"turn {index}",
                start_ns=turn.start_ns,
                agent=turn.agent,
                input_messages=None if turn.messages is None else tuple(map(_message, turn.messages)),
            )
            for index, turn in enumerate(turns)
        ),
        states=tuple(StateSnapshot(time_ns=at, state=state, span_id="root") for at, state in states),
        events=tuple(
            RunEvent(name=name, time_ns=at, attributes=given, span_id="root") for at, name, given in events
        ),
    )
    return run, next(call for call, one in zip(read, calls, strict=True) if one is pending)


def _call(one: CallSoFar, index: int, *, pending: bool) -> ToolCall:
    status, error = (CallStatus.UNKNOWN, None) if pending else _ended(one)
    return ToolCall(
        index=index,
        name=one.name,
        arguments=one.arguments,
        result=MISSING if one.result is NOTHING else one.result,
        error=error,
        status=status,
        start_ns=one.start_ns,
        end_ns=one.end_ns,
        agent=one.agent,
        agent_spans=one.agents,
        turn=one.turn,
        span_id=f"call {index}",
        effect=None if one.effect is None else Effect(one.effect),
        idempotent=one.idempotent,
        poll=one.poll,
    )


def _ended(one: CallSoFar) -> tuple[CallStatus, str | None]:
    if one.refused is not None:
        return CallStatus.DENIED, one.refused
    if one.error is not None:
        text = shown(one.error, str)
        infra = is_infrastructure(type(one.error).__qualname__, text)
        return (CallStatus.INFRA_ERROR if infra else CallStatus.TOOL_ERROR), text
    if not one.end_ns:
        return CallStatus.UNKNOWN, None
    wrong = error_in_result(one.result)
    return (CallStatus.OK, None) if wrong is None else (CallStatus.TOOL_ERROR, wrong)


def _message(turn: Turn) -> Message:
    return Message(
        role=turn.role,
        content=turn.text,
        tool_calls=tuple(
            RequestedCall(name=call.name, arguments=_arguments(call.arguments), call_id=call.call_id)
            for call in turn.calls
        ),
        tool_call_id=turn.answers,
    )


def _arguments(text: str) -> Mapping[str, object] | None:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None

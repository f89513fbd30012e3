"""Runs in one line, for tests of rules: ``a_run(call("approve", order=7), call("refund", order=7))``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Completeness,
    Coverage,
    Effect,
    Gap,
    StateSnapshot,
    Stop,
    Termination,
    ToolCall,
    Trajectory,
)

ROOT = "00000000000000ff"
"""Span id of the root of every built run."""

_TURN_NS = 1_000
_CALL_NS = 10
_NO_TIME = (-1, -1)
_OWN_TURN = -1
_DEFAULT = object()
_WITH_ERROR = (CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR, CallStatus.DENIED)


def call(
    tool: str,
    /,
    *,
    args: object = _DEFAULT,
    result: object = _DEFAULT,
    status: CallStatus | str = CallStatus.OK,
    error: str | None = None,
    turn: int | None = _OWN_TURN,
    at: tuple[int, int] = _NO_TIME,
    agent: str | None = None,
    agent_spans: tuple[str, ...] = (),
    effect: Effect | str | None = None,
    idempotent: bool | None = None,
    poll: bool = False,
    **arguments: object,
) -> ToolCall:
    """One attempt of a tool call.

    Arguments of the tool are given by keyword, or all together as ``args`` where their names clash with
    the parameters here (``args=None``: they were not recorded). A call that is ``ok`` answers ``{}``
    unless ``result`` says otherwise; any other status has no result. Each call gets a model turn of its
    own; give several the same ``turn`` to make them parallel, ``turn=None`` for one that no turn is
    known of. ``at`` gives start and end; without it calls run one after the other.
    """
    given = arguments if args is _DEFAULT else args
    answered = CallStatus(status) is CallStatus.OK
    return ToolCall(
        index=0,
        name=tool,
        arguments=given if given is None or isinstance(given, Mapping) else None,
        result=({} if answered else MISSING) if result is _DEFAULT else result,
        error=str(status) if error is None and CallStatus(status) in _WITH_ERROR else error,
        status=CallStatus(status),
        start_ns=at[0],
        end_ns=at[1],
        turn=turn,
        agent=agent,
        agent_spans=agent_spans,
        effect=None if effect is None else Effect(effect),
        idempotent=idempotent,
        poll=poll,
    )


def a_run(
    *calls: ToolCall,
    request: str | None = "please",
    answer: str | None = "done",
    states: Sequence[Mapping[str, object]] = (),
    stop: Stop | str = Stop.COMPLETED,
    cap: int | None = None,
    complete: bool = True,
    missing: Sequence[str] = (),
) -> Trajectory:
    """A run of these calls in this order; ``states`` are its snapshots of the world, first to last.

    ``missing`` names facts that were not recorded, as ``coverage`` does: ``tool_calls``, ``tool_calls[0].name``.
    """
    placed = tuple(_placed(one, index) for index, one in enumerate(calls))
    end = _TURN_NS * (len(calls) + 2)
    return Trajectory(
        run_id="run",
        trace_ids=("0" * 31 + "1",),
        root_span_id=ROOT,
        completeness=Completeness.COMPLETE if complete else Completeness.INCOMPLETE,
        request=request,
        answer=answer,
        termination=Termination(reason=Stop(stop), cap=cap, span_id=ROOT),
        tool_calls=placed,
        states=tuple(
            StateSnapshot(time_ns=index * end, state=state, span_id=f"{0xA0 + index:016x}")
            for index, state in enumerate(states)
        ),
        coverage=Coverage(missing=tuple(Gap(fact=fact, because="not recorded") for fact in missing)),
        start_ns=0,
        end_ns=end,
        span_ids=frozenset({ROOT, *(one.span_id for one in placed)}),
    )


def _placed(one: ToolCall, index: int) -> ToolCall:
    turn = index if one.turn == _OWN_TURN else one.turn
    start = _TURN_NS * (1 + (index if turn is None else turn)) + _CALL_NS * index
    timed = (
        (one.start_ns, one.end_ns) if (one.start_ns, one.end_ns) != _NO_TIME else (start, start + _CALL_NS)
    )
    return replace(
        one, index=index, turn=turn, start_ns=timed[0], end_ns=timed[1], span_id=f"{index + 1:016x}"
    )

"""The tests of a rules file: small runs written down in YAML, and the outcome that each rule has on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

from redfirst.evaluators.canonical import canonical_text
from redfirst.evaluators.rule_test_shapes import RuleTestShape, StepShape
from redfirst.evaluators.strict_yaml import Document
from redfirst.evaluators.testing import ROOT, a_run, call
from redfirst.evaluators.trajectory import (
    MISSING,
    Handoff,
    Message,
    ModelCall,
    RequestedCall,
    RunEvent,
    StateSnapshot,
    Tokens,
    ToolCall,
    Trajectory,
)
from redfirst.evaluators.verdict import Outcome

_SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTest:
    """One test: a run that is written down, or a file of recorded ones, and what is expected of it."""

    name: str
    line: int
    expect: Mapping[str, Outcome]
    """Outcomes by the id of the check."""
    run: Trajectory | None = None
    trace: str | None = None
    """The path of an OTLP file, as it stands in the rules file."""


def tests_of(
    document: Document, shapes: Sequence[RuleTestShape], known: Sequence[str]
) -> tuple[RuleTest, ...]:
    """The tests of a document.

    Raises:
        ConfigurationError: an expectation is of a check that the file does not declare.
    """
    found = []
    for place, shape in enumerate(shapes):
        for name in shape.expect:
            if name not in known:
                where = ("tests", place, "expect", name)
                raise document.fault(where, f"there is no check {name} here; known: {', '.join(known)}")
        line = document.line_of(("tests", place))
        found.append(
            RuleTest(
                name=shape.name or f"line {line}",
                line=line,
                expect={name: Outcome(word) for name, word in shape.expect.items()},
                run=None if shape.trace is not None else built_run(shape),
                trace=shape.trace,
            )
        )
    return tuple(found)


def built_run(shape: RuleTestShape) -> Trajectory:
    """The run that a test writes down: its steps one after the other, a second apart unless they say when."""
    history = tuple(_history(shape.before, shape.request))
    times = list(_times(shape.steps))
    calls = [
        _call(step, place, times[place]) for place, step in enumerate(shape.steps) if step.tool is not None
    ]
    run = a_run(
        *calls,
        request=shape.request,
        answer=shape.answer,
        stop=shape.stop,
        cap=shape.cap,
        complete=shape.complete,
        missing=shape.missing,
    )
    begin = min(times, default=_SECOND) - _SECOND // 2
    last = max([*times, begin], default=begin) + _SECOND // 2
    end = last if shape.seconds is None else begin + int(shape.seconds * _SECOND)
    return replace(
        run,
        history=history if shape.before or shape.request is not None else None,
        states=tuple(_states(shape.steps, times)),
        events=tuple(_events(shape.steps, times)),
        handoffs=tuple(_handoffs(shape.steps, times)),
        model_calls=tuple(_turns(shape, times, history)),
        tokens=Tokens() if shape.tokens is None else Tokens(**shape.tokens),
        cost_usd=shape.usd,
        start_ns=begin,
        end_ns=end,
    )


def _times(steps: Sequence[StepShape]) -> Iterator[int]:
    now = 0
    for step in steps:
        now = now + _SECOND if step.at is None else _moment(step.at)
        yield now


def _moment(text: str) -> int:
    found = datetime.fromisoformat(text)
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(aware.timestamp()) * _SECOND


def _call(step: StepShape, place: int, time_ns: int) -> ToolCall:
    more: dict[str, Any] = {"result": step.result} if "result" in step.model_fields_set else {}
    if "result" in step.unrecorded:
        more["result"] = MISSING
    return call(
        cast("str", step.tool),
        args=None if "args" in step.unrecorded else step.args,
        status=step.status,
        error=step.error,
        turn=place if step.turn is None else step.turn,
        at=(time_ns, time_ns + _SECOND // 10),
        agent=step.agent,
        effect=step.effect,
        idempotent=step.idempotent,
        poll=step.poll,
        **more,
    )


def _history(before: Sequence[StepShape], request: str | None) -> Iterator[Message]:
    """The messages the run began with."""
    for place, step in enumerate(before):
        if step.tool is not None:
            asked = RequestedCall(name=step.tool, arguments=step.args, call_id=f"before-{place}")
            yield Message(role="assistant", tool_calls=(asked,))
            if "result" not in step.unrecorded:
                yield Message(
                    role="tool", tool_call_id=f"before-{place}", content=canonical_text(step.result)
                )
        elif step.system is not None:
            yield Message(role="system", content=step.system)
        else:
            yield Message(role="user", content=step.user)
    if request is not None:
        yield Message(role="user", content=request)


def _turns(shape: RuleTestShape, times: Sequence[int], history: tuple[Message, ...]) -> Iterator[ModelCall]:
    """A model call before each turn, given what the user had said by then, and one for the answer."""
    heard, begun = history, -1
    for place, step in enumerate(shape.steps):
        if step.user is not None:
            heard = (*heard, Message(role="user", content=step.user))
        turn = place if step.turn is None else step.turn
        if (step.tool is None and step.user is None) or turn == begun:
            continue
        begun = turn
        yield ModelCall(
            index=turn,
            span_id=f"{0xB000 + place:016x}",
            start_ns=times[place],
            input_messages=heard,
        )
    if shape.answer is not None:
        yield ModelCall(
            index=len(shape.steps), span_id=f"{0xB000 + len(shape.steps):016x}", input_messages=heard
        )


def _states(steps: Sequence[StepShape], times: Sequence[int]) -> Iterator[StateSnapshot]:
    for place, (step, time_ns) in enumerate(zip(steps, times, strict=True)):
        if step.state is not None:
            yield StateSnapshot(time_ns=time_ns, state=step.state, span_id=f"{0xA000 + place:016x}")


def _events(steps: Sequence[StepShape], times: Sequence[int]) -> Iterator[RunEvent]:
    for step, time_ns in zip(steps, times, strict=True):
        if step.event is not None:
            yield RunEvent(name=step.event, time_ns=time_ns, attributes=step.args, span_id=ROOT)


def _handoffs(steps: Sequence[StepShape], times: Sequence[int]) -> Iterator[Handoff]:
    for step, time_ns in zip(steps, times, strict=True):
        if step.handoff is not None:
            yield Handoff(source=step.agent, target=step.handoff, span_id=ROOT, start_ns=time_ns)

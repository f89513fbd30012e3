"""What a rule can speak of: the calls of a run, and what was said and reported in it, as calls to reserved names.

``$user`` (``args.text``) is a message of the user, ``$answer`` (``args.text``) the final answer, ``$handoff``
(``args.from``, ``args.to``) a change of agents, ``$event.NAME`` (its attributes under ``args``) a fact that the
agent reported about its run. Messages of earlier turns, and the calls answered in them, came before
everything in the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from redfirst.evaluators.dialects.values import error_in_result, outcome_of
from redfirst.evaluators.rule_kinds.lacking import incomplete, lacks_such_calls, missing_fact
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Message,
    ModelCall,
    RequestedCall,
    Stop,
    ToolCall,
    Trajectory,
)

USER = "$user"
ANSWER = "$answer"
HANDOFF = "$handoff"
EVENT = "$event."


class Place(IntEnum):
    """Where something stands relative to the calls of a run."""

    EARLIER = -1
    """In the conversation that led to the run."""
    INSIDE = 0
    AFTER = 1
    """The answer, which nothing follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening(ToolCall):
    """Something that is no call of the run, in the shape of one."""

    pointer: str
    place: Place = Place.INSIDE


def place_of(call: ToolCall) -> Place:
    """Where it stands; calls of the run stand inside."""
    return call.place if isinstance(call, Happening) else Place.INSIDE


def reserved(name: str) -> bool:
    """Whether the name is one of something that is no tool."""
    return name in (USER, ANSWER, HANDOFF) or (name.startswith(EVENT) and name != EVENT)


def among(names: Sequence[str], run: Trajectory, *, earlier: bool = False) -> list[ToolCall]:
    """The calls and happenings of these names; with ``earlier``, also calls of the earlier conversation."""
    found: list[ToolCall] = [call for call in run.tool_calls if call.name in names]
    if earlier:
        found = [*(call for call in _earlier_calls(run) if call.name in names), *found]
    if USER in names:
        found = [*_said(run), *found]
    if any(name.startswith(EVENT) for name in names):
        found += [event for event in _events(run) if event.name in names]
    if HANDOFF in names:
        found += _handoffs(run)
    if ANSWER in names:
        found += _answer(run)
    return found


def lack_of(names: Iterable[str], statuses: frozenset[CallStatus], run: Trajectory) -> str | None:
    """Why something of these names may be missing from the run."""
    wanted = set(names)
    if any(not reserved(name) for name in wanted) and (why := lacks_such_calls(run, statuses)):
        return why
    if USER in wanted and run.history is None and run.request is None:
        return "what the user said was not recorded"
    if any(name.startswith(EVENT) for name in wanted) and (why := missing_fact(run, "events")):
        return why
    return incomplete(run)


def _earlier_calls(run: Trajectory) -> Iterator[Happening]:
    """The calls in the messages that the run began with, each with its answer."""
    history = run.history or ()
    own = {call.call_id for call in run.tool_calls if call.call_id is not None}
    answers: dict[str, Message] = {}
    for message in history:
        if message.role == "tool" and message.tool_call_id is not None:
            answers.setdefault(message.tool_call_id, message)
    for place, message in enumerate(history):
        for asked in message.tool_calls:
            if asked.call_id is None or asked.call_id not in own:
                yield _earlier_call(asked, answers.get(asked.call_id or ""), place, len(history), run)


def _earlier_call(
    asked: RequestedCall, answer: Message | None, place: int, messages: int, run: Trajectory
) -> Happening:
    result = MISSING if answer is None else outcome_of(answer.content).result
    wrong = None if result is MISSING else error_in_result(result)
    unknown = CallStatus.UNKNOWN if result is MISSING else CallStatus.OK
    return Happening(
        index=place - messages,
        name=asked.name,
        arguments=asked.arguments,
        result=result,
        error=wrong,
        status=CallStatus.TOOL_ERROR if wrong is not None else unknown,
        start_ns=place + 1,
        end_ns=place + 1,
        span_id=run.root_span_id,
        pointer=f"/history/{place}",
        place=Place.EARLIER,
    )


def _said(run: Trajectory) -> Iterator[Happening]:
    """The user's messages: those the run began with, then those that later turns were given beside them."""
    history = run.history
    if history is None:
        if run.request is not None:
            yield _message(run.request, -1, "/request", run)
        return
    for place, message in enumerate(history):
        if message.role == "user":
            yield _message(message.content, place - len(history), f"/history/{place}", run)
    heard = sum(message.role == "user" for message in history)
    for turn in _outer_turns(run)[1:]:
        messages = turn.input_messages or ()
        texts = [m.content for m in messages if m.role == "user"]
        known = heard if _carries_on(messages, history) else 0
        for text in texts[known:]:
            yield Happening(
                index=len(run.tool_calls),
                name=USER,
                arguments=None if text is None else {"text": text},
                status=CallStatus.OK,
                start_ns=turn.start_ns,
                end_ns=turn.start_ns,
                span_id=turn.span_id,
                pointer=f"/model_calls/{turn.index}",
            )
        heard = max(heard, heard - known + len(texts))


def _carries_on(messages: Sequence[Message], history: Sequence[Message]) -> bool:
    """Whether a later turn was given the conversation so far: what the model said in it, or all that the run
    began with. Otherwise it was given what is new alone, as where the interface keeps the conversation."""
    return any(message.role == "assistant" for message in messages) or (
        tuple(messages[: len(history)]) == tuple(history)
    )


def _outer_turns(run: Trajectory) -> list[ModelCall]:
    """The turns of the agent that the user speaks to: an inner agent's user is another agent."""
    return [turn for turn in run.model_calls if turn.agent == run.model_calls[0].agent]


def _message(text: str | None, index: int, pointer: str, run: Trajectory) -> Happening:
    return Happening(
        index=index,
        name=USER,
        arguments=None if text is None else {"text": text},
        status=CallStatus.OK,
        start_ns=1,
        end_ns=1,
        span_id=run.root_span_id,
        pointer=pointer,
        place=Place.EARLIER,
    )


def _events(run: Trajectory) -> Iterator[Happening]:
    for place, event in enumerate(run.events):
        yield _point(
            f"{EVENT}{event.name}", event.attributes, event.time_ns, event.span_id, f"/events/{place}", run
        )


def _handoffs(run: Trajectory) -> Iterator[Happening]:
    for place, one in enumerate(run.handoffs):
        given = {key: value for key, value in (("from", one.source), ("to", one.target)) if value is not None}
        yield _point(HANDOFF, given, one.start_ns, one.span_id, f"/handoffs/{place}", run)


def _point(
    name: str, given: Mapping[str, object], time_ns: int, span_id: str, pointer: str, run: Trajectory
) -> Happening:
    return Happening(
        index=len(run.tool_calls),
        name=name,
        arguments=given,
        status=CallStatus.OK,
        start_ns=time_ns,
        end_ns=time_ns,
        span_id=span_id,
        pointer=pointer,
    )


def _answer(run: Trajectory) -> Iterator[Happening]:
    """The answer, also one whose text was not recorded; a run that ended otherwise has none."""
    if run.answer is None and run.termination.reason is not Stop.COMPLETED:
        return
    yield Happening(
        index=len(run.tool_calls),
        name=ANSWER,
        arguments=None if run.answer is None else {"text": run.answer},
        status=CallStatus.OK,
        start_ns=run.end_ns,
        end_ns=run.end_ns,
        span_id=run.root_span_id,
        pointer="/answer",
        place=Place.AFTER,
    )

"""The tool calls of a run: executed, recovered from messages, or only asked for."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from redfirst.evaluators.canonical import same
from redfirst.evaluators.dialects.facts import Kind
from redfirst.evaluators.dialects.values import error_in_result, outcome_of
from redfirst.evaluators.ending import is_infrastructure
from redfirst.evaluators.handoffs import agent_name, agent_spans
from redfirst.evaluators.joining import Asked, Joined
from redfirst.evaluators.structure import Node, Tree
from redfirst.evaluators.trajectory import (
    MISSING,
    CallStatus,
    Gap,
    Message,
    ModelCall,
    Source,
    ToolCall,
)

_NOT_JSON = "the arguments are not a JSON object"
_DENIED = re.compile(
    r"Tool execution for \S+ was manually rejected by user"  # the OpenAI Agents SDK, on the call's span
    r"|^(Tool execution was not approved\."  # and to the model
    r"|The tool call was denied\."  # pydantic-ai
    r"|User rejected the tool call for `[^`]*` with id \S+)$"  # LangChain's human in the loop
)
"""How frameworks say that a person did not approve of a call: it never ran, and is no error of a tool."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls in display order, and what had to be inferred about them."""

    calls: tuple[ToolCall, ...]
    reconstructed: tuple[Gap, ...]
    missing: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A call before it has its place, with what is to be said about how it was read."""

    place: tuple[int, int, int, str]
    call: partial[ToolCall]
    inferred: str = ""


class Answers:
    """What each requested call was answered with, by the messages that later turns were given."""

    def __init__(self, models: Sequence[ModelCall]) -> None:
        self._models = models
        self._by_turn: dict[int, Mapping[str, Message]] = {}

    def of(self, turn: int, call_id: str | None) -> Message | None:
        """The answer to a call of that turn: the last with its id in the first later input that has one,
        since some servers number the calls of every turn anew."""
        if call_id is None:
            return None
        later = map(self._given, range(turn + 1, len(self._models)))
        return next((found[call_id] for found in later if call_id in found), None)

    def _given(self, turn: int) -> Mapping[str, Message]:
        """The answers among the messages that this turn was given."""
        if turn not in self._by_turn:
            told = self._models[turn].input_messages or ()
            self._by_turn[turn] = {m.tool_call_id: m for m in told if m.role == "tool" and m.tool_call_id}
        return self._by_turn[turn]


def calls_of(
    tree: Tree, joined: Joined, models: Sequence[ModelCall], *, recorded: bool, whole: bool
) -> Calls:
    """All tool calls. ``recorded`` says that the output of every model call is known, ``whole`` that no span of the
    run is missing: only then does the lack of a span say that a requested call did not run."""
    answers = Answers(models)
    joined = _approved(joined)
    drafts = [_executed(tree, item, node, answers) for item, node in joined.pairs]
    drafts += [_unasked(tree, node, models, by_code=recorded) for node in joined.unasked]
    writes = bool(joined.pairs or joined.unasked)
    drafts += [_unanswered(tree, item, answers, writes=writes, whole=whole) for item in joined.unanswered]
    drafts.sort(key=lambda draft: draft.place)
    calls = tuple(draft.call(index=index) for index, draft in enumerate(drafts))
    reconstructed = [
        Gap(
            fact=f"tool_calls[{index}].{draft.inferred.partition(': ')[0]}",
            because=draft.inferred.partition(": ")[2],
            span_id=calls[index].span_id,
        )
        for index, draft in enumerate(drafts)
        if draft.inferred
    ]
    nameless = _nameless(joined)
    unnamed = [
        Gap(
            fact=f"tool_calls[{call.index}].name",
            because="not recorded; the span's name stands in",
            span_id=call.span_id,
        )
        for call in calls
        if call.source is Source.SPAN and call.span_id in nameless
    ]
    return Calls(calls, tuple(reconstructed), (*unnamed, *_missing(calls)))


def _approved(joined: Joined) -> Joined:
    """A call that waited for a person's approval is one call: its first span says nothing, the one after tells how it
    ended, and nobody asked for that one again."""
    unasked = list(joined.unasked)
    pairs: list[tuple[Asked, Node]] = []
    for asked, node in joined.pairs:
        later = next((one for one in unasked if _goes_on(node, one)), None)
        if later is not None:
            unasked.remove(later)
        pairs.append((asked, later or node))
    # where a clock stands still the request may have found the second of the two
    unasked = [one for one in unasked if not any(_goes_on(one, node) for _, node in pairs)]
    return Joined(pairs=tuple(pairs), unanswered=joined.unanswered, unasked=tuple(unasked))


def _goes_on(node: Node, later: Node) -> bool:
    mine, theirs = node.facts, later.facts
    silent = mine.result is MISSING and not mine.failed and mine.refused is None
    return (
        silent
        and (theirs.result is not MISSING or theirs.failed)
        and later.span.start_ns >= node.span.end_ns > 0
        and mine.name == theirs.name
        and mine.arguments is not None
        and same(mine.arguments, theirs.arguments)
    )


def _nameless(joined: Joined) -> frozenset[str]:
    return frozenset(node.span.span_id for node in joined.unasked if not node.facts.name)


def _missing(calls: Sequence[ToolCall]) -> list[Gap]:
    gaps: list[Gap] = []
    for call in calls:
        at = f"tool_calls[{call.index}]"
        if call.arguments is None and call.status is not CallStatus.NOT_EXECUTED:
            gaps.append(
                Gap(fact=f"{at}.arguments", because="not recorded as a JSON object", span_id=call.span_id)
            )
        if call.result is MISSING and call.status in (CallStatus.OK, CallStatus.UNKNOWN):
            gaps.append(Gap(fact=f"{at}.result", because="not recorded", span_id=call.span_id))
        if call.status is CallStatus.UNKNOWN:
            gaps.append(Gap(fact=f"{at}.status", because="nothing says whether it ran", span_id=call.span_id))
    return gaps


def _executed(tree: Tree, item: Asked, node: Node, answers: Answers) -> _Draft:
    asked, facts = item.call, node.facts
    inferred = ""
    arguments = facts.arguments
    if arguments is None and asked.arguments is not None:
        arguments, inferred = asked.arguments, "arguments: taken from the model's request"
    status, error, result, how = _ended(node, lambda: answers.of(item.turn, asked.call_id))
    if asked.arguments is None and asked.raw_arguments and facts.failed and facts.arguments is None:
        status, how = CallStatus.NOT_EXECUTED, ""
        error = error or _NOT_JSON
    return _Draft(
        (item.turn, item.order, node.span.start_ns, node.span.span_id),
        _call(tree, node, name=facts.name or asked.name, arguments=arguments, result=result, error=error, status=status,
              turn=item.turn, call_id=asked.call_id or facts.call_id, by_code=False),
        how or inferred,
    )  # fmt: skip


def _unasked(tree: Tree, node: Node, models: Sequence[ModelCall], *, by_code: bool) -> _Draft:
    before = bisect_right(models, node.span.start_ns, key=lambda model: model.start_ns) - 1
    status, error, result, how = _ended(node)
    place = (before, 2**31, node.span.start_ns, node.span.span_id)
    return _Draft(
        place,
        _call(tree, node, name=node.facts.name or node.span.name, arguments=node.facts.arguments, result=result,
              error=error, status=status, turn=None, call_id=node.facts.call_id, by_code=by_code),
        how,
    )  # fmt: skip


def _call(
    tree: Tree,
    node: Node,
    *,
    name: str,
    arguments: Mapping[str, object] | None,
    result: object,
    error: str | None,
    status: CallStatus,
    turn: int | None,
    call_id: str | None,
    by_code: bool,
) -> partial[ToolCall]:
    """The call but for its place."""
    return partial(
        ToolCall,
        name=name,
        arguments=arguments,
        result=result,
        error=error,
        status=status,
        start_ns=node.span.start_ns,
        end_ns=node.span.end_ns,
        agent=agent_name(tree, node),
        agent_spans=agent_spans(tree, node),
        turn=turn,
        span_id=node.span.span_id,
        source=Source.SPAN,
        call_id=call_id,
        effect=node.facts.effect,
        idempotent=node.facts.idempotent,
        poll=node.facts.poll,
        by_code=by_code,
        schema=node.facts.schema,
    )


def _ended(
    node: Node, shown: Callable[[], Message | None] = lambda: None
) -> tuple[CallStatus, str | None, object, str]:
    """Status, error and result of an execution, and what of it was inferred. ``shown`` gives the
    answer that the model was shown, where a later turn shows it."""
    facts = node.facts
    if facts.interrupted:
        return CallStatus.NOT_EXECUTED, None, MISSING, ""
    if facts.refused is not None:
        return CallStatus.DENIED, facts.refused, MISSING, ""
    if facts.failed and facts.error is not None and _DENIED.search(facts.error):
        return CallStatus.DENIED, facts.error, MISSING, ""
    if facts.failed:
        infra = is_infrastructure(facts.error_type, facts.error)
        return CallStatus.INFRA_ERROR if infra else CallStatus.TOOL_ERROR, facts.error, facts.result, ""
    if not node.span.end_ns:
        return CallStatus.UNKNOWN, None, facts.result, ""
    result, how, answer = facts.result, "", None
    if result is MISSING and (answer := shown()) is not None:
        if answer.content is not None and _DENIED.search(answer.content):
            return (
                CallStatus.DENIED,
                answer.content,
                MISSING,
                "status: inferred from the answer the model was shown",
            )
        result = outcome_of(answer.content).result
        how = "" if result is MISSING else "result: taken from the answer the model was shown"
    wrong = _wrong(result, answer)
    if wrong is not None:
        return CallStatus.TOOL_ERROR, wrong, result, "status: inferred from the text of the result"
    return CallStatus.OK, None, result, how


def _unanswered(tree: Tree, item: Asked, answers: Answers, *, writes: bool, whole: bool) -> _Draft:
    """A request that no span executed: answered in a later message, or never run, or unknown."""
    asked = item.call
    answer = answers.of(item.turn, asked.call_id)
    content = answer.content if answer is not None else None
    said = outcome_of(content).result
    wrong = _wrong(said, answer)
    status, error, how = CallStatus.UNKNOWN, None, ""
    result: object = MISSING
    writes = writes or _framework(tree, item.model)
    if asked.arguments is None and asked.raw_arguments:
        status, error = CallStatus.NOT_EXECUTED, content or _NOT_JSON
    elif content is not None and _DENIED.search(content):
        status, error, how = CallStatus.DENIED, content, "status: inferred from the answer in a later message"
    elif said is not MISSING and not (wrong is not None and writes):
        status, error, result = (CallStatus.OK if wrong is None else CallStatus.TOOL_ERROR), wrong, said
        how = "status: inferred from the answer in a later message"
    elif answer is None and whole and writes:
        status = CallStatus.NOT_EXECUTED
    elif wrong is not None:
        status, error = CallStatus.NOT_EXECUTED, wrong
    call = partial(
        ToolCall,
        name=asked.name,
        arguments=asked.arguments,
        result=result,
        error=error,
        status=status,
        agent=agent_name(tree, item.model),
        agent_spans=agent_spans(tree, item.model),
        turn=item.turn,
        span_id=item.model.span.span_id,
        source=Source.MESSAGE,
        call_id=asked.call_id,
    )
    return _Draft((item.turn, item.order, item.model.span.end_ns, item.model.span.span_id), call, how)


def _wrong(result: object, answer: Message | None) -> str | None:
    """The error that a result tells, or that the answer the model was shown says it is."""
    if result is MISSING:
        return None
    said = error_in_result(result)
    return str(result) if said is None and answer is not None and answer.failed else said


def _framework(tree: Tree, model: Node) -> bool:
    """Whether whoever wrote the model's span also writes agents, and so would have written a tool's."""
    agent = tree.nearest(model, Kind.AGENT)
    return agent is not None and agent.span.scope == model.span.scope

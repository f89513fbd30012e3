"""Whether the ids that a model gave to tools had been told to it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redfirst.evaluators.canonical import VOLATILE_KEYS
from redfirst.evaluators.claims import whole_id
from redfirst.evaluators.known import stands_in, text_of
from redfirst.evaluators.rule_kinds.conclude import and_untold
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, without_absence
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.tool_schemas import Schemas
from redfirst.evaluators.trajectory import MISSING, Message, ToolCall, Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 2


@dataclass(frozen=True, slots=True)
class _Given:
    """An id, the call it was given to and where in its arguments it stands."""

    call: ToolCall
    path: str
    id: str
    text: str


def ungrounded_argument(run: Trajectory) -> Verdict:
    """Ids in arguments that had a source before the call ÷ ids in arguments.

    An id is an argument that is one whole, letters and digits mixed or seven digits and more. A source is what
    the user or the system said, an earlier result, or the definition of a tool. What an agent's own code passed is
    not judged, nor are keys that are made up by design (``request_id``, ``idempotency_key``…).
    """
    return without_absence(_seen(run), lacks_calls(run))


def _seen(run: Trajectory) -> Verdict:
    if not run.tool_calls:
        return not_applicable("no tool was called")
    given = [one for call in run.tool_calls if not call.by_code for one in _ids(call)]
    schemas = Schemas(run)
    unread = sum(call.arguments is None and not schemas.asked(call).unparsed for call in run.tool_calls)
    if not given:
        if unread:
            return inconclusive(f"the arguments of {unread} call(s) were not recorded")
        return not_applicable("no argument is an id")
    sources = _Sources(run)
    lost = [one for one in given if not sources.tell(one)]
    good = len(given) - len(lost)
    if lost and (lack := lacks_calls(run) or _unread(run)):
        return inconclusive(f"where {_named(lost[0])} has its id from cannot be told: {lack}")
    if lost:
        findings = [_finding(one) for one in lost]
        because = "; ".join(dict.fromkeys(finding.because for finding in findings[:3]))
        because += f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
        return failed(because + and_untold(unread), findings=findings, of=(good, len(given)))
    if unread:
        return inconclusive(f"the arguments of {unread} call(s) were not recorded")
    return passed(f"{good} id(s) in arguments, each told before", of=(good, good))


def _ids(call: ToolCall) -> Iterator[_Given]:
    for path, value in _texts(call.arguments or {}):
        if (found := whole_id(value)) is not None:
            yield _Given(call, path, found, value)


def _texts(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value.strip()
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, str(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in VOLATILE_KEYS:
                yield from _texts(item, f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _texts(item, f"{path}/{place}")


class _Sources:
    """What had been said when a call was asked for. Each text is read once, and only when an id is looked for."""

    def __init__(self, run: Trajectory) -> None:
        self._run = run
        self._request = (run.request or "").casefold()
        self._results: dict[int, str] = {}
        self._turns: dict[int, list[str]] = {}

    def tell(self, one: _Given) -> bool:
        """Whether one of them names the id."""
        return any(stands_in(one.id, text) for text in self._before(one.call))

    def _before(self, call: ToolCall) -> Iterator[str]:
        run = self._run
        yield self._request
        yield from self._said(-1, run.history)
        for place, other in enumerate(run.tool_calls):
            if (
                other is not call
                and (text := self._answer(place, other))
                and before(other, call, "decided") is not False
            ):
                yield text
        for model in run.model_calls:
            # an earlier turn may be all that was given of what was said then
            if call.turn is None or model.index <= call.turn:
                yield from self._said(model.index, model.input_messages)
        yield from map(text_of, Schemas(run).definitions())
        yield from (text_of(event.attributes) for event in run.events)

    def _answer(self, place: int, call: ToolCall) -> str:
        if place not in self._results:
            told = [call.error] if call.result is MISSING else [call.error, call.result]
            self._results[place] = " ".join(text_of(one) for one in told if one is not None)
        return self._results[place]

    def _said(self, turn: int, messages: Sequence[Message] | None) -> list[str]:
        """What others than the model said to it."""
        if turn not in self._turns:
            self._turns[turn] = [
                message.content.casefold()
                for message in messages or ()
                if message.role != "assistant" and message.content
            ]
        return self._turns[turn]


def _unread(run: Trajectory) -> str | None:
    """Why a source may be missing."""
    if run.request is None and run.history is None:
        return "the request was not recorded"
    for call in run.tool_calls:
        if call.ran and call.result is MISSING and call.error is None:
            return f"what {call.name} answered was not recorded"
    for model in run.model_calls:
        if any(message.content is None and not message.tool_calls for message in model.input_messages or ()):
            return f"messages of turn {model.index + 1} were not recorded"
    return None


def _named(one: _Given) -> str:
    return f"{one.call.name} {one.path.lstrip('/')}"


def _finding(one: _Given) -> Finding:
    because = f"{_named(one)} is {one.text}, which nothing told before"
    where = Evidence(
        span_id=one.call.span_id, pointer=f"/tool_calls/{one.call.index}/arguments{one.path}", note=because
    )
    return Finding(subject=f"{one.call.name}|{one.path.lstrip('/')}", because=because, evidence=(where,))

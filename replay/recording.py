"""What one run recorded, as fixtures: tool answers, model turns, effects on the state."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from redfirst.evaluators import (
    MISSING,
    CallStatus,
    Effect,
    Message,
    ModelCall,
    RequestedCall,
    Source,
    Span,
    Tokens,
    ToolCall,
    Trajectory,
    semconv,
)
from redfirst.evaluators.canonical import VOLATILE_KEYS, canonical_text
from redfirst.evaluators.rule_kinds.lacking import missing_fact
from redfirst.replay.asking import asked, recorded_in_facts
from redfirst.replay.pointers import difference
from redfirst.replay.scenario import ErrorPart, MatchPart, ResponsePart, ToolPart
from redfirst.replay.tape import recorded_request, write_key

Json = Any
Grade = Literal["recorded", "reconstructed"]

REDACTED = "__REDACTED__"
"""What OpenInference's instrumentors write in place of content that is hidden."""
_TOKEN = re.compile(r"^(?=.*\d)[0-9A-Za-z_-]{16,}$")
"""Looks like a generated key: uuid, hex, base64url; at least one digit, no spaces, 16 characters or more."""


@dataclass(slots=True, kw_only=True)
class Recording:
    """The fixtures of one run, and what it lacks for an execution."""

    request: Mapping[str, Json] = field(default_factory=dict)
    request_grade: Grade = "recorded"
    turns: list[Mapping[str, Json]] = field(default_factory=list)
    model_grade: Grade = "recorded"
    tools: dict[str, ToolPart] = field(default_factory=dict)
    tools_grade: Grade = "recorded"
    state: dict[str, Json] | None = None
    state_gap: str | None = None
    """Why a check of the state could not be trusted in a replay."""
    gaps: list[str] = field(default_factory=list)
    """Why the run cannot be executed again."""
    notes: list[str] = field(default_factory=list)


def record(run: Trajectory, spans: Sequence[Span], *, source: Literal["incident", "control"]) -> Recording:
    """The fixtures of a run."""
    made = Recording()
    by_id = {span.span_id: span for span in spans}
    _request(made, run, by_id)
    _model(made, run, by_id)
    _left_behind(made, run, by_id.get(run.root_span_id or ""), spans)
    effects = _effects(made, run)
    _tools(made, run, by_id, effects, source)
    return made


def _request(made: Recording, run: Trajectory, spans: Mapping[str, Span]) -> None:
    root = next((spans[i] for i in (run.root_span_id,) if i in spans), None)
    value = (
        root.attributes.get(semconv.INPUT_VALUE) if root is not None and root.scope == semconv.SCOPE else None
    )
    if isinstance(value, str) and root is not None and not _cut(root, semconv.INPUT_VALUE):
        if root.attributes.get(semconv.INPUT_MIME_TYPE) != semconv.JSON_MIME:
            made.request = {"text": value}
            return
        parsed = json.loads(value)
        if isinstance(parsed, list) and parsed and all(isinstance(item, dict) for item in parsed):
            made.request = {"messages": parsed}
        elif isinstance(parsed, dict):
            made.request = {"arguments": parsed}
        else:
            made.request = {"text": value}
        return
    made.request_grade = "reconstructed"
    begun = [message for message in run.history or () if message.role not in ("system", "developer")]
    if any(message.role != "user" for message in begun):
        made.request = {"messages": [_as_given(message) for message in begun]}
    elif run.request is not None:
        made.request = {"text": run.request}
    else:
        made.gaps.append("the request was not recorded")


def _model(made: Recording, run: Trajectory, spans: Mapping[str, Span]) -> None:
    seen: list[str] = []
    for number, call in enumerate(run.model_calls, 1):
        span = spans.get(call.span_id)
        raw_in = _own_json(span, semconv.INPUT_VALUE)
        raw_out = _own_json(span, semconv.OUTPUT_VALUE)
        turn: dict[str, Json] = {"turn": number}
        if isinstance(raw_in, dict):
            turn["request"] = recorded_request(asked(raw_in), seen)
        elif span is None or span.scope != semconv.SCOPE:
            _request_in_facts(made, turn, call, span, seen)
        seen += turn.get("request", {}).get("messages", ())
        if call.failed:
            turn["response"], turn["error"] = None, _error(span, call.error)
        elif raw_out is not MISSING:
            turn["response"] = raw_out
        elif (call.output is not None and call.output.content is not None) or (
            call.output and call.output.tool_calls
        ):
            turn["response"] = _openai_shape(call)
            made.model_grade = "reconstructed"
        else:
            made.gaps.append(f"the reply of model call {number} was not recorded (span {call.span_id})")
            continue
        made.turns.append(turn)
    if not run.model_calls:
        made.notes.append("the run holds no model call")


def _request_in_facts(
    made: Recording, turn: dict[str, Json], call: ModelCall, span: Span | None, seen: Sequence[str]
) -> None:
    """The request of a call that another instrumentation recorded: without its messages nothing finds the turn."""
    made.model_grade = "reconstructed"
    found = recorded_in_facts(call, span)
    if found is None:
        made.gaps.append(f"the messages of model call {turn['turn']} were not recorded (span {call.span_id})")
        return
    if any(REDACTED in canonical_text(message) for message in found.messages):
        made.gaps.append(f"the messages of model call {turn['turn']} are redacted (span {call.span_id})")
        return
    turn["request"] = recorded_request(found, seen)
    told = (
        ("model", "model"),
        ("tools", "tools offered"),
        ("parameters", "parameters"),
        ("system", "system prompt"),
    )
    unknown = [what for key, what in told if (key in found.keys) is (key == "system")]
    said = f"model requests: not recorded and not compared: {', '.join(unknown)}"
    if unknown and said not in made.notes:
        made.notes.append(said)


def _left_behind(made: Recording, run: Trajectory, root: Span | None, spans: Sequence[Span]) -> None:
    """What the scenario cannot say of the run, for its reviewer."""
    clock = missing_fact(run, "times")
    if clock is not None:
        made.notes.append(f"{clock}: the scenario's clock starts at a time that means nothing")
    later = later_turns(run)
    if later and not _between_calls(run, root, spans):
        made.notes.append(
            f"the user spoke again later ({len(later)} more message(s)); the request holds what began the run"
        )
    elif later:
        made.request = {
            **made.request,
            "later": [{"turn": place, "content": said} for place, said in enumerate(later, 2)],
        }


def later_turns(run: Trajectory) -> list[str]:
    """What the user said after the model had first been asked: the messages of theirs that each call added.

    A call's messages are the conversation so far, which answers of the model stand in, or its last part, or only what
    is new in it.
    """
    if not run.model_calls:
        return []
    known = _users(run.model_calls[0])
    begun = len(known)
    for call in run.model_calls[1:]:
        said = _users(call)
        if any(message.role == "assistant" for message in call.input_messages or ()):
            said = said[_overlap(known, said) :]
        known += said
    return known[begun:]


def _overlap(known: Sequence[str], said: Sequence[str]) -> int:
    """How many of what is said repeat the end of what is known."""
    return next(
        (n for n in range(min(len(known), len(said)), 0, -1) if list(known[-n:]) == list(said[:n])), 0
    )


def _between_calls(run: Trajectory, root: Span | None, spans: Iterable[Span]) -> bool:
    """Whether the user may have spoken between two calls of the agent, and not from inside one.

    A trace in which one span holds every model call is one call of the program, whatever its own loop asked the model
    again. The root of an imported record is only its frame.
    """
    if len(run.trace_ids) > 1 or (root is not None and semconv.IMPORTED in root.resource):
        return True
    models = {call.span_id for call in run.model_calls}
    begin = min(call.start_ns for call in run.model_calls)
    end = max(call.end_ns for call in run.model_calls)
    return not any(
        span.start_ns <= begin and end <= span.end_ns for span in spans if span.span_id not in models
    )


def _users(call: ModelCall) -> list[str]:
    return [m.content for m in call.input_messages or () if m.role == "user" and m.content]


def _as_given(message: Message) -> dict[str, Json]:
    """A message of the history in the form of OpenAI's API."""
    said: dict[str, Json] = {"role": message.role, "content": message.content}
    if message.tool_call_id is not None:
        said["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        said["tool_calls"] = [
            _call_as_given(wanted, f"call_{place}") for place, wanted in enumerate(message.tool_calls)
        ]
    return said


def _call_as_given(wanted: RequestedCall, call_id: str) -> dict[str, Json]:
    arguments = wanted.raw_arguments
    return {
        "id": wanted.call_id or call_id,
        "type": "function",
        "function": {
            "name": wanted.name,
            "arguments": json.dumps(wanted.arguments or {}) if arguments is None else arguments,
        },
    }


def _own_json(span: Span | None, key: str) -> Json:
    if span is None or span.scope != semconv.SCOPE or _cut(span, key):
        return MISSING
    value = span.attributes.get(key, MISSING)
    return json.loads(value) if isinstance(value, str) else MISSING


def _cut(span: Span, key: str) -> bool:
    notes = span.attributes.get(semconv.TRUNCATED)
    return isinstance(notes, str) and any(note.get("attribute") == key for note in json.loads(notes))


def _openai_shape(call: ModelCall) -> dict[str, Json]:
    output = call.output
    if output is None:
        raise AssertionError(call.span_id)
    message: dict[str, Json] = {"role": "assistant", "content": output.content}
    if output.tool_calls:
        message["tool_calls"] = [
            _call_as_given(wanted, f"call_{call.index}_{place}")
            for place, wanted in enumerate(output.tool_calls)
        ]
    finish = call.finish_reason or ("tool_calls" if output.tool_calls else "stop")
    response = {"model": call.model, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}
    usage = _usage(call.tokens)
    return response | ({"usage": usage} if usage else {})


def _usage(tokens: Tokens) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for kind, count, part, of_it in (
        ("prompt", tokens.input, "cached", tokens.cached),
        ("completion", tokens.output, "reasoning", tokens.reasoning),
    ):
        if count is not None:
            found[f"{kind}_tokens"] = count
        if of_it is not None:
            found[f"{kind}_tokens_details"] = {f"{part}_tokens": of_it}
    return found


@dataclass(frozen=True, slots=True)
class _Change:
    put: Mapping[str, Json]
    unset: Sequence[str]


def _effects(made: Recording, run: Trajectory) -> dict[int, _Change]:
    """The change of state each write made: the difference of the snapshots around it, when it alone lies between."""
    lost = missing_fact(run, "states")
    if lost is not None:
        made.state_gap = lost
        return {}
    if not run.states:
        made.state_gap = "the run reported no state (run.state)"
        return {}
    made.state = dict(run.states[0].state)
    writes = [c for c in run.tool_calls if c.ran and c.effect is not Effect.READ and c.source is Source.SPAN]
    found: dict[int, _Change] = {}
    for call in writes:
        before = [s for s in run.states if s.time_ns <= call.start_ns]
        after = [s for s in run.states if s.time_ns >= call.end_ns]
        between = [
            other
            for other in writes
            if other is not call
            and before
            and after
            and other.start_ns >= before[-1].time_ns
            and other.start_ns < after[0].time_ns
        ]
        if not before or not after:
            if call.effect is Effect.WRITE:
                made.state_gap = f"no snapshot stands on both sides of {call.name}"
            continue
        put, unset = difference(before[-1].state, after[0].state)
        if between and (put or unset):
            last = max([call, *between], key=lambda c: (c.end_ns, c.index))
            names = ", ".join(sorted({call.name, *(other.name for other in between)}))
            made.notes.append(
                f"{names} ran between two snapshots; their joint effect is laid to the last of them"
            )
            if call is not last:
                continue
        if put or unset:
            found[call.index] = _Change(put, unset)
    return found


def _tools(
    made: Recording, run: Trajectory, spans: Mapping[str, Span], effects: Mapping[int, _Change], source: str
) -> None:
    ignored = _generated(made, run)
    written: list[str] = []
    responses: dict[str, list[ResponsePart]] = {}
    effect: dict[str, str | None] = {}
    for call in sorted(run.tool_calls, key=lambda c: (c.start_ns, c.index)):
        if not call.ran:
            continue
        change = effects.get(call.index)
        part = _response(made, call, spans.get(call.span_id), change, written, source)
        if part is None:
            continue
        effect[call.name] = None if call.effect is None else call.effect.value
        _append(responses.setdefault(call.name, []), part, call.effect)
        if call.effect is Effect.WRITE and (part.error is None or change is not None):
            written.append(write_key(call.name, call.arguments or {}, ignored.get(call.name, ())))
    for name, found in responses.items():
        made.tools[name] = ToolPart.model_validate(
            {
                "effect": effect[name],
                "match": MatchPart(ignore=sorted(ignored.get(name, ()))),
                "responses": found,
            }
        )


def _response(
    made: Recording,
    call: ToolCall,
    span: Span | None,
    change: _Change | None,
    written: Sequence[str],
    source: str,
) -> ResponsePart | None:
    if call.arguments is None:
        made.gaps.append(f"the arguments of {call.name} were not recorded (span {call.span_id})")
        return None
    if _own_json(span, semconv.TOOL_CALL_ARGUMENTS) is MISSING:
        made.tools_grade = "reconstructed"
    answer: dict[str, Json] = {}
    if span is not None and any(event.name == "exception" for event in span.events):
        answer["error"] = ErrorPart(**_error(span, call.error))
    else:
        value = _own_json(span, semconv.TOOL_CALL_RESULT)
        if value is MISSING:
            value = call.result
            made.tools_grade = "reconstructed"
        if value is MISSING or call.status is CallStatus.UNKNOWN:
            made.gaps.append(f"the result of {call.name} was not recorded (span {call.span_id})")
            return None
        answer["return"] = value
        # an error that the framework made an answer of; our own decorators leave none
        answer["failed"] = call.status is CallStatus.TOOL_ERROR and (
            span is None or span.scope != semconv.SCOPE
        )
    if change is not None:
        answer["set"], answer["unset"] = dict(change.put), list(change.unset)
    return ResponsePart.model_validate(
        {"when": dict(call.arguments), "after": list(written), "source": source, **answer}
    )


def _append(found: list[ResponsePart], part: ResponsePart, effect: Effect | None) -> None:
    """Equal answers in a row are one recording: of a read, any number; of anything else, as many as there were."""
    last = next((r for r in reversed(found) if same_call(r, part)), None)
    readable = effect is Effect.READ and part.error is None
    if last is None or last.model_copy(update={"times": part.times}) != part:
        found.append(part.model_copy(update={"times": "any"}) if readable else part)
        return
    if last.times != "any":
        found[found.index(last)] = last.model_copy(update={"times": last.times + 1})


def same_call(one: ResponsePart, other: ResponsePart) -> bool:
    """Whether two recordings answer the same arguments in the same state."""
    return canonical_text([one.when, one.after]) == canonical_text([other.when, other.after])


def _error(span: Span | None, said: str | None) -> dict[str, str]:
    for event in span.events if span is not None else ():
        if event.name == "exception":
            return {
                "type": str(event.attributes.get("exception.type", "Exception")),
                "message": str(event.attributes.get("exception.message", said or "")),
            }
    return {"type": "Exception", "message": said or ""}


def _generated(made: Recording, run: Trajectory) -> dict[str, set[str]]:
    """Arguments that the agent's code adds afresh at each call: ignored when a call looks for its recording."""
    wanted = [w for m in run.model_calls if m.output is not None for w in m.output.tool_calls]
    known = bool(wanted) or any(m.output is not None for m in run.model_calls)
    found: dict[str, set[str]] = {}
    for call in run.tool_calls:
        for key, value in (call.arguments or {}).items():
            asked = any(w.name == call.name and key in (w.arguments or {}) for w in wanted)
            token = isinstance(value, str) and _TOKEN.match(value) is not None
            if key in VOLATILE_KEYS or (known and not asked and token):
                if key not in found.setdefault(call.name, set()):
                    made.notes.append(
                        f"{call.name}: argument {key} is generated by the code and not compared"
                    )
                found[call.name].add(key)
    return {name: keys for name, keys in found.items() if keys}

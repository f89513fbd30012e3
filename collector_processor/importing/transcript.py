"""A conversation with an agent as it was written down, into spans of our own dialect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from redfirst.collector_processor.importing.formats import Place
from redfirst.collector_processor.importing.identity import child_id
from redfirst.collector_processor.importing.json_text import json_text
from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import container, mapping
from redfirst.evaluators.span import Span, StatusCode
from redfirst.evaluators.trajectory import Effect, Message, RequestedCall, Stop
from redfirst.instrumentation.conversation import usage_attributes

_STEP_NS = 10**6
_RUN_NS = 1000 * 10**9
"""Runs without times are this far apart, from 1970 on."""
NO_TIMES = "order"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One message, with what the record says beside it."""

    message: Message
    at_ns: int | None = None
    """When it was there."""
    scripted: bool = False
    """No model wrote it, though the assistant says it: a greeting."""
    failed: bool = False
    """The record marks it as the answer of a call that failed."""
    model: str | None = None
    finish: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)
    """Attribute name → count, from ``semconv``."""
    cost: float | None = None
    """US dollars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One run. What the record does not say is ``None`` or empty."""

    trace_id: str
    entries: Sequence[Entry]
    harness: bool
    """Whoever ran the agent and its tools wrote the record: it says how the run ended, and a call without an
    answer did not run. A list of messages says neither."""
    agent: str | None = None
    session: str | None = None
    tools: Sequence[Mapping[str, object]] = ()
    """Definitions of the tools offered."""
    effects: Mapping[str, Effect] = field(default_factory=dict)
    """What a call does to the world, by tool, where the record says it."""
    stop: Stop | None = None
    stop_cap: int | None = None
    step_cap: int | None = None
    error: str | None = None
    """The error that ended the run."""
    start_ns: int | None = None
    end_ns: int | None = None
    attributes: Mapping[str, str | int | float] = field(default_factory=dict)
    """Further attributes of the run's first span."""


def spans_of(run: Transcript, place: Place, source: str) -> list[Span]:
    """The spans of a run: the run itself, each message of the model, and each answered call where a harness wrote them.

    A model span holds the messages that are new to the model since its last: the record does not say what
    else it was sent.
    """
    times, recorded = _times(run, place)
    root = child_id(run.trace_id, 0)
    start, end = times[0], times[-1]
    attributes = _root_attributes(run, place, source)
    if not recorded:
        attributes[semconv.TIMES] = NO_TIMES
    resource = {semconv.IMPORTED: source}
    top = Span(
        trace_id=run.trace_id,
        span_id=root,
        name="run",
        start_ns=start,
        end_ns=max(end, run.end_ns or 0) if recorded else end,
        status=StatusCode.ERROR if run.error is not None else StatusCode.UNSET,
        status_message=run.error or "",
        attributes=attributes,
        scope=semconv.SCOPE,
        resource=resource,
    )
    inner = [
        Span(
            trace_id=run.trace_id,
            span_id=child_id(run.trace_id, number + 1),
            parent_id=root,
            name=name,
            start_ns=times[number],
            end_ns=times[number + 1],
            status=StatusCode.ERROR if error is not None else StatusCode.UNSET,
            status_message=error or "",
            attributes=found,
            scope=semconv.SCOPE,
            resource=resource,
        )
        for number, name, found, error in _inner(run)
    ]
    return [top, *inner]


def _times(run: Transcript, place: Place) -> tuple[list[int], bool]:
    """The moments between the entries, one more than entries, each later than the one before; and whether
    the record holds them."""
    said = [entry.at_ns for entry in run.entries]
    begin = run.start_ns or (said[0] if said else None)
    known = [at for at in said if at is not None]
    if (
        begin is not None
        and known
        and len(known) == len(said)
        and known == sorted(known)
        and begin <= known[0]
    ):
        # A nanosecond an entry keeps the order of what was written down in the same microsecond.
        return [begin, *(at + number for number, at in enumerate(known, 1))], True
    first = run.start_ns or (1 + place.number) * _RUN_NS
    return [first + number * _STEP_NS for number in range(len(run.entries) + 1)], False


def _root_attributes(run: Transcript, place: Place, source: str) -> dict[str, object]:
    asked = next(
        (e.message.content for e in run.entries if e.message.role == "user" and e.message.content), None
    )
    last = next((e.message for e in reversed(run.entries) if e.message.role == "assistant"), None)
    answer = last.content if last is not None and not last.tool_calls and run.error is None else None
    found: dict[str, object | None] = {
        semconv.OI_KIND: "AGENT" if run.harness else "CHAIN",
        semconv.OPERATION: "invoke_agent" if run.harness else None,
        semconv.AGENT_NAME: run.agent,
        semconv.OI_AGENT_NAME: run.agent,
        semconv.CONVERSATION_ID: run.session,
        semconv.SESSION_ID: run.session,
        semconv.INPUT_VALUE: asked,
        semconv.INPUT_MIME_TYPE: semconv.TEXT_MIME if asked else None,
        semconv.OUTPUT_VALUE: answer or None,
        semconv.OUTPUT_MIME_TYPE: semconv.TEXT_MIME if answer else None,
        semconv.STEP_CAP: run.step_cap,
        semconv.STOP_REASON: run.stop.value if run.stop is not None else None,
        semconv.STOP_CAP: run.stop_cap,
        semconv.IMPORTED: source,
        semconv.IMPORTED_FROM: place.source,
        **run.attributes,
    }
    return {key: value for key, value in found.items() if value is not None}


def _inner(run: Transcript) -> Iterator[tuple[int, str, dict[str, object], str | None]]:
    """The spans below the run: number of the entry, name, attributes, error."""
    schemas = {name: schema for tool in run.tools for name, schema in _schema(tool)}
    told: list[Message] = []
    open_calls: list[RequestedCall] = []
    tools = run.tools
    for number, entry in enumerate(run.entries):
        message = entry.message
        if message.role == "assistant" and not entry.scripted:
            yield number, f"chat {entry.model or ''}".strip(), _model(entry, told, tools), None
            told, tools, open_calls = [], (), list(message.tool_calls)
            continue
        told.append(message)
        if message.role == "tool" and run.harness:
            call = _asked(message, open_calls)
            name = (call.name if call else None) or message.name or ""
            error = (message.content or "error") if entry.failed else None
            yield (
                number,
                f"execute_tool {name}".strip(),
                _tool(call, message, schemas.get(name), run.effects.get(name)),
                error,
            )


def _asked(answer: Message, open_calls: list[RequestedCall]) -> RequestedCall | None:
    """The call this answers: by its id, else the first of its name; each is answered once."""
    same_id = (c for c in open_calls if answer.tool_call_id is not None and c.call_id == answer.tool_call_id)
    same_name = (c for c in open_calls if answer.name is not None and c.name == answer.name)
    call = next(same_id, None) or next(same_name, None)
    if call is not None:
        open_calls.remove(call)
    return call


def _model(entry: Entry, told: Sequence[Message], tools: Sequence[Mapping[str, object]]) -> dict[str, object]:
    found: dict[str, object | None] = {
        semconv.OI_KIND: "LLM",
        semconv.OPERATION: "chat",
        semconv.RESPONSE_MODEL: entry.model,
        semconv.OI_MODEL_NAME: entry.model,
        semconv.INPUT_MESSAGES: messages_json(told) if told else None,
        semconv.OUTPUT_MESSAGES: messages_json([entry.message]),
        semconv.FINISH_REASONS: (entry.finish,) if entry.finish else None,
        semconv.TOOL_DEFINITIONS: json_text(list(tools)) if tools else None,
        semconv.OI_COST: entry.cost,
        **(usage_attributes(entry.usage) if entry.usage else {}),
    }
    return {key: value for key, value in found.items() if value is not None}


def _tool(
    call: RequestedCall | None,
    answer: Message,
    schema: Mapping[str, object] | None,
    effect: Effect | None,
) -> dict[str, object]:
    name = (call.name if call else None) or answer.name
    known = call is not None and call.arguments is not None
    found: dict[str, object | None] = {
        semconv.OI_KIND: "TOOL",
        semconv.OPERATION: "execute_tool",
        semconv.TOOL_NAME: name,
        semconv.OI_TOOL_NAME: name,
        semconv.TOOL_CALL_ID: answer.tool_call_id,
        semconv.TOOL_CALL_ARGUMENTS: json_text(call.arguments) if call is not None and known else None,
        semconv.TOOL_CALL_RESULT: None if answer.content is None else json_text(container(answer.content)),
        semconv.TOOL_EFFECT: None if effect is None else effect.value,
        semconv.OI_TOOL_PARAMETERS: None if schema is None else json_text(schema),
    }
    return {key: value for key, value in found.items() if value is not None}


def _schema(tool: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The name and the JSON Schema of a tool's definition, in OpenAI's or Anthropic's shape."""
    body = mapping(tool.get("function")) or tool
    schema = mapping(body.get("parameters", body.get("input_schema")))
    name = body.get("name")
    if isinstance(name, str) and schema is not None:
        yield name, schema


def messages_json(messages: Sequence[Message]) -> str:
    """The messages as the JSON of ``gen_ai.input.messages``."""
    return json_text([{"role": message.role, "parts": list(_parts(message))} for message in messages])


def _parts(message: Message) -> Iterator[dict[str, object]]:
    if message.role == "tool":
        part = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        if message.name is not None:
            part["name"] = message.name
        yield part | ({"is_error": True} if message.failed else {})
        return
    if message.content is not None:
        yield {"type": "text", "content": message.content}
    for call in message.tool_calls:
        arguments = call.arguments if call.arguments is not None else call.raw_arguments
        yield {"type": "tool_call", "id": call.call_id, "name": call.name, "arguments": arguments}

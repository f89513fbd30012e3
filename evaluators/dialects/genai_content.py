"""Messages of the GenAI conventions wherever a version of them put them: log records, span events,
numbered attributes, or one value for all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, first, flattened
from redfirst.evaluators.dialects.messages import message_of, messages_of, one_output
from redfirst.evaluators.dialects.values import REDACTED, container, listed, mapping, plain, text, unpacked
from redfirst.evaluators.span import LogRecord, Span, StatusCode
from redfirst.evaluators.trajectory import Message

_ELIDED = tuple(REDACTED)
_GIVEN = frozenset({"gen_ai.system.message", "gen_ai.user.message", "gen_ai.tool.message"})
_SAID = "gen_ai.assistant.message"
_Entry = tuple[str, Mapping[str, object]]
_MESSAGE_EVENT = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.choice")


def told_by_messages(attributes: Attributes, span: Span) -> tuple[object, object, str | None]:
    """Arguments, result and call id of a tool span that tells them as messages."""
    given: object = None
    recorded: object = None
    call_id: str | None = None
    for message in messages_of(attributes.get(semconv.INPUT_MESSAGES)) or ():
        for call in message.tool_calls:
            given, call_id = call.arguments, call.call_id
    for message in messages_of(attributes.get(semconv.OUTPUT_MESSAGES)) or ():
        if message.role == "tool":
            recorded = message.content
    for event in span.events:
        if event.name == "gen_ai.tool.message":
            given, call_id = event.attributes.get("content"), text(event.attributes.get("id"))
        elif event.name == "gen_ai.choice":
            recorded = event.attributes.get("message")
    return given, recorded, call_id


def from_events(
    span: Span, logs: Sequence[LogRecord]
) -> tuple[tuple[Message, ...] | None, Message | None, str | None]:
    """Messages written one by one: as log records, as span events, or in one attribute of entries."""
    entries = [(r.event_name or str(r.attributes.get("event.name", "")), _record_body(r)) for r in logs]
    if not any(_MESSAGE_EVENT.match(name) for name, _ in entries):
        entries = [(event.name, _event_body(event.attributes)) for event in span.events]
    if not any(_MESSAGE_EVENT.match(name) for name, _ in entries):
        listing = listed(span.attributes.get("events")) or []
        entries = [(_name_of(e), e) for e in listing if isinstance(e, Mapping)]
        if span.status is not StatusCode.ERROR:
            entries = _with_choice(entries)
    return from_entries(entries)


def _name_of(entry: Mapping[str, object]) -> str:
    """The entry's own name; of one that has none, what its role or its envelope makes it."""
    if "event.name" in entry:
        return str(entry["event.name"])
    return (
        "gen_ai.choice"
        if isinstance(entry.get("message"), Mapping)
        else f"gen_ai.{entry.get('role')}.message"
    )


def _with_choice(entries: list[_Entry]) -> list[_Entry]:
    """Where no entry says that it is the answer: what the assistant said after all it was given."""
    if any(name == "gen_ai.choice" for name, _ in entries):
        return entries
    given = max((n for n, (name, _) in enumerate(entries, 1) if name in _GIVEN), default=len(entries))
    said = [("gen_ai.choice" if name == _SAID else name, body) for name, body in entries[given:]]
    return [*entries[:given], *said]


def from_entries(
    entries: Iterable[tuple[str, Mapping[str, object]]],
) -> tuple[tuple[Message, ...] | None, Message | None, str | None]:
    """Input messages, output and finish reason of named message entries in order."""
    asked: list[Message] = []
    said: list[Message] = []
    finish: str | None = None
    for name, body in entries:
        found = _MESSAGE_EVENT.match(name)
        if not found:
            continue
        role = found.group(1)
        if body.get("content") in _ELIDED:
            finish = finish or text(body.get("finish_reason"))
            continue
        if role is None:
            inner = mapping(body.get("message")) or body
            said.extend(message_of({"role": "assistant", **inner}))
            finish = finish or text(body.get("finish_reason"))
        else:
            asked.extend(message_of({"role": role, **body}))
    return tuple(asked) or None, one_output(said), finish


def _record_body(record: LogRecord) -> Mapping[str, object]:
    return mapping(plain(record.body)) or {}


def _event_body(attributes: Attributes) -> Mapping[str, object]:
    inner = mapping(attributes.get("gen_ai.event.content"))
    if inner is not None:
        return inner
    body = {
        key: unpacked(value)
        if key in ("message", "tool_calls")
        else container(value)
        if key == "content"
        else value
        for key, value in attributes.items()
    }
    if isinstance(body.get("content"), Mapping):
        body["content"] = attributes["content"]
    message = body.get("message")
    return (
        body if message is None or isinstance(message, Mapping) else {**body, "message": {"content": message}}
    )


def from_flattened(attributes: Attributes) -> tuple[tuple[Message, ...] | None, Message | None, str | None]:
    """``gen_ai.prompt.<i>.…`` and ``gen_ai.completion.<i>.…``, the oldest of all."""
    asked = [m for record in flattened(attributes, "gen_ai.prompt") for m in message_of(_nested(record))]
    completions = flattened(attributes, "gen_ai.completion")
    said = [m for record in completions for m in message_of({"role": "assistant", **_nested(record)})]
    finish = next((reason for record in completions if (reason := text(record.get("finish_reason")))), None)
    return tuple(asked) or None, one_output(said), finish


def from_content(attributes: Attributes, span: Span) -> tuple[tuple[Message, ...] | None, Message | None]:
    """``gen_ai.prompt`` and ``gen_ai.completion`` as one value each, on the span or in its events."""
    found = dict(attributes)
    for event in span.events:
        found.update(
            {
                key: value
                for key, value in event.attributes.items()
                if key in ("gen_ai.prompt", "gen_ai.completion")
            }
        )
    # Logfire's first format keeps request and response as they went over the wire.
    asked, said = (
        first(found, "gen_ai.prompt", "request_data"),
        first(found, "gen_ai.completion", "response_data"),
    )
    messages = messages_of(asked)
    if messages is None and isinstance(unpacked(asked), str):
        messages = (Message(role="user", content=str(unpacked(asked))),)
    output = one_output(messages_of(said))
    if output is None and isinstance(unpacked(said), str) and said:
        output = Message(role="assistant", content=str(unpacked(said)))
    return messages, output


def _nested(record: Mapping[str, object]) -> dict[str, object]:
    calls = flattened(record, "tool_calls")
    kept = {key: value for key, value in record.items() if not key.startswith("tool_calls.")}
    if isinstance(kept.get("content"), str) and isinstance(blocks := unpacked(kept["content"]), list):
        kept["content"] = blocks
    return {**kept, "tool_calls": calls} if calls else kept

"""OpenTelemetry's GenAI conventions, from the message events of 1.28 to the span attributes of today.

Content is looked for on the span, then in its events, then in its log records: the conventions have
moved it between the three, and a deployment chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import (
    Attributes,
    begins_any,
    contradictions,
    error_of,
    first,
    tokens_of,
)
from redfirst.evaluators.dialects.facts import Kind, SpanFacts, facts_with
from redfirst.evaluators.dialects.genai_content import (
    from_content,
    from_events,
    from_flattened,
    told_by_messages,
)
from redfirst.evaluators.dialects.messages import last_text, messages_in, messages_of, one_output
from redfirst.evaluators.dialects.values import (
    arguments_of,
    block_text,
    first_text,
    is_word,
    mapping,
    outcome_of,
    remembered,
    text,
    unpacked,
)
from redfirst.evaluators.later import Later
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Message

KINDS = {
    "chat": Kind.MODEL,
    "generate_content": Kind.MODEL,
    "text_completion": Kind.MODEL,
    "completion": Kind.MODEL,
    "chat.completions": Kind.MODEL,
    "text.completions": Kind.MODEL,
    "responses": Kind.MODEL,
    "execute_tool": Kind.TOOL,
    "invoke_agent": Kind.AGENT,
    "handoff": Kind.HANDOFF,
    "agent_handoff": Kind.HANDOFF,
}
_CONVENTIONAL = {
    name: kind
    for name, kind in KINDS.items()
    if name in ("chat", "generate_content", "execute_tool", "invoke_agent")
}
_CLIENT = 3
_DETAILS = "gen_ai.client.inference.operation.details"
_STREAMED = "streaming response "
"""How Logfire names what it writes at the end of a stream, after the span of the request."""
_PLACEHOLDERS = frozenset({"unknown", ""})

TOKEN_NAMES = {
    "input": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "cached": (
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.cache_read_input_tokens",
        "gen_ai.usage.details.cache_read_tokens",
        "gen_ai.usage.input_cached_tokens",
    ),
    "reasoning": (
        "gen_ai.usage.reasoning.output_tokens",
        "gen_ai.usage.reasoning_tokens",
        "gen_ai.usage.details.reasoning_tokens",
    ),
}


class GenAI:
    """Spans with ``gen_ai.operation.name``."""

    name = "gen_ai"

    def claims(self, span: Span) -> bool:
        return begins_any(span.attributes, "gen_ai.")

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        return read_genai(span, logs, dialect=self.name)


def kind_of(span: Span) -> Kind:
    """What the operation name says; without one, the span's name, which begins with it by the conventions, or
    what only a tool's or a model's span carries."""
    attributes = span.attributes
    operation = attributes.get(semconv.OPERATION)
    if isinstance(operation, str) and (operation in KINDS or is_word(operation)):
        return KINDS.get(operation, Kind.STRUCTURE)
    if (named_so := _CONVENTIONAL.get(span.name.partition(" ")[0])) is not None:
        return named_so
    if semconv.TOOL_NAME in attributes:
        return Kind.TOOL
    if semconv.AGENT_NAME in attributes and span.kind != _CLIENT:
        return Kind.STRUCTURE  # an agent that sums up its calls, or one of them
    named = semconv.REQUEST_MODEL in attributes or semconv.RESPONSE_MODEL in attributes
    said = semconv.OUTPUT_MESSAGES in attributes or any(
        event.name == "gen_ai.choice" for event in span.events
    )
    if named and (said or any(key.startswith("gen_ai.usage.") for key in attributes)):
        return Kind.MODEL
    return Kind.STRUCTURE


def read_genai(span: Span, logs: Sequence[LogRecord], *, dialect: str, kind: Kind | None = None) -> SpanFacts:
    """The facts of a span written by the conventions."""
    return facts_with(genai_fields(span, logs, dialect=dialect, kind=kind))


def genai_fields(
    span: Span, logs: Sequence[LogRecord], *, dialect: str, kind: Kind | None = None
) -> dict[str, object]:
    """The fields of those facts that the span fills."""
    kind = kind_of(span) if kind is None else kind
    detail = _details(span, logs)
    attributes: Attributes = {**detail, **span.attributes} if detail else span.attributes
    fields: dict[str, object] = {
        "dialect": dialect,
        "kind": kind,
        "session": session_of(attributes),
        "user": first_text(attributes.get(semconv.USER_ID), attributes.get("enduser.id")),
        **error_of(span),
        **_exception(span, logs),
    }
    if kind is Kind.TOOL:
        fields |= _tool(attributes, span)
    elif kind is Kind.MODEL:
        fields |= _model(attributes, span, logs)
    elif kind is Kind.AGENT:
        fields |= _agent(attributes)
    elif kind is Kind.HANDOFF:
        target = text(attributes.get("gen_ai.handoff.to_agent"))
        fields["name"] = None if target in _PLACEHOLDERS else target
        fields["agent"] = first_text(
            attributes.get("gen_ai.handoff.from_agent"), attributes.get(semconv.AGENT_NAME)
        )
    return fields


def session_of(attributes: Attributes) -> str | None:
    """The conversation: what a person named it comes before what a framework made up."""
    return first_text(attributes.get(semconv.SESSION_ID), attributes.get(semconv.CONVERSATION_ID))


def _tool(attributes: Attributes, span: Span) -> dict[str, object]:
    given, recorded, told_id = first(attributes, semconv.TOOL_CALL_ARGUMENTS, "tool_arguments"), None, None
    recorded = first(attributes, semconv.TOOL_CALL_RESULT, "tool_response")
    if given is None and recorded is None:
        given, recorded, told_id = told_by_messages(attributes, span)
    arguments = arguments_of(given)
    outcome = outcome_of(MISSING if recorded is None else recorded)
    failed: dict[str, object] = {}
    if outcome.error is not None:
        failed = {"failed": True, "error": outcome.error}
    conventional = span.name.removeprefix("execute_tool ") if span.name.startswith("execute_tool ") else None
    name = first_text(attributes.get(semconv.TOOL_NAME), conventional)
    return {
        "name": name,
        "agent": text(attributes.get(semconv.AGENT_NAME)),
        "arguments": arguments.named,
        "bare_arguments": arguments.bare,
        "result": outcome.result,
        "call_id": first_text(
            attributes.get(semconv.TOOL_CALL_ID), attributes.get("tool_call_id"), told_id, outcome.call_id
        ),
        **failed,
    }


def _agent(attributes: Attributes) -> dict[str, object]:
    asked = messages_of(attributes.get(semconv.INPUT_MESSAGES))
    said = messages_of(attributes.get(semconv.OUTPUT_MESSAGES))
    last = [message for message in said or () if message.role == "assistant"][-1:]
    return {
        "name": first_text(attributes.get(semconv.AGENT_NAME), attributes.get("agent_name")),
        "version": text(attributes.get(semconv.AGENT_VERSION)),
        "request": last_text(asked, "user"),
        "answer": last[0].content if last and not last[0].tool_calls else None,
        "tokens": tokens_of(attributes, **TOKEN_NAMES),
    }


def _model(attributes: Attributes, span: Span, logs: Sequence[LogRecord]) -> dict[str, object]:
    recorded = unpacked(attributes.get(semconv.OUTPUT_MESSAGES))
    said = one_output(messages_in(recorded))
    finish, tokens = _finish(attributes), tokens_of(attributes, **TOKEN_NAMES)
    given = Later(partial(_input, attributes))
    if said is None and given.get() is None:
        asked, said, event_finish = from_events(span, logs)
        finish = finish or event_finish
        if asked is None and said is None:
            asked, said, event_finish = from_flattened(attributes)
            finish = finish or event_finish
        if asked is None and said is None:
            asked, said = from_content(attributes, span)
        given = Later(lambda: asked)
    return {
        "agent": text(attributes.get(semconv.AGENT_NAME)),
        "input": given,
        "output": said,
        "finish": finish or _finish_in(recorded),
        "model": first_text(attributes.get(semconv.RESPONSE_MODEL), attributes.get(semconv.REQUEST_MODEL)),
        "response_id": text(attributes.get(semconv.RESPONSE_ID)),
        "late": attributes.get("logfire.span_type") == "log" or span.name.startswith(_STREAMED),
        "tokens": tokens,
        "gaps": contradictions(attributes, span.span_id, tokens, **TOKEN_NAMES),
        "tools": Later(partial(definitions, attributes.get(semconv.TOOL_DEFINITIONS))),
    }


def _input(attributes: Attributes) -> tuple[Message, ...] | None:
    return _with_system(messages_of(attributes.get(semconv.INPUT_MESSAGES)), attributes)


def _details(span: Span, logs: Sequence[LogRecord]) -> Attributes:
    """The attributes of the event that may carry a call's content and numbers a second time: one log
    record, or span events that carry the input and the output one after the other."""
    for record in logs:
        if _DETAILS in (record.event_name, record.attributes.get("event.name")):
            return record.attributes
    found: dict[str, object] = {}
    for event in span.events:
        if event.name == _DETAILS:
            found |= event.attributes
    return found


def _exception(span: Span, logs: Sequence[LogRecord]) -> dict[str, object]:
    """An exception that stands in a log record instead of a span event."""
    for record in logs:
        if record.event_name == "gen_ai.client.operation.exception" and not any(
            e.name == "exception" for e in span.events
        ):
            kind = text(record.attributes.get("exception.type"))
            message = first_text(record.attributes.get("exception.message"), span.status_message, kind)
            return {"failed": True, "error": message or "error", "error_type": kind}
    return {}


def _with_system(messages: tuple[Message, ...] | None, attributes: Attributes) -> tuple[Message, ...] | None:
    """The instructions stand in an attribute of their own; a conversation begins with them."""
    if messages is None or any(message.role == "system" for message in messages):
        return messages
    found = unpacked(attributes.get("gen_ai.system_instructions"))
    if isinstance(found, list):
        found = block_text(
            [{"text": part.get("content", part.get("text"))} for part in found if isinstance(part, Mapping)]
        )
    return (Message(role="system", content=found), *messages) if isinstance(found, str) else messages


def _finish(attributes: Attributes) -> str | None:
    """The finish reason: an array, a text, or an array as text."""
    value = first(attributes, semconv.FINISH_REASONS, "gen_ai.response.finish_reason")
    if value is not None:
        value = unpacked(value)
    if isinstance(value, list):
        value = next((item for item in value if isinstance(item, str) and item), None)
    if isinstance(value, str) and value.startswith("FinishReason."):
        value = value.removeprefix("FinishReason.").lower()
    return first_text(value, attributes.get("anthropic.message.stop_reason"))


def _finish_in(messages: object) -> str | None:
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and (reason := text(message.get("finish_reason"))):
            return reason
    return None


@remembered
def definitions(value: object) -> tuple[Mapping[str, object], ...] | None:
    """The tool definitions a model was given, as found."""
    found = unpacked(value)
    if not found or not isinstance(found, list):
        return None
    out = [item if isinstance(item, dict) else mapping(item) for item in found]
    return tuple(item for item in out if item is not None) or None

"""OpenInference: ``openinference.span.kind`` and flattened messages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, error_of, first, flattened, tokens_of
from redfirst.evaluators.dialects.facts import Kind, SpanFacts
from redfirst.evaluators.dialects.messages import last_text, message_of, messages_of, one_output
from redfirst.evaluators.dialects.values import (
    Arguments,
    arguments_of,
    first_text,
    listed,
    mapping,
    named_by_schema,
    outcome_of,
    text,
    unpacked,
)
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import MISSING, Message, RequestedCall

KINDS = {"LLM": Kind.MODEL, "TOOL": Kind.TOOL, "AGENT": Kind.AGENT}
_HANDOFF_SPAN = re.compile(r"hand-?off to (.+)", re.IGNORECASE)

TOKEN_NAMES = {
    "input": (semconv.OI_TOKENS_PROMPT,),
    "output": (semconv.OI_TOKENS_COMPLETION,),
    "cached": (semconv.OI_TOKENS_CACHED, "llm.token_count.prompt_details.cache_input"),
    "reasoning": (semconv.OI_TOKENS_REASONING,),
}


class OpenInference:
    """Spans with ``openinference.span.kind``."""

    name = "openinference"

    def claims(self, span: Span) -> bool:
        return semconv.OI_KIND in span.attributes

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:  # noqa: ARG002 - it writes no logs
        attributes = span.attributes
        kind = KINDS.get(str(attributes[semconv.OI_KIND]).upper(), Kind.STRUCTURE)
        if kind is Kind.TOOL and is_handoff(span):
            kind = Kind.HANDOFF
        fields: dict[str, object] = {
            "dialect": self.name,
            "kind": kind,
            "session": text(attributes.get(semconv.SESSION_ID)),
            "user": text(attributes.get(semconv.USER_ID)),
            **error_of(span),
        }
        if kind is Kind.TOOL:
            fields |= _tool(span)
        elif kind is Kind.MODEL:
            fields |= read_model(attributes)
        elif kind is Kind.AGENT:
            fields |= _agent(span)
        elif kind is Kind.HANDOFF:
            fields |= _handoff(span)
        return SpanFacts(**fields)  # type: ignore[arg-type]  # one name for each field, checked by the tests


def is_handoff(span: Span) -> bool:
    """A tool span without a tool's name whose span name speaks of a hand-off."""
    return semconv.OI_TOOL_NAME not in span.attributes and bool(_HANDOFF_SPAN.fullmatch(span.name))


def _handoff(span: Span) -> dict[str, object]:
    found = _HANDOFF_SPAN.fullmatch(span.name)
    target = text(span.attributes.get(semconv.OUTPUT_VALUE)) or (found.group(1) if found else None)
    return {"name": target, "agent": text(span.attributes.get(semconv.INPUT_VALUE))}


def _tool(span: Span) -> dict[str, object]:
    attributes = span.attributes
    schema = _schema(attributes.get(semconv.OI_TOOL_PARAMETERS))
    arguments = arguments_of(attributes.get(semconv.INPUT_VALUE))
    if arguments.named is None and schema is not None:
        arguments = Arguments(named=named_by_schema(arguments.bare, schema), bare=arguments.bare)
    recorded = attributes.get(semconv.OUTPUT_VALUE, MISSING)
    outcome = outcome_of(recorded)
    fields: dict[str, object] = {
        "name": first_text(attributes.get(semconv.OI_TOOL_NAME), attributes.get(semconv.TOOL_NAME), span.name),
        "arguments": arguments.named,
        "bare_arguments": arguments.bare,
        "result": outcome.result,
        "call_id": first_text(
            attributes.get("tool.id"), attributes.get("tool_call.id"), attributes.get(semconv.TOOL_CALL_ID), outcome.call_id
        ),
        "schema": schema,
    }
    return fields | ({"failed": True, "error": outcome.error} if outcome.error is not None else {})


def _schema(value: object) -> Mapping[str, object] | None:
    """The JSON Schema of the arguments; older writers put the arguments there."""
    found = mapping(value)
    if not found or "properties" in found or found.get("type") == "object":
        return found or None
    described = all(isinstance(item, Mapping) and ({"type", "description"} & set(item)) for item in found.values())
    return {"type": "object", "properties": found} if described else None


def _agent(span: Span) -> dict[str, object]:
    attributes = span.attributes
    meta = mapping(attributes.get("metadata")) or {}
    name = first_text(
        attributes.get(semconv.OI_AGENT_NAME),
        attributes.get("graph.node.id"),
        meta.get("lc_agent_name"),
        span.name,
    )
    asked = attributes.get(semconv.INPUT_VALUE)
    said = attributes.get(semconv.OUTPUT_VALUE)
    return {"name": name, "request": spoken(asked, "user"), "answer": spoken(said, "assistant")}


def spoken(value: object, role: str) -> str | None:
    """The text a value says in that role: a conversation's last message, or a plain text."""
    said = mapping(value)
    if said is not None and role == "assistant" and (whole := first_text(said.get("raw"), said.get("final_output"))):
        return whole
    messages = messages_of(value)
    if messages is not None:
        last = messages[-1]
        return last_text(messages, role) if role == "user" else last.content if last.role == role and not last.tool_calls else None
    found = unpacked(value)
    if isinstance(found, Mapping):
        return first_text(found.get("output"), found.get("response")) if role == "assistant" else None
    return found if isinstance(found, str) and found else None


def read_model(attributes: Attributes) -> dict[str, object]:
    """The fields of a model call that OpenInference's attributes carry."""
    tools = _tools(attributes)
    raw = unpacked(attributes.get(semconv.OUTPUT_VALUE))
    asked = tuple(m for record in flattened(attributes, semconv.OI_INPUT_MESSAGES) for m in _message(record, tools))
    said = one_output([m for record in flattened(attributes, semconv.OI_OUTPUT_MESSAGES) for m in _message(record, tools)])
    if not _complete(said):
        said = _fuller(said, _raw_output(raw, attributes))
    return {
        "input": asked or messages_of(attributes.get(semconv.INPUT_VALUE)),
        "output": said,
        "finish": first_text(attributes.get(semconv.OI_FINISH_REASON), _finish_in(raw)),
        "model": first_text(
            attributes.get("llm.response.model_name"),
            attributes.get(semconv.OI_MODEL_NAME),
            attributes.get("llm.request.model_name"),
        ),
        "response_id": text(raw.get("id")) if isinstance(raw, Mapping) else None,
        "tokens": tokens_of(attributes, **TOKEN_NAMES),
        "tools": tools,
    }


def _tools(attributes: Attributes) -> tuple[Mapping[str, object], ...] | None:
    found = [schema for record in flattened(attributes, semconv.OI_TOOLS) if (schema := mapping(record.get("tool.json_schema")))]
    return tuple(found) or None


def _message(record: Mapping[str, object], tools: tuple[Mapping[str, object], ...] | None) -> list[Message]:
    """One flattened message, nested again."""
    parts = []
    for part in flattened(record, "message.contents"):
        call = _call(part) if "tool_call.function.name" in part else None
        parts.append(call or {key.removeprefix("message_content."): value for key, value in part.items()})
    calls = [call for item in flattened(record, "message.tool_calls") if (call := _call(item))]
    content = record.get("message.content")
    nested: dict[str, object] = {
        "role": first(record, "message.role") or "assistant",
        "content": content,
        "tool_calls": calls,
        "tool_call_id": record.get("message.tool_call_id"),
        "name": record.get("message.name"),
    }
    if parts and not (isinstance(content, str) and content):
        nested["content"] = parts
    if "message.function_call_name" in record:
        nested["function_call"] = {
            "name": record["message.function_call_name"],
            "arguments": record.get("message.function_call_arguments_json"),
        }
    return [_argumentless(message, tools) for message in message_of(nested)]


def _call(item: Mapping[str, object]) -> dict[str, object] | None:
    name = item.get("tool_call.function.name")
    if name is None:
        return None
    # A name in quotes is one that was printed instead of written.
    name = name.strip("'") if isinstance(name, str) else name
    return {
        "type": "tool_call",
        "id": item.get("tool_call.id"),
        "name": name,
        "arguments": item.get("tool_call.function.arguments"),
    }


def _argumentless(message: Message, tools: tuple[Mapping[str, object], ...] | None) -> Message:
    """Calls of tools without parameters carry no arguments attribute: they have ``{}``, not nothing."""
    if not tools or all(call.arguments is not None for call in message.tool_calls):
        return message
    from dataclasses import replace

    calls = tuple(
        replace(call, arguments={})
        if call.arguments is None and call.raw_arguments is None and _takes_nothing(call.name, tools)
        else call
        for call in message.tool_calls
    )
    return replace(message, tool_calls=calls)


def _takes_nothing(name: str, tools: tuple[Mapping[str, object], ...]) -> bool:
    for tool in tools:
        body = mapping(tool.get("function")) or tool
        if body.get("name") == name:
            schema = mapping(body.get("parameters", body.get("input_schema")))
            return schema is not None and not schema.get("properties")
    return False


def _complete(message: Message | None) -> bool:
    if message is None or (message.content is None and not message.tool_calls):
        return False
    return all(call.arguments is not None or call.raw_arguments is not None for call in message.tool_calls)


def _raw_output(raw: object, attributes: Attributes) -> Message | None:
    """What the model said by its raw response."""
    if isinstance(raw, Mapping):
        for path in (raw.get("choices"), raw.get("output"), _generations(raw)):
            if isinstance(path, list) and (found := one_output(messages_of(path))) is not None:
                return found
        return one_output(messages_of(raw))
    if isinstance(raw, list):
        calls = message_of({"role": "assistant", "tool_calls": raw})
        said = one_output(messages_of(raw)) or one_output(calls)
        return said if said is not None and (said.content or said.tool_calls) else None
    if isinstance(raw, str) and raw and attributes.get(semconv.OUTPUT_MIME_TYPE) in (None, semconv.TEXT_MIME):
        return Message(role="assistant", content=raw)
    return None


def _generations(raw: Mapping[str, object]) -> list[object] | None:
    found = listed(raw.get("generations"))
    if found and isinstance(found[0], list):
        found = found[0]
    return [item for item in found or [] if isinstance(item, Mapping)] or None


def _fuller(said: Message | None, raw: Message | None) -> Message | None:
    """The flattened message completed from the raw response."""
    if said is None or raw is None:
        return raw if said is None else said
    from dataclasses import replace

    calls: tuple[RequestedCall, ...] = said.tool_calls
    if len(raw.tool_calls) >= len(calls) and [c.name for c in raw.tool_calls[: len(calls)]] == [c.name for c in calls]:
        calls = raw.tool_calls
    return replace(said, content=said.content if said.content is not None else raw.content, tool_calls=calls)


def _finish_in(raw: object) -> str | None:
    if not isinstance(raw, Mapping):
        return None
    choices = listed(raw.get("choices")) or []
    chosen = choices[0].get("finish_reason") if choices and isinstance(choices[0], Mapping) else None
    return first_text(chosen, raw.get("stop_reason"))

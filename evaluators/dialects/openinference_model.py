"""A model call in OpenInference's attributes: flattened messages, token counts, raw input and output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import zip_longest

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.common import Attributes, first, flattened, tokens_of
from redfirst.evaluators.dialects.messages import message_of, messages_of, one_output
from redfirst.evaluators.dialects.values import (
    first_text,
    items_of,
    listed,
    mapping,
    repeated,
    text,
    unpacked,
)
from redfirst.evaluators.later import Later
from redfirst.evaluators.trajectory import Message, RequestedCall

_Tools = Later[tuple[Mapping[str, object], ...] | None]

TOKEN_NAMES = {
    "input": (semconv.OI_TOKENS_PROMPT,),
    "output": (semconv.OI_TOKENS_COMPLETION,),
    "cached": (semconv.OI_TOKENS_CACHED, "llm.token_count.prompt_details.cache_input"),
    "reasoning": (semconv.OI_TOKENS_REASONING,),
}


def read_model(attributes: Attributes) -> dict[str, object]:
    """The fields of a model call that OpenInference's attributes carry."""
    tools = Later(partial(_tools, attributes))
    raw = unpacked(attributes.get(semconv.OUTPUT_VALUE))
    said = one_output(
        [m for record in flattened(attributes, semconv.OI_OUTPUT_MESSAGES) for m in _message(record, tools)]
    )
    if not _complete(said):
        said = _fuller(said, _raw_output(raw, attributes))
    return {
        "input": Later(partial(_input, attributes, tools)),
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


def _input(attributes: Attributes, tools: _Tools) -> tuple[Message, ...] | None:
    asked = tuple(
        m for record in flattened(attributes, semconv.OI_INPUT_MESSAGES) for m in _message(record, tools)
    )
    return asked or messages_of(attributes.get(semconv.INPUT_VALUE))


def _tools(attributes: Attributes) -> tuple[Mapping[str, object], ...] | None:
    found = [
        schema
        for record in flattened(attributes, semconv.OI_TOOLS)
        if isinstance(schema := repeated(record.get("tool.json_schema")), dict) and schema
    ]
    return tuple(found) or None


def _message(record: Mapping[str, object], tools: _Tools) -> list[Message]:
    """One flattened message, nested again."""
    parts: list[dict[str, object]] = []
    for part in flattened(record, "message.contents"):
        called = any(key.startswith("tool_call.") for key in part)
        parts.append(
            _call(part)
            if called
            else {key.removeprefix("message_content."): value for key, value in part.items()}
        )
    calls = [_call(item) for item in flattened(record, "message.tool_calls")]
    second = [part for part in parts if part.get("type") == "tool_call"]
    if calls and second:
        # The same calls in two places, as Anthropic's blocks: one list, each completed from the other.
        nothing: dict[str, object] = {}
        calls = [
            {**call, **{key: value for key, value in other.items() if call.get(key) is None}}
            for call, other in zip_longest(calls, second, fillvalue=nothing)
        ]
        parts = [part for part in parts if part not in second]
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


def _call(item: Mapping[str, object]) -> dict[str, object]:
    name = item.get("tool_call.function.name")
    # A name in quotes is one that was printed instead of written.
    name = name.strip("'") if isinstance(name, str) else name
    return {
        "type": "tool_call",
        "id": item.get("tool_call.id"),
        "name": name,
        "arguments": item.get("tool_call.function.arguments"),
    }


def _argumentless(message: Message, tools: _Tools) -> Message:
    """Calls of tools without parameters carry no arguments attribute: they have ``{}``, not nothing."""
    if all(call.arguments is not None for call in message.tool_calls) or not (known := tools.get()):
        return message
    calls = tuple(
        replace(call, arguments={})
        if call.arguments is None and call.raw_arguments is None and _takes_nothing(call.name, known)
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
    return all(
        call.name and (call.arguments is not None or call.raw_arguments) for call in message.tool_calls
    )


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
    if isinstance(raw, str) and raw and attributes.get(semconv.OUTPUT_MIME_TYPE) == semconv.TEXT_MIME:
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
    calls: tuple[RequestedCall, ...] = said.tool_calls
    if len(raw.tool_calls) >= len(calls):
        calls = raw.tool_calls
    return replace(said, content=said.content if said.content is not None else raw.content, tool_calls=calls)


def _finish_in(raw: object) -> str | None:
    if not isinstance(raw, Mapping):
        return None
    choices = items_of(raw.get("choices"))
    chosen = choices[0].get("finish_reason") if choices and isinstance(choices[0], Mapping) else None
    return first_text(chosen, raw.get("stop_reason"))

"""Model requests and replies, in the shapes vendors give them, as attributes of both vocabularies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators import semconv
from redfirst.instrumentation.capture import to_json

FLATTENED_LIMIT = 64
"""Most attributes that flattened input messages may take of a span's default 128.

A longer conversation is written as one JSON attribute only: the SDK would evict other attributes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedCall:
    """A tool call in a message; ``arguments`` is the JSON text the model wrote."""

    name: str
    arguments: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of a conversation."""

    role: str
    text: str | None = None
    calls: tuple[WantedCall, ...] = ()
    answers: str | None = None
    """Id of the tool call that this message answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model answered, as far as its response says."""

    turn: Turn
    finish_reason: str | None = None
    model: str | None = None
    response_id: str | None = None
    usage: Mapping[str, int] | None = None
    """Attribute name → count, from ``semconv``."""


def read_reply(response: Any) -> Reply | None:
    """The reply in a response given as JSON data; ``None`` when the shape is not known.

    Shapes: OpenAI chat completions, Anthropic messages, a message on its own, a string.
    """
    if isinstance(response, str):
        return Reply(turn=Turn(role="assistant", text=response))
    if not isinstance(response, Mapping):
        return None
    choices = response.get("choices")
    if isinstance(choices, Sequence) and choices and isinstance(choices[0], Mapping):
        message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    elif isinstance(response.get("message"), Mapping):
        message, finish = response["message"], response.get("finish_reason") or response.get("done_reason")
    elif "content" in response or "tool_calls" in response:
        message, finish = response, response.get("stop_reason") or response.get("finish_reason")
    else:
        return None
    if not isinstance(message, Mapping):
        return None
    return Reply(
        turn=read_message(message, role="assistant"),
        finish_reason=finish if isinstance(finish, str) else None,
        model=response.get("model") if isinstance(response.get("model"), str) else None,
        response_id=response.get("id") if isinstance(response.get("id"), str) else None,
        usage=_usage(response.get("usage")),
    )


def read_messages(value: Any) -> tuple[Turn, ...] | None:
    """Messages given as JSON data; ``None`` when it is not a list of messages or a string."""
    if isinstance(value, str):
        return (Turn(role="user", text=value),)
    if not isinstance(value, Sequence) or not all(isinstance(item, Mapping) for item in value):
        return None
    return tuple(read_message(item, role="user") for item in value)


def read_message(message: Mapping[str, Any], *, role: str) -> Turn:
    """One message; ``role`` is what it is when it does not say."""
    texts: list[str] = []
    calls: list[WantedCall] = []
    answers = message.get("tool_call_id")
    content = message.get("content")
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, Sequence):
        for block in content:
            if not isinstance(block, Mapping):
                continue
            if isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif block.get("type") == "tool_use":
                calls.append(_wanted(block.get("name"), block.get("input"), block.get("id")))
            elif block.get("type") == "tool_result":
                answers = block.get("tool_use_id")
                inner = block.get("content")
                texts.append(inner if isinstance(inner, str) else to_json(inner))
    for item in message.get("tool_calls") or ():
        if isinstance(item, Mapping):
            inner_call = item.get("function")
            function: Mapping[str, Any] = inner_call if isinstance(inner_call, Mapping) else item
            arguments = function.get("arguments", function.get("args"))
            calls.append(_wanted(function.get("name"), arguments, item.get("id")))
    return Turn(
        role=str(message.get("role") or role),
        text="\n".join(texts) if texts else None,
        calls=tuple(calls),
        answers=str(answers) if answers is not None else None,
    )


def _wanted(name: object, arguments: object, call_id: object) -> WantedCall:
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    return WantedCall(name=str(name), arguments=text, call_id=None if call_id is None else str(call_id))


def _usage(usage: object) -> dict[str, int] | None:
    if not isinstance(usage, Mapping):
        return None
    details_in = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    details_out = usage.get("completion_tokens_details") or usage.get("output_tokens_details") or {}
    cached = details_in.get("cached_tokens")
    read = usage.get("prompt_tokens", usage.get("input_tokens"))
    if "cache_read_input_tokens" in usage:  # Anthropic counts cached tokens beside input_tokens, not in it
        cached = usage["cache_read_input_tokens"] or 0
        read = (read or 0) + cached + (usage.get("cache_creation_input_tokens") or 0)
    found = {
        semconv.INPUT_TOKENS: read,
        semconv.OUTPUT_TOKENS: usage.get("completion_tokens", usage.get("output_tokens")),
        semconv.CACHED_TOKENS: cached,
        semconv.REASONING_TOKENS: details_out.get("reasoning_tokens"),
    }
    return {key: value for key, value in found.items() if isinstance(value, int)}


def genai_messages(turns: Sequence[Turn], finish_reason: str | None = None) -> str:
    """The messages as the JSON of ``gen_ai.input.messages`` and ``gen_ai.output.messages``."""
    out: list[dict[str, object]] = []
    for turn in turns:
        parts: list[dict[str, object]] = []
        if turn.answers is not None:
            parts.append({"type": "tool_call_response", "id": turn.answers, "response": turn.text})
        elif turn.text is not None:
            parts.append({"type": "text", "content": turn.text})
        parts += [
            {"type": "tool_call", "id": call.call_id, "name": call.name, "arguments": _parsed(call.arguments)}
            for call in turn.calls
        ]
        message: dict[str, object] = {"role": turn.role, "parts": parts}
        if finish_reason is not None:
            message["finish_reason"] = finish_reason
        out.append(message)
    return to_json(out)


def openinference_messages(prefix: str, turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
    """The messages as flattened OpenInference attributes under ``prefix``."""
    for index, turn in enumerate(turns):
        at = f"{prefix}.{index}.message"
        yield f"{at}.role", turn.role
        if turn.text is not None:
            yield f"{at}.content", turn.text
        if turn.answers is not None:
            yield f"{at}.tool_call_id", turn.answers
        for place, call in enumerate(turn.calls):
            here = f"{at}.tool_calls.{place}.tool_call"
            if call.call_id is not None:
                yield f"{here}.id", call.call_id
            yield f"{here}.function.name", call.name
            yield f"{here}.function.arguments", call.arguments


def usage_attributes(usage: Mapping[str, int]) -> dict[str, int]:
    """Token counts under the names of both vocabularies."""
    twin = {
        semconv.INPUT_TOKENS: semconv.OI_TOKENS_PROMPT,
        semconv.OUTPUT_TOKENS: semconv.OI_TOKENS_COMPLETION,
        semconv.CACHED_TOKENS: semconv.OI_TOKENS_CACHED,
        semconv.REASONING_TOKENS: semconv.OI_TOKENS_REASONING,
    }
    out = dict(usage) | {twin[key]: value for key, value in usage.items()}
    if semconv.INPUT_TOKENS in usage and semconv.OUTPUT_TOKENS in usage:
        out[semconv.OI_TOKENS_TOTAL] = usage[semconv.INPUT_TOKENS] + usage[semconv.OUTPUT_TOKENS]
    return out


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments  # the model's own broken JSON, as it wrote it

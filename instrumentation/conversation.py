"""Model requests and replies, in the shapes vendors give them, as attributes of both vocabularies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators import semconv
from redfirst.instrumentation.capture import to_json

FLATTENED_LIMITS = {semconv.OI_INPUT_MESSAGES: 64, semconv.OI_OUTPUT_MESSAGES: 32}
"""Most attributes that flattened messages may take of a span's default 128.

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
    choices = _listed(response.get("choices"))
    if choices and isinstance(choices[0], Mapping):
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
        turn=_turn(message, role="assistant"),
        finish_reason=finish if isinstance(finish, str) else None,
        model=response.get("model") if isinstance(response.get("model"), str) else None,
        response_id=response.get("id") if isinstance(response.get("id"), str) else None,
        usage=_usage(response.get("usage")),
    )


def read_messages(value: Any) -> tuple[Turn, ...] | None:
    """Messages given as JSON data; ``None`` when it is not a list of messages or a string."""
    if isinstance(value, str):
        return (Turn(role="user", text=value),)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return None
    return tuple(turn for item in value for turn in _turns(item))


def _turns(message: Mapping[str, Any]) -> Iterator[Turn]:
    """A request's message; each tool result in it is a turn of its own, because each answers its own call."""
    content = _listed(message.get("content"))
    answers = [
        block for block in content if isinstance(block, Mapping) and block.get("type") == "tool_result"
    ]
    for block in answers:
        inner = block.get("content")
        yield Turn(
            role="tool",
            text=inner if isinstance(inner, str) or inner is None else to_json(inner),
            answers=_name(block.get("tool_use_id")),
        )
    rest = [block for block in content if not any(block is answer for answer in answers)]
    if not answers:
        yield _turn(message, role="user")
    elif rest:
        yield _turn({**message, "content": rest}, role="user")


def _turn(message: Mapping[str, Any], *, role: str) -> Turn:
    """One message; ``role`` is what it is when it does not say."""
    texts: list[str] = []
    calls: list[WantedCall] = []
    content = message.get("content")
    if isinstance(content, str):
        texts.append(content)
    for block in _listed(content):
        if not isinstance(block, Mapping):
            continue
        if isinstance(block.get("text"), str):
            texts.append(block["text"])
        elif block.get("type") == "tool_use":
            calls.append(_wanted(block.get("name"), block.get("input"), block.get("id")))
    for item in _listed(message.get("tool_calls")):
        if isinstance(item, Mapping):
            function = _mapping(item.get("function")) or item
            arguments = function.get("arguments", function.get("args"))
            calls.append(_wanted(function.get("name"), arguments, item.get("id")))
    return Turn(
        role=_name(message.get("role")) or role,
        text="\n".join(texts) if texts else None,
        calls=tuple(calls),
        answers=_name(message.get("tool_call_id")),
    )


def _wanted(name: object, arguments: object, call_id: object) -> WantedCall:
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    return WantedCall(name=_name(name) or "", arguments=text, call_id=_name(call_id))


def _usage(value: object) -> dict[str, int] | None:
    usage = _mapping(value)
    details_in = _mapping(usage.get("prompt_tokens_details")) or _mapping(usage.get("input_tokens_details"))
    details_out = _mapping(usage.get("completion_tokens_details")) or _mapping(
        usage.get("output_tokens_details")
    )
    cached = _number(details_in.get("cached_tokens"))
    read = _number(usage.get("prompt_tokens", usage.get("input_tokens")))
    if "cache_read_input_tokens" in usage:  # Anthropic counts cached tokens beside input_tokens, not in it
        cached = _number(usage["cache_read_input_tokens"]) or 0
        if read is not None:
            read += cached + (_number(usage.get("cache_creation_input_tokens")) or 0)
    found = {
        semconv.INPUT_TOKENS: read,
        semconv.OUTPUT_TOKENS: _number(usage.get("completion_tokens", usage.get("output_tokens"))),
        semconv.CACHED_TOKENS: cached,
        semconv.REASONING_TOKENS: _number(details_out.get("reasoning_tokens")),
    }
    return {key: value for key, value in found.items() if value is not None} or None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int | None:
    """A count that an OTLP attribute can hold."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


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


def openinference_messages(prefix: str, turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """The messages as flattened OpenInference attributes under ``prefix``; empty beyond its limit."""
    found: list[tuple[str, str]] = []
    for pair in _flattened(prefix, turns):
        if len(found) == FLATTENED_LIMITS[prefix]:
            return []
        found.append(pair)
    return found


def _flattened(prefix: str, turns: Sequence[Turn]) -> Iterator[tuple[str, str]]:
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
    except (ValueError, RecursionError):
        return arguments  # the model's own broken JSON, as it wrote it

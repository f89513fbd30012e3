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

    Shapes: OpenAI chat completions (LiteLLM's, too) and responses, Anthropic messages, Google GenAI, Bedrock
    Converse, a message on its own, a string.
    """
    if isinstance(response, str):
        return Reply(turn=Turn(role="assistant", text=response))
    if not isinstance(response, Mapping):
        return None
    found = _message_in(response)
    if found is None:
        return None
    message, finish = found
    return Reply(
        turn=_turn(message, role="assistant"),
        finish_reason=finish if isinstance(finish, str) else None,
        model=_first(response, str, "model", "model_version", "modelVersion"),
        response_id=_first(response, str, "id", "response_id", "responseId"),
        usage=_usage(_first(response, Mapping, "usage", "usage_metadata", "usageMetadata")),
    )


def _message_in(response: Mapping[str, Any]) -> tuple[Mapping[str, Any], object] | None:
    """The message of a response, and why it ended."""
    choices, candidates = listed(response.get("choices")), listed(response.get("candidates"))
    output = response.get("output")
    message: object
    if choices and isinstance(choices[0], Mapping):
        message, finish = choices[0].get("message"), choices[0].get("finish_reason")
    elif candidates and isinstance(candidates[0], Mapping):
        first = candidates[0]
        message, finish = first.get("content"), first.get("finish_reason", first.get("finishReason"))
    elif isinstance(output, list):
        message = {"role": "assistant", "content": output}
        why = mapped(response.get("incomplete_details")).get("reason")
        finish = why if isinstance(why, str) else response.get("status")
    elif isinstance(output, Mapping) and isinstance(output.get("message"), Mapping):
        message, finish = output["message"], response.get("stopReason")
    elif isinstance(response.get("message"), Mapping):
        message, finish = response["message"], response.get("finish_reason") or response.get("done_reason")
    elif "content" in response or "tool_calls" in response:
        message, finish = response, response.get("stop_reason") or response.get("finish_reason")
    else:
        return None
    return (message, finish) if isinstance(message, Mapping) else None


def read_messages(value: Any) -> tuple[Turn, ...] | None:
    """Messages given as JSON data; ``None`` when it is not a list of messages or a string."""
    if isinstance(value, str):
        return (Turn(role="user", text=value),)
    if isinstance(value, Mapping) and isinstance(value.get("parts"), list):
        value = [value]  # Google GenAI takes a content on its own
    if not isinstance(value, list) or not all(isinstance(item, Mapping | str) for item in value):
        return None
    return tuple(turn for item in value for turn in _turns(item))


def _turns(message: Mapping[str, Any] | str) -> Iterator[Turn]:
    """A request's message; each tool result in it is a turn of its own, because each answers its own call."""
    if isinstance(message, str):
        yield Turn(role="user", text=message)
        return
    if message.get("type") == "function_call_output":
        yield _answer(message)
        return
    if message.get("type") in ("function_call", "reasoning"):
        yield _turn({"role": "assistant", "content": [message]}, role="assistant")
        return
    content = _blocks(message)
    answers = [block for block in content if isinstance(block, Mapping) and _is_answer(block)]
    for block in answers:
        yield _answer(block)
    rest = [block for block in content if not any(block is answer for answer in answers)]
    if not answers:
        yield _turn(message, role="user")
    elif rest:
        yield _turn({**message, "content": rest, "parts": None}, role="user")


def _blocks(message: Mapping[str, Any]) -> Sequence[Any]:
    return listed(message.get("content")) or listed(message.get("parts"))


_ANSWERS = ("toolResult", "function_response", "functionResponse")


def _is_answer(block: Mapping[str, Any]) -> bool:
    return block.get("type") in ("tool_result", "function_call_output") or any(
        isinstance(block.get(key), Mapping) for key in _ANSWERS
    )


def _answer(block: Mapping[str, Any]) -> Turn:
    """The answer to a tool call: of Anthropic, OpenAI responses, Bedrock or Google GenAI."""
    inner = next((block[key] for key in _ANSWERS if isinstance(block.get(key), Mapping)), block)
    said = _first(inner, object, "content", "output", "response")
    call_id = _first(inner, object, "tool_use_id", "call_id", "toolUseId", "id", "name")
    return Turn(
        role="tool",
        text=said if isinstance(said, str) or said is None else to_json(said),
        answers=_name(call_id),
    )


def _turn(message: Mapping[str, Any], *, role: str) -> Turn:
    """One message; ``role`` is what it is when it does not say."""
    texts: list[str] = []
    calls: list[WantedCall] = []
    content = message.get("content")
    if isinstance(content, str):
        texts.append(content)
    for block in _blocks(message):
        if isinstance(block, str):
            texts.append(block)
        elif isinstance(block, Mapping):
            _read_block(block, texts, calls)
    for item in listed(message.get("tool_calls")):
        if isinstance(item, Mapping):
            function = mapped(item.get("function")) or item
            arguments = function.get("arguments", function.get("args"))
            calls.append(_wanted(function.get("name"), arguments, item.get("id")))
    said = _name(message.get("role")) or role
    return Turn(
        role="assistant" if said == "model" else said,
        text="\n".join(texts) if texts else None,
        calls=tuple(calls),
        answers=_name(message.get("tool_call_id")),
    )


def _read_block(block: Mapping[str, Any], texts: list[str], calls: list[WantedCall]) -> None:
    """One part of a message: a text, or the wish for a tool call as one of the vendors writes it."""
    called = _first(block, Mapping, "function_call", "functionCall", "toolUse")
    if block.get("type") == "message":  # an item of OpenAI responses
        for part in listed(block.get("content")):
            if isinstance(part, Mapping):
                _read_block(part, texts, calls)
    elif block.get("type") == "tool_use":
        calls.append(_wanted(block.get("name"), block.get("input"), block.get("id")))
    elif block.get("type") == "function_call":
        calls.append(
            _wanted(block.get("name"), block.get("arguments"), block.get("call_id") or block.get("id"))
        )
    elif called is not None:
        given = _first(called, object, "args", "input")
        calls.append(_wanted(called.get("name"), given, _first(called, str, "id", "toolUseId")))
    elif isinstance(block.get("text"), str) and block.get("thought") is not True:
        texts.append(block["text"])
    elif isinstance(block.get("refusal"), str):
        texts.append(block["refusal"])


def _first(found: Mapping[str, Any], kind: Any, *keys: str) -> Any:
    """The value of the first of the keys that has one of this type."""
    return next(
        (found[key] for key in keys if found.get(key) is not None and isinstance(found[key], kind)), None
    )


def _wanted(name: object, arguments: object, call_id: object) -> WantedCall:
    text = arguments if isinstance(arguments, str) else to_json({} if arguments is None else arguments)
    return WantedCall(name=_name(name) or "", arguments=text, call_id=_name(call_id))


def _usage(value: object) -> dict[str, int] | None:
    usage = mapped(value)
    details_in = _first(usage, Mapping, "prompt_tokens_details", "input_tokens_details") or {}
    details_out = _first(usage, Mapping, "completion_tokens_details", "output_tokens_details") or {}
    cached = _count(details_in, "cached_tokens")
    read = _count(usage, "prompt_tokens")
    if read is None:  # Anthropic and Bedrock count cached tokens beside the input, not in it
        read = _count(usage, "input_tokens", "inputTokens")
        if not {"cache_read_input_tokens", "cacheReadInputTokens"}.isdisjoint(usage):
            cached = _count(usage, "cache_read_input_tokens", "cacheReadInputTokens") or 0
            if read is not None:
                read += cached
        if read is not None:
            read += _count(usage, "cache_creation_input_tokens", "cacheWriteInputTokens") or 0
    written = _count(usage, "completion_tokens", "output_tokens", "outputTokens")
    reasoning = _count(details_out, "reasoning_tokens")
    google = _count(usage, "prompt_token_count", "promptTokenCount")
    if (
        google is not None
    ):  # Google counts thoughts beside the answer, and what tools put into the prompt beside it
        read = google + (_count(usage, "tool_use_prompt_token_count", "toolUsePromptTokenCount") or 0)
        cached = _count(usage, "cached_content_token_count", "cachedContentTokenCount")
        reasoning = _count(usage, "thoughts_token_count", "thoughtsTokenCount")
        answered = _count(usage, "candidates_token_count", "candidatesTokenCount")
        written = None if answered is None and reasoning is None else (answered or 0) + (reasoning or 0)
    found = {
        semconv.INPUT_TOKENS: read,
        semconv.OUTPUT_TOKENS: written,
        semconv.CACHED_TOKENS: cached,
        semconv.REASONING_TOKENS: reasoning,
    }
    return {key: value for key, value in found.items() if value is not None} or None


def mapped(value: object) -> Mapping[str, Any]:
    """The value where it is a mapping; an empty one where it is none."""
    return value if isinstance(value, Mapping) else {}


def listed(value: object) -> Sequence[Any]:
    """The value where it is a list; an empty one where it is none."""
    return value if isinstance(value, list) else ()


def _name(value: object) -> str | None:
    return None if value is None else str(value)


def _count(found: Mapping[str, Any], *keys: str) -> int | None:
    """The count under the first of the keys, if an OTLP attribute can hold it."""
    value = next((found[key] for key in keys if found.get(key) is not None), None)
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

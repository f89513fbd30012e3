"""The pieces of a streamed reply put together to what the vendor's API gives when nothing is streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from redfirst.instrumentation.conversation import listed, mapped

Piece = Mapping[str, Any]


def whole(response: Any) -> Any:
    """A list of a stream's pieces as one reply, given and returned as JSON data; anything else as it is.

    Pieces: OpenAI chat completions (and LiteLLM's) and responses, Anthropic messages, Google GenAI, Bedrock Converse,
    texts. A stream that was left early gives what it had said until then.
    """
    if not isinstance(response, list) or not response:
        return response
    if all(isinstance(piece, str) for piece in response):
        return "".join(response)
    pieces = [piece for piece in response if isinstance(piece, Mapping)]
    for known, put_together in _VENDORS:
        if any(map(known, pieces)):
            return put_together(pieces)
    return response


def _is_chat(piece: Piece) -> bool:
    choices = listed(piece.get("choices"))
    return bool(choices) and isinstance(mapped(choices[0]).get("delta"), Mapping)


def _chat(pieces: Sequence[Piece]) -> dict[str, Any]:
    texts: list[str] = []
    calls: dict[Any, dict[str, Any]] = {}
    made: dict[str, Any] = {"object": "chat.completion", "finish_reason": None}
    role = "assistant"
    for piece in pieces:
        _keep(made, piece, "id", "model", "usage")
        choice = mapped(next(iter(listed(piece.get("choices"))), None))
        delta = mapped(choice.get("delta"))
        role = delta.get("role") or role
        _keep(made, choice, "finish_reason")
        if isinstance(delta.get("content"), str):
            texts.append(delta["content"])
        for place, part in enumerate(listed(delta.get("tool_calls"))):
            _add_call(calls, part.get("index", place), part)
    message: dict[str, Any] = {"role": role, "content": "".join(texts) if texts else None}
    if calls:
        message["tool_calls"] = list(calls.values())
    finish = made.pop("finish_reason")
    return {**made, "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _add_call(calls: dict[Any, dict[str, Any]], index: Any, part: Piece) -> None:
    call = calls.setdefault(
        index, {"id": None, "type": "function", "function": {"name": None, "arguments": ""}}
    )
    function = mapped(part.get("function"))
    call["id"] = part.get("id") or call["id"]
    call["function"]["name"] = function.get("name") or call["function"]["name"]
    call["function"]["arguments"] += function.get("arguments") or ""


def _is_responses(piece: Piece) -> bool:
    return str(piece.get("type")).startswith("response.")


def _responses(pieces: Sequence[Piece]) -> dict[str, Any]:
    """The response of the last event that carries one that ended; otherwise the items so far."""
    made: dict[str, Any] = {"object": "response", "status": "incomplete"}
    items: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        response = piece.get("response")
        if isinstance(response, Mapping):
            if piece.get("type") in ("response.completed", "response.incomplete", "response.failed"):
                return dict(response)
            _keep(made, response, "id", "model")
        place = piece.get("output_index")
        if piece.get("type") in ("response.output_item.added", "response.output_item.done"):
            items[place] = dict(mapped(piece.get("item")))
        elif piece.get("type") == "response.output_text.delta":
            item = items.setdefault(place, {"type": "message", "role": "assistant"})
            said = next((part["text"] for part in listed(item.get("content"))), "")
            item["content"] = [{"type": "output_text", "text": said + str(piece.get("delta") or "")}]
        elif piece.get("type") == "response.function_call_arguments.delta":
            item = items.setdefault(place, {"type": "function_call"})
            item["arguments"] = str(item.get("arguments") or "") + str(piece.get("delta") or "")
    return {**made, "output": list(items.values())}


_ANTHROPIC = frozenset({"message_start", "content_block_start", "content_block_delta", "message_delta"})


def _is_anthropic(piece: Piece) -> bool:
    return piece.get("type") in _ANTHROPIC


def _anthropic(pieces: Sequence[Piece]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "message", "role": "assistant", "stop_reason": None}
    usage: dict[str, Any] = {}
    blocks: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        kind, place = piece.get("type"), piece.get("index")
        if kind == "message_start":
            message = mapped(piece.get("message"))
            _keep(made, message, "id", "model", "role", "stop_reason")
            usage |= {key: value for key, value in mapped(message.get("usage")).items() if value is not None}
        elif kind == "content_block_start":
            blocks[place] = dict(mapped(piece.get("content_block")))
        elif kind == "content_block_delta":
            _add_block(blocks.setdefault(place, {}), mapped(piece.get("delta")))
        elif kind == "message_delta":
            _keep(made, mapped(piece.get("delta")), "stop_reason")
            usage |= {key: value for key, value in mapped(piece.get("usage")).items() if value is not None}
    for block in blocks.values():
        written = block.pop("partial_json", None)
        if written is not None:
            block["input"] = _parsed(written)
    return {**made, "content": list(blocks.values()), "usage": usage}


def _add_block(block: dict[str, Any], delta: Piece) -> None:
    for key, kind in (("text", "text"), ("thinking", "thinking"), ("partial_json", "tool_use")):
        if isinstance(delta.get(key), str):
            block.setdefault("type", kind)
            block[key] = str(block.get(key) or "") + delta[key]


def _is_google(piece: Piece) -> bool:
    return isinstance(piece.get("candidates"), list)


def _google(pieces: Sequence[Piece]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    candidate: dict[str, Any] = {}
    for piece in pieces:
        _keep(made, piece, "model_version", "modelVersion", "response_id", "responseId")
        _keep(made, piece, "usage_metadata", "usageMetadata")
        found = mapped(next(iter(listed(piece.get("candidates"))), None))
        _keep(candidate, found, "finish_reason", "finishReason")
        for part in listed(mapped(found.get("content")).get("parts")):
            _add_part(parts, part)
    return {**made, "candidates": [{**candidate, "content": {"role": "model", "parts": parts}}]}


def _add_part(parts: list[dict[str, Any]], part: Piece) -> None:
    """Texts that follow each other are one text; thoughts are kept apart."""
    last = parts[-1] if parts else {}
    if (
        isinstance(part.get("text"), str)
        and "text" in last
        and bool(last.get("thought")) == bool(part.get("thought"))
    ):
        last["text"] += part["text"]
    else:
        parts.append({key: value for key, value in part.items() if value is not None})


_BEDROCK = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "messageStop"})


def _is_bedrock(piece: Piece) -> bool:
    return not _BEDROCK.isdisjoint(piece)


def _bedrock(pieces: Sequence[Piece]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    role = "assistant"
    blocks: dict[Any, dict[str, Any]] = {}
    for piece in pieces:
        role = mapped(piece.get("messageStart")).get("role") or role
        begun, delta = mapped(piece.get("contentBlockStart")), mapped(piece.get("contentBlockDelta"))
        call = mapped(begun.get("start")).get("toolUse")
        if isinstance(call, Mapping):
            blocks[begun.get("contentBlockIndex")] = {"toolUse": {**call, "input": ""}}
        change = mapped(delta.get("delta"))
        place = delta.get("contentBlockIndex")
        if isinstance(change.get("text"), str):
            block = blocks.setdefault(place, {"text": ""})
            block["text"] += change["text"]
        elif isinstance(change.get("toolUse"), Mapping):
            block = blocks.setdefault(place, {"toolUse": {"input": ""}})
            block["toolUse"]["input"] += change["toolUse"].get("input") or ""
        _keep(made, mapped(piece.get("messageStop")), "stopReason")
        _keep(made, mapped(piece.get("metadata")), "usage")
    for block in blocks.values():
        if "toolUse" in block:
            block["toolUse"]["input"] = _parsed(block["toolUse"]["input"])
    return {**made, "output": {"message": {"role": role, "content": list(blocks.values())}}}


_VENDORS: tuple[tuple[Callable[[Piece], bool], Callable[[Sequence[Piece]], dict[str, Any]]], ...] = (
    (_is_chat, _chat),
    (_is_responses, _responses),
    (_is_anthropic, _anthropic),
    (_is_google, _google),
    (_is_bedrock, _bedrock),
)


def _keep(made: dict[str, Any], piece: Piece, *keys: str) -> None:
    """Take what the piece says; a later piece says it anew."""
    made |= {key: piece[key] for key in keys if piece.get(key) is not None}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments  # cut off in the middle, or the model's own broken JSON

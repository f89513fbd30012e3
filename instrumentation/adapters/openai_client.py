"""The OpenAI client, which the OpenAI Agents SDK and pydantic-ai's OpenAI models call: chat completions and responses.

A request for a stream is answered by one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from redfirst.evaluators import semconv
from redfirst.instrumentation import door
from redfirst.instrumentation.adapters import hold
from redfirst.instrumentation.adapters.openai_streams import (
    as_raw,
    parts_of_completion,
    parts_of_response,
    stream_of,
)
from redfirst.instrumentation.adapters.recorded import offer_model
from redfirst.instrumentation.capture import to_json
from redfirst.instrumentation.conversation import Reply, read_reply

_UNSET = ("NotGiven", "Omit")
_OF_TRANSPORT = ("extra_headers", "extra_query", "extra_body", "timeout", "stream", "stream_options")


def completions(module: ModuleType) -> None:
    """Have chat completions answered at the door."""
    _adapt(module.Completions, module.AsyncCompletions, _completion, parts_of_completion)


def responses(module: ModuleType) -> None:
    """Have responses answered at the door."""
    _adapt(module.Responses, module.AsyncResponses, _response, parts_of_response)


Build = Callable[[Any, Reply, Mapping[str, Any]], Any]
Parts = Callable[[Any, Mapping[str, Any]], list[Any]]


def _adapt(plain: Any, asynchronous: Any, build: Build, parts: Parts) -> None:
    (create,) = hold(plain, "create")
    (acreate,) = hold(asynchronous, "create")

    @functools.wraps(create)
    def created(self: Any, *args: Any, **more: Any) -> Any:
        answer = _ask(more)
        if answer is door.Door.PASS_THROUGH:
            return create(self, *args, **more)
        whole = _built(door.given(answer), more, build)
        if more.get("stream") is True:
            whole = stream_of(parts(whole, more), asynchronous=False)
        return as_raw(whole, more.get("extra_headers"), asynchronous=False)

    @functools.wraps(acreate)
    async def acreated(self: Any, *args: Any, **more: Any) -> Any:
        answer = _ask(more)
        if answer is door.Door.PASS_THROUGH:
            return await acreate(self, *args, **more)
        whole = _built(await door.arrived(answer), more, build)
        if more.get("stream") is True:
            whole = stream_of(parts(whole, more), asynchronous=True)
        return as_raw(whole, more.get("extra_headers"), asynchronous=True)

    plain.create = created
    asynchronous.create = acreated


def _ask(more: Mapping[str, Any]) -> door.Answer:
    if door.interceptor() is None:
        return door.Door.PASS_THROUGH
    return offer_model("openai", _set(more))


def _set(more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in more.items()
        if key not in _OF_TRANSPORT and value is not None and type(value).__name__ not in _UNSET
    }


def _built(recorded: Any, more: Mapping[str, Any], build: Build) -> Any:
    reply = read_reply(recorded)
    if reply is None:
        raise TypeError(f"no recorded reply of a chat model: {to_json(recorded)[:200]}")
    return build(recorded, reply, more)


def _completion(recorded: Any, reply: Reply, more: Mapping[str, Any]) -> Any:
    from openai.types.chat import ChatCompletion

    message: dict[str, Any] = {"role": "assistant", "content": reply.turn.text}
    if reply.turn.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in reply.turn.calls
        ]
    usage = recorded.get("usage") if isinstance(recorded, Mapping) else None
    read, written = _counts(reply)
    finish = reply.finish_reason
    if finish not in ("stop", "length", "tool_calls", "content_filter", "function_call"):
        finish = "tool_calls" if reply.turn.calls else "stop"
    return ChatCompletion.model_validate(
        {
            "id": reply.response_id or "recorded",
            "object": "chat.completion",
            "created": 0,
            "model": reply.model or str(more.get("model")),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {
                **(usage or {}),
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            },
        }
    )


def _response(_recorded: Any, reply: Reply, more: Mapping[str, Any]) -> Any:
    from openai.types.responses import Response

    said: dict[str, Any] = {"type": "output_text", "text": reply.turn.text, "annotations": []}
    message = {
        "type": "message",
        "id": "msg_recorded",
        "role": "assistant",
        "status": "completed",
        "content": [said],
    }
    calls = [
        {
            "type": "function_call",
            "id": f"fc_recorded_{place}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for place, call in enumerate(reply.turn.calls)
    ]
    read, written = _counts(reply)
    counts = reply.usage or {}
    return Response.model_validate(
        {
            "id": reply.response_id or "resp_recorded",
            "object": "response",
            "created_at": 0,
            "status": "completed",
            "model": reply.model or str(more.get("model")),
            "output": [*([message] if reply.turn.text is not None else ()), *calls],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": read,
                "input_tokens_details": {
                    "cached_tokens": counts.get(semconv.CACHED_TOKENS, 0),
                    "cache_write_tokens": 0,
                },
                "output_tokens": written,
                "output_tokens_details": {"reasoning_tokens": counts.get(semconv.REASONING_TOKENS, 0)},
                "total_tokens": read + written,
            },
        }
    )


def _counts(reply: Reply) -> tuple[int, int]:
    counts = reply.usage or {}
    return counts.get(semconv.INPUT_TOKENS, 0), counts.get(semconv.OUTPUT_TOKENS, 0)

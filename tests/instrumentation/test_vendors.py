"""Requests and replies in the vendors' own types: what they say is on the span, streamed or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from redfirst.instrumentation import model

# Every reply below says the same: a text, one tool call, 100 tokens in of which 40 are cached, 30 out of which 10 reasoning.
CALL = {"city": "Oslo"}
TEXT = "Let me see."


def openai_chat() -> Any:
    from openai.types.chat import ChatCompletion

    return ChatCompletion.model_validate(
        {
            "id": "r-1",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "tool_calls",
                    "logprobs": None,
                    "message": {
                        "role": "assistant",
                        "content": TEXT,
                        "refusal": None,
                        "tool_calls": [
                            {
                                "id": "c-1",
                                "type": "function",
                                "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
                            }
                        ],
                    },
                }
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 130,
                "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 10},
            },
        }
    )


def openai_chat_chunks() -> Iterator[Any]:
    from openai.types.chat import ChatCompletionChunk

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> Any:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return ChatCompletionChunk.model_validate(
            {
                "id": "r-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m-1",
                "choices": [choice],
                **more,
            }
        )

    yield chunk({"role": "assistant", "content": "Let me"})
    yield chunk({"content": " see."})
    call = {"index": 0, "id": "c-1", "type": "function", "function": {"name": "weather", "arguments": ""}}
    yield chunk({"tool_calls": [call]})
    yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"city":'}}]})
    yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": ' "Oslo"}'}}]}, "tool_calls")
    yield chunk({}, choices=[], usage=openai_chat().usage.model_dump())


def openai_response() -> Any:
    from openai.types.responses import Response

    return Response.model_validate(
        {
            "id": "r-1",
            "object": "response",
            "created_at": 1,
            "model": "m-1",
            "status": "completed",
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "output": [
                {
                    "type": "reasoning",
                    "id": "rs-1",
                    "summary": [{"type": "summary_text", "text": "thinking"}],
                },
                {
                    "type": "message",
                    "id": "m-1",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": TEXT, "annotations": []}],
                },
                {
                    "type": "function_call",
                    "id": "f-1",
                    "call_id": "c-1",
                    "name": "weather",
                    "arguments": '{"city": "Oslo"}',
                    "status": "completed",
                },
            ],
            "usage": {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 0},
                "output_tokens": 30,
                "output_tokens_details": {"reasoning_tokens": 10},
                "total_tokens": 130,
            },
        }
    )


def openai_response_events() -> Iterator[Any]:
    from openai.types.responses import ResponseCompletedEvent, ResponseCreatedEvent, ResponseTextDeltaEvent

    made = openai_response()
    begun = made.model_copy(update={"output": [], "status": "in_progress", "usage": None})
    yield ResponseCreatedEvent(type="response.created", response=begun, sequence_number=0)
    for number, text in enumerate(("Let me", " see."), 1):
        yield ResponseTextDeltaEvent(
            type="response.output_text.delta",
            delta=text,
            item_id="m-1",
            output_index=1,
            content_index=0,
            logprobs=[],
            sequence_number=number,
        )
    yield ResponseCompletedEvent(type="response.completed", response=made, sequence_number=3)


def anthropic_message() -> Any:
    from anthropic.types import Message

    return Message.model_validate(
        {
            "id": "r-1",
            "type": "message",
            "role": "assistant",
            "model": "m-1",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": TEXT},
                {"type": "tool_use", "id": "c-1", "name": "weather", "input": CALL},
            ],
            "usage": {
                "input_tokens": 50,
                "cache_read_input_tokens": 40,
                "cache_creation_input_tokens": 10,
                "output_tokens": 30,
            },
        }
    )


def anthropic_events() -> Iterator[Any]:
    from anthropic.types import (
        RawContentBlockDeltaEvent,
        RawContentBlockStartEvent,
        RawMessageDeltaEvent,
        RawMessageStartEvent,
        RawMessageStopEvent,
    )

    made = anthropic_message()
    begun = made.model_copy(update={"content": [], "stop_reason": None})
    begun.usage.output_tokens = 1
    yield RawMessageStartEvent(type="message_start", message=begun)
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield RawContentBlockStartEvent.model_validate(block)
    for text in ("Let me", " see."):
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        yield RawContentBlockDeltaEvent.model_validate(delta)
    call = {"type": "tool_use", "id": "c-1", "name": "weather", "input": {}}
    yield RawContentBlockStartEvent.model_validate(
        {"type": "content_block_start", "index": 1, "content_block": call}
    )
    for part in ('{"city"', ': "Oslo"}'):
        delta = {
            "type": "content_block_delta",
            "index": 1,
            "delta": {"type": "input_json_delta", "partial_json": part},
        }
        yield RawContentBlockDeltaEvent.model_validate(delta)
    yield RawMessageDeltaEvent.model_validate(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 30},
        }
    )
    yield RawMessageStopEvent(type="message_stop")


def google_response(parts: list[dict[str, Any]] | None = None, *, last: bool = True) -> Any:
    from google.genai.types import GenerateContentResponse

    made: dict[str, Any] = {
        "response_id": "r-1",
        "model_version": "m-1",
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": parts
                    or [
                        {"text": "hm", "thought": True},
                        {"text": TEXT},
                        {"function_call": {"id": "c-1", "name": "weather", "args": CALL}},
                    ],
                },
                **({"finish_reason": "STOP"} if last else {}),
            }
        ],
    }
    if last:
        made["usage_metadata"] = {
            "prompt_token_count": 95,
            "tool_use_prompt_token_count": 5,
            "cached_content_token_count": 40,
            "candidates_token_count": 20,
            "thoughts_token_count": 10,
            "total_token_count": 130,
        }
    return GenerateContentResponse.model_validate(made)


def google_chunks() -> Iterator[Any]:
    yield google_response([{"text": "Let me"}], last=False)
    yield google_response([{"text": " see."}], last=False)
    yield google_response([{"function_call": {"id": "c-1", "name": "weather", "args": CALL}}])


def bedrock_reply() -> Any:
    """As botocore gives it: plain dicts."""
    return {
        "ResponseMetadata": {"RequestId": "q", "HTTPStatusCode": 200},
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"text": TEXT},
                    {"toolUse": {"toolUseId": "c-1", "name": "weather", "input": CALL}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {
            "inputTokens": 50,
            "outputTokens": 30,
            "totalTokens": 130,
            "cacheReadInputTokens": 40,
            "cacheWriteInputTokens": 10,
        },
        "metrics": {"latencyMs": 1},
    }


def bedrock_events() -> Iterator[Any]:
    yield {"messageStart": {"role": "assistant"}}
    for text in ("Let me", " see."):
        yield {"contentBlockDelta": {"delta": {"text": text}, "contentBlockIndex": 0}}
    yield {"contentBlockStop": {"contentBlockIndex": 0}}
    begun = {"toolUse": {"toolUseId": "c-1", "name": "weather"}}
    yield {"contentBlockStart": {"start": begun, "contentBlockIndex": 1}}
    for part in ('{"city"', ': "Oslo"}'):
        yield {"contentBlockDelta": {"delta": {"toolUse": {"input": part}}, "contentBlockIndex": 1}}
    yield {"messageStop": {"stopReason": "tool_use"}}
    yield {"metadata": {"usage": bedrock_reply()["usage"]}}


def litellm_reply() -> Any:
    """OpenAI's shape, with Anthropic's counts beside it: cached tokens are in prompt_tokens already."""
    made = openai_chat().model_dump()
    made["usage"] |= {"cache_read_input_tokens": 40, "cache_creation_input_tokens": 10}
    return made


ALL = {"input": 100, "output": 30, "cached": 40, "reasoning": 10}
NO_REASONING = {"input": 100, "output": 30, "cached": 40}
WHOLE: dict[str, tuple[Any, str, dict[str, int]]] = {
    "openai chat": (openai_chat, "tool_calls", ALL),
    "openai responses": (openai_response, "completed", ALL),
    "anthropic": (anthropic_message, "tool_use", NO_REASONING),
    "google": (google_response, "STOP", ALL),
    "bedrock": (bedrock_reply, "tool_use", NO_REASONING),
    "litellm": (litellm_reply, "tool_calls", ALL),
}
STREAMED: dict[str, tuple[Any, str, dict[str, int]]] = {
    "openai chat": (openai_chat_chunks, "tool_calls", ALL),
    "openai responses": (openai_response_events, "completed", ALL),
    "anthropic": (anthropic_events, "tool_use", NO_REASONING),
    "google": (google_chunks, "STOP", ALL),
    "bedrock": (bedrock_events, "tool_use", NO_REASONING),
}
COUNTS = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cached": "gen_ai.usage.cache_read.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
}


def said(attributes: Any, finish: str, counts: dict[str, int], *, with_ids: bool = True) -> None:
    """The attributes tell of the reply."""
    found = json.loads(attributes["gen_ai.output.messages"])
    call = {"type": "tool_call", "id": "c-1", "name": "weather", "arguments": CALL}
    parts = [{"type": "text", "content": TEXT}, call]
    assert found == [{"role": "assistant", "parts": parts, "finish_reason": finish}]
    assert attributes["llm.finish_reason"] == finish
    at = "llm.output_messages.0.message"
    assert attributes[f"{at}.content"] == TEXT
    assert json.loads(attributes[f"{at}.tool_calls.0.tool_call.function.arguments"]) == CALL
    assert {word: attributes[key] for word, key in COUNTS.items() if key in attributes} == counts
    if with_ids:
        assert (attributes["gen_ai.response.id"], attributes["gen_ai.response.model"]) == ("r-1", "m-1")


@pytest.mark.parametrize("vendor", WHOLE)
def test_a_reply_is_read_in_its_vendors_type(vendor: str, spans: Any) -> None:
    """And comes back as the very object."""
    make, finish, counts = WHOLE[vendor]
    reply = make()

    assert model(lambda messages: reply)([]) is reply
    said(spans.attributes(), finish, counts, with_ids=vendor != "bedrock")


@pytest.mark.parametrize("vendor", STREAMED)
def test_a_streamed_reply_is_put_together(vendor: str, spans: Any) -> None:
    """Text, tool calls, usage and the reason it ended, from the pieces in the vendor's own types."""
    make, finish, counts = STREAMED[vendor]

    @model
    def chat(messages: list[Any]) -> Iterator[Any]:
        yield from make()

    assert len(list(chat([]))) == len(list(make()))
    said(spans.attributes(), finish, counts, with_ids=vendor != "bedrock")


@pytest.mark.parametrize("vendor", STREAMED)
def test_a_streamed_reply_that_is_left_early_has_what_was_said_until_then(vendor: str, spans: Any) -> None:
    """The text so far is there, and nothing is made up of the rest."""
    make, *_ = STREAMED[vendor]
    text = ""

    @model
    def chat(messages: list[Any]) -> Iterator[Any]:
        yield from make()

    for piece in chat([]):
        text += str(piece)
        if " see." in text:
            break

    found = json.loads(spans.attributes()["gen_ai.output.messages"])
    assert found[0]["parts"] == [{"type": "text", "content": TEXT}]
    assert "tool_calls" not in str(spans.attributes()["gen_ai.output.messages"])
    assert spans.attributes()["redfirst.stream.closed_early"] is True


REQUESTS: dict[str, dict[str, Any]] = {
    "openai chat": {
        "messages": [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c-1", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}
                ],
            },
            {"role": "tool", "tool_call_id": "c-1", "content": "rain"},
        ]
    },
    "openai responses": {
        "instructions": "Be kind.",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "function_call", "call_id": "c-1", "name": "weather", "arguments": '{"city":"Oslo"}'},
            {"type": "function_call_output", "call_id": "c-1", "output": "rain"},
        ],
    },
    "anthropic": {
        "system": [{"type": "text", "text": "Be kind."}],
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c-1", "name": "weather", "input": CALL}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c-1", "content": "rain"}]},
        ],
    },
    "google": {
        "config": {"system_instruction": "Be kind."},
        "contents": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {"role": "model", "parts": [{"function_call": {"id": "c-1", "name": "weather", "args": CALL}}]},
            {
                "role": "user",
                "parts": [{"function_response": {"id": "c-1", "name": "weather", "response": "rain"}}],
            },
        ],
    },
    "bedrock": {
        "system": [{"text": "Be kind."}],
        "messages": [
            {"role": "user", "content": [{"text": "Weather?"}]},
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c-1", "name": "weather", "input": CALL}}],
            },
            {"role": "user", "content": [{"toolResult": {"toolUseId": "c-1", "content": "rain"}}]},
        ],
    },
}


@pytest.mark.parametrize("vendor", REQUESTS)
def test_a_request_is_read_in_its_vendors_shape(vendor: str, spans: Any) -> None:
    """System prompt, question, the model's wish for a call and the answer to it, whatever they are called."""

    @model
    def chat(**request: Any) -> str:
        return "x"

    chat(**REQUESTS[vendor])

    call = {"type": "tool_call", "id": "c-1", "name": "weather", "arguments": CALL}
    assert json.loads(spans.attributes()["gen_ai.input.messages"]) == [
        {"role": "system", "parts": [{"type": "text", "content": "Be kind."}]},
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]},
        {"role": "assistant", "parts": [call]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c-1", "response": "rain"}]},
    ]


def test_googles_own_request_types_are_read(spans: Any) -> None:
    """Contents, configuration and tools as its client takes them."""
    from google.genai import types

    @model(provider="google")
    def chat(model: str, contents: Any, config: Any) -> str:
        return "x"

    declared = types.Tool(function_declarations=[types.FunctionDeclaration(name="weather")])
    config = types.GenerateContentConfig(system_instruction="Be kind.", tools=[declared])
    chat("m-1", types.Content(role="user", parts=[types.Part(text="Weather?")]), config)

    found = spans.attributes()
    assert [turn["role"] for turn in json.loads(found["gen_ai.input.messages"])] == ["system", "user"]
    assert json.loads(found["gen_ai.tool.definitions"])[0]["function_declarations"][0]["name"] == "weather"
    assert spans.one().name == "chat m-1"

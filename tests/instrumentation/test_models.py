"""Model requests and replies in the shapes vendors give them."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from redfirst.evaluators import semconv
from redfirst.instrumentation import agent, conversation, model, tool


class Function(pydantic.BaseModel):
    """As in the OpenAI client."""

    name: str
    arguments: str


class ToolCall(pydantic.BaseModel):
    """As in the OpenAI client."""

    id: str
    type: str = "function"
    function: Function


class Message(pydantic.BaseModel):
    """As in the OpenAI client."""

    role: str
    content: str | None = None
    tool_calls: list[ToolCall] | None = None


class Choice(pydantic.BaseModel):
    """As in the OpenAI client."""

    index: int = 0
    finish_reason: str
    message: Message


class Completion(pydantic.BaseModel):
    """As in the OpenAI client."""

    id: str
    model: str
    choices: list[Choice]
    usage: dict[str, Any] | None = None


COMPLETION = Completion(
    id="c-1",
    model="gpt-x",
    choices=[
        Choice(
            finish_reason="tool_calls",
            message=Message(
                role="assistant",
                tool_calls=[ToolCall(id="t1", function=Function(name="look", arguments='{"a":1}'))],
            ),
        )
    ],
    usage={"prompt_tokens": 3, "completion_tokens": 4},
)
ANTHROPIC = {
    "id": "m-1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x",
    "content": [
        {"type": "text", "text": "One moment."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use",
    "usage": {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 20,
    },
}
ASKED = [conversation.WantedCall(name="look", arguments='{"a":1}', call_id="t1")]


def answered(response: Any, messages: Any = "hi") -> Any:
    """Call a model that answers this, and give the very same back."""

    @model
    def chat(messages: Any) -> Any:
        return response

    assert chat(messages) is response
    return response


@pytest.mark.parametrize(
    ("response", "text", "calls", "finish", "said_model"),
    [
        (COMPLETION, None, ASKED, "tool_calls", "gpt-x"),
        (COMPLETION.model_dump(), None, ASKED, "tool_calls", "gpt-x"),
        (ANTHROPIC, "One moment.", ASKED, "tool_use", "claude-x"),
        ("plain text", "plain text", [], None, None),
        ({"role": "assistant", "content": "x"}, "x", [], None, None),
        ({"message": {"content": "x"}, "done_reason": "stop", "model": "m"}, "x", [], "stop", "m"),
        ({"tool_calls": [{"name": "look", "args": {"a": 1}, "id": "t1"}]}, None, ASKED, None, None),
    ],
)
def test_a_reply_is_read_in_each_shape(
    response: Any, text: str | None, calls: list[Any], finish: str | None, said_model: str | None, spans: Any
) -> None:
    """OpenAI objects and dicts, Anthropic dicts, messages on their own, Ollama's envelope, strings."""
    answered(response)

    found = spans.attributes()
    prefix = "llm.output_messages.0.message"
    assert found.get(f"{prefix}.content") == text
    assert [found.get(f"{prefix}.tool_calls.0.tool_call.function.name")] == [
        call.name for call in calls
    ] or not calls
    assert found.get(f"{prefix}.tool_calls.0.tool_call.id") == (calls[0].call_id if calls else None)
    arguments = found.get(f"{prefix}.tool_calls.0.tool_call.function.arguments")
    assert json.loads(arguments or "null") == ({"a": 1} if calls else None)
    assert found.get("gen_ai.response.finish_reasons") == ((finish,) if finish else None)
    assert found.get("gen_ai.response.model") == said_model
    (written,) = json.loads(found["gen_ai.output.messages"])
    assert written.get("finish_reason") == finish
    assert [part["type"] for part in written["parts"]] == ["text"] * (text is not None) + ["tool_call"] * len(
        calls
    )


@pytest.mark.parametrize(
    "response", [None, 7, [1], {"odd": 1}, {"choices": []}, {"choices": [{"text": "x"}]}]
)
def test_a_reply_of_unknown_shape_is_kept_whole_and_nothing_is_guessed(response: Any, spans: Any) -> None:
    """The output value is there; no message, no finish reason, no tokens."""
    answered(response)

    found = spans.attributes()
    assert json.loads(found["output.value"]) == response
    assert not [
        key for key in found if key.startswith(("llm.output", "gen_ai.output", "gen_ai.usage", "llm.token"))
    ]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {
                "prompt_tokens": 30,
                "completion_tokens": 12,
                "prompt_tokens_details": {"cached_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            {"input": 30, "output": 12, "cached": 10, "reasoning": 5},
        ),
        (
            {
                "input_tokens": 30,
                "output_tokens": 12,
                "input_tokens_details": {"cached_tokens": 10},
                "output_tokens_details": {"reasoning_tokens": 5},
            },
            {"input": 30, "output": 12, "cached": 10, "reasoning": 5},
        ),
        (ANTHROPIC["usage"], {"input": 130, "output": 5, "cached": 100}),
        (
            {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": None},
            {"input": 10, "output": 5, "cached": 0},
        ),
        ({"cache_read_input_tokens": 7}, {"cached": 7}),
        ({"prompt_tokens": None, "completion_tokens": "12", "prompt_tokens_details": []}, {}),
        ({"prompt_tokens": True, "completion_tokens": -1}, {}),
        ({"prompt_tokens": 2**63, "completion_tokens": 1.0}, {}),
        ("many", {}),
        (None, {}),
    ],
)
def test_tokens_are_counted_as_the_conventions_say(usage: Any, counts: dict[str, int], spans: Any) -> None:
    """Input includes cached tokens, output reasoning ones; what is no count is missing, never 0."""
    answered({"content": "x", "usage": usage})

    names = {
        "input": semconv.INPUT_TOKENS,
        "output": semconv.OUTPUT_TOKENS,
        "cached": semconv.CACHED_TOKENS,
        "reasoning": semconv.REASONING_TOKENS,
    }
    found = spans.attributes()
    assert {word: found[key] for word, key in names.items() if key in found} == counts
    total = counts.get("input", 0) + counts.get("output", 0) if {"input", "output"} <= counts.keys() else None
    assert found.get("llm.token_count.total") == total


def test_parallel_tool_results_in_one_message_keep_their_own_call_ids(spans: Any) -> None:
    """Anthropic answers all calls of a turn in one user message."""
    answered(
        "ok",
        [
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "one"},
                    {
                        "type": "tool_result",
                        "tool_use_id": "t2",
                        "content": [{"type": "text", "text": "two"}],
                    },
                    {"type": "text", "text": "And hurry."},
                ],
            }
        ],
    )

    found = spans.attributes()
    assert json.loads(found["gen_ai.input.messages"]) == [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "response": "one"}]},
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "t2", "response": '[{"type":"text","text":"two"}]'}
            ],
        },
        {"role": "user", "parts": [{"type": "text", "content": "And hurry."}]},
    ]
    assert [found[f"llm.input_messages.{n}.message.tool_call_id"] for n in (0, 1)] == ["t1", "t2"]


@pytest.mark.parametrize(
    "messages",
    [
        [{}],
        [{"role": None, "content": 7, "tool_calls": 3}],
        [{"role": "user", "content": ["text", None, {"type": "image"}]}],
        [{"tool_calls": [None, {"function": None}, {"id": 7}]}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{" * 5000}}]}],
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[" * 100_000}}]}],
        [{"role": "user", "content": "\ud800"}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": 7}]}],
    ],
)
def test_messages_of_any_shape_are_no_fault(messages: Any, spans: Any) -> None:
    """A model is sent what the host sends it; we write down what we can read."""
    answered({"choices": [{"message": messages[0], "finish_reason": 7}], "usage": messages}, messages)

    assert spans.one().status.is_ok


def test_a_long_conversation_evicts_nothing(spans: Any) -> None:
    """Beyond the limit there is only the JSON; the SDK keeps 128 attributes and would drop the first ones."""
    many = [
        {"id": f"t{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for n in range(60)
    ]
    messages = [{"role": "user", "content": str(n)} for n in range(200)]

    @model(provider="openai")
    def chat(messages: Any, model: str) -> Any:
        return {
            "choices": [{"message": {"role": "assistant", "tool_calls": many}, "finish_reason": "tool_calls"}]
        }

    chat(messages, "m")

    found = spans.attributes()
    assert spans.one().dropped_attributes == 0
    assert found["openinference.span.kind"] == "LLM"
    assert not [key for key in found if key.startswith(("llm.input_messages", "llm.output_messages"))]
    assert len(json.loads(found["gen_ai.input.messages"])) == 200
    assert len(json.loads(found["gen_ai.output.messages"])[0]["parts"]) == 60


def test_the_fullest_span_keeps_every_attribute(spans: Any) -> None:
    """Both flattened lists at their limits, all tokens, every static attribute."""
    calls = [{"id": f"t{n}", "function": {"name": "look", "arguments": "{}"}} for n in range(10)]

    @model(provider="openai")
    def chat(messages: Any, tools: Any, model: str) -> Any:
        return {
            "id": "r",
            "model": "m-1",
            "choices": [{"message": {"content": "x", "tool_calls": calls}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": 3,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 1},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
        }

    chat([{"role": "user", "content": str(n)} for n in range(32)], [], "m")

    found = spans.attributes()
    assert spans.one().dropped_attributes == 0
    assert len([key for key in found if key.startswith("llm.input_messages")]) == 64
    assert len([key for key in found if key.startswith("llm.output_messages")]) == 32


def test_names_with_lone_surrogates_do_not_spoil_the_batch(spans: Any) -> None:
    """The model's name is part of the span's name, which an encoder refuses as a whole."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    @tool(name="\ud800", schema={"\ud800": "\ud800"})
    def look(x: str) -> str:
        return x

    @model(provider="\ud800")
    def chat(messages: Any, model: str) -> Any:
        look("\ud800")
        return {"model": "\ud800", "id": "\ud800", "content": "\ud800", "stop_reason": "\ud800"}

    @agent(name="\ud800", version="\ud800")
    def handle(text: str) -> str:
        chat([{"role": "\ud800", "content": "\ud800"}], model="\ud800")
        return text

    assert handle("\ud800") == "\ud800"

    encode_spans(spans.all()).SerializeToString()
    assert spans.one("chat \\ud800").attributes["llm.input_messages.0.message.content"] == "\\ud800"


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, {"tool in", "tool out", "model in", "model out"}),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "false"}, set()),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}, set()),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": " event_only "}, set()),
        (
            {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_AND_EVENT"},
            {"tool in", "tool out", "model in", "model out"},
        ),
        ({"OPENINFERENCE_HIDE_INPUTS": "true"}, {"tool out", "model out"}),
        ({"OPENINFERENCE_HIDE_OUTPUTS": "True"}, {"tool in", "model in"}),
        ({"OPENINFERENCE_HIDE_INPUT_MESSAGES": "1"}, {"tool in", "tool out", "model out"}),
        ({"OPENINFERENCE_HIDE_OUTPUT_TEXT": "yes"}, {"tool in", "tool out", "model in"}),
    ],
)
def test_content_is_switched_off_by_the_standard_variables(
    variables: dict[str, str], shown: set[str], spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one value of the conversation is on a span then; tokens, names and finish reasons still are."""
    from redfirst.instrumentation import configure

    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    configure()

    @tool
    def look(x: str) -> str:
        return "tool out"

    @model
    def chat(messages: Any, tools: Any) -> Any:
        look("tool in")
        return {
            "content": "model out",
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 2},
        }

    @agent
    def handle(request: str) -> str:
        chat([{"role": "user", "content": "model in"}], [{"name": "model in"}])
        return "x"

    handle("x")

    written = repr([dict(span.attributes) for span in spans.all()])
    assert {word for word in ("tool in", "tool out", "model in", "model out") if word in written} == shown
    assert spans.attributes("chat")["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert spans.attributes("chat")["llm.token_count.total"] == 3

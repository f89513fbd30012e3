"""What stands on the spans of agents, tools and models, and how they hang together."""

from __future__ import annotations

import asyncio
import contextvars
import json
import sys
import threading
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import StatusCode

from redfirst.evaluators import semconv
from redfirst.instrumentation import agent, configure, current_run, memory, model, tool

SCHEMA = {"type": "object", "properties": {"order_id": {"type": "string"}}}


def test_a_tool_span_says_this_and_nothing_else(spans: Any) -> None:
    """Both vocabularies, and what only the decorator knows."""

    @tool(effect="write", idempotent=True, poll=True, schema=SCHEMA)
    def refund(order_id: str) -> dict[str, str]:
        """Pay back."""
        return {"refunded": order_id}

    refund("A-1")

    assert spans.one().name == "execute_tool refund"
    assert spans.one().instrumentation_scope.name == semconv.SCOPE
    assert spans.one().status.status_code is StatusCode.OK
    assert spans.attributes() == {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "tool.name": "refund",
        "gen_ai.tool.name": "refund",
        "tool.description": "Pay back.",
        "gen_ai.tool.description": "Pay back.",
        "tool.parameters": json.dumps(SCHEMA, separators=(",", ":")),
        "redfirst.tool.effect": "write",
        "redfirst.tool.idempotent": True,
        "redfirst.tool.poll": True,
        "gen_ai.tool.call.arguments": '{"order_id":"A-1"}',
        "input.value": '{"order_id":"A-1"}',
        "input.mime_type": "application/json",
        "gen_ai.tool.call.result": '{"refunded":"A-1"}',
        "output.value": '{"refunded":"A-1"}',
        "output.mime_type": "application/json",
    }


def test_what_is_not_declared_is_absent(spans: Any) -> None:
    """Missing is missing: no effect, no description, no schema, no argument that was not given."""

    @tool
    def ping(times: int = 1) -> None:
        return None

    ping()

    assert spans.attributes() == {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "tool.name": "ping",
        "gen_ai.tool.name": "ping",
        "gen_ai.tool.call.arguments": "{}",
        "input.value": "{}",
        "input.mime_type": "application/json",
        "gen_ai.tool.call.result": "null",
        "output.value": "null",
        "output.mime_type": "application/json",
    }


def test_an_agent_span_says_this_and_nothing_else(spans: Any) -> None:
    """One argument is the request itself, as text when it is text."""

    @agent(name="support", step_cap=12, version="7")
    def handle(request: str) -> str:
        current_run().stop("step_cap", cap=12)
        return "Done."

    handle("Where is A-1?")

    assert spans.one().name == "invoke_agent support"
    assert spans.attributes() == {
        "openinference.span.kind": "AGENT",
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "agent.name": "support",
        "gen_ai.agent.version": "7",
        "redfirst.agent.step_cap": 12,
        "redfirst.stop.reason": "step_cap",
        "redfirst.stop.cap": 12,
        "input.value": "Where is A-1?",
        "input.mime_type": "text/plain",
        "output.value": "Done.",
        "output.mime_type": "text/plain",
    }


@pytest.mark.parametrize(
    ("args", "value"),
    [(([{"role": "user"}],), '[{"role":"user"}]'), (("a", 2), '{"request":"a","n":2}'), ((), None)],
)
def test_the_request_of_an_agent_is_its_argument_or_all_of_them(
    args: tuple[Any, ...], value: str | None, spans: Any
) -> None:
    """No argument is no request; no answer is no answer."""

    @agent
    def handle(request: object = None, n: int = 0) -> None:
        return None

    handle(*args)

    assert spans.attributes().get("input.value") == value
    assert "output.value" not in spans.attributes()


def test_a_model_span_says_this_and_nothing_else(spans: Any) -> None:
    """Request, tools, reply, finish reason and tokens in both vocabularies."""
    request = [
        {"role": "user", "content": "Where is A-1?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c0", "type": "function", "function": {"name": "get", "arguments": '{"id":"A-1"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c0", "content": "sent"},
    ]
    reply = {
        "id": "r-1",
        "model": "gpt-x-2026",
        "choices": [
            {
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "One moment.",
                    "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "track", "arguments": "{}"}}
                    ],
                },
            }
        ],
        "usage": {
            "prompt_tokens": 30,
            "completion_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 10},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    }
    tools = [{"type": "function", "function": {"name": "track"}}]

    @model(provider="openai")
    def chat(messages: list[Any], tools: list[Any], model: str) -> dict[str, Any]:
        return reply

    chat(request, tools, "gpt-x")

    found = spans.attributes()
    assert spans.one().name == "chat gpt-x"
    assert json.loads(found.pop("input.value")) == {"messages": request, "tools": tools, "model": "gpt-x"}
    assert json.loads(found.pop("output.value")) == reply
    assert json.loads(found.pop("gen_ai.tool.definitions")) == tools
    assert json.loads(found.pop("gen_ai.input.messages")) == [
        {"role": "user", "parts": [{"type": "text", "content": "Where is A-1?"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c0", "name": "get", "arguments": {"id": "A-1"}}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c0", "response": "sent"}]},
    ]
    assert json.loads(found.pop("gen_ai.output.messages")) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "One moment."},
                {"type": "tool_call", "id": "c1", "name": "track", "arguments": {}},
            ],
            "finish_reason": "tool_calls",
        }
    ]
    assert found == {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "llm.provider": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x-2026",
        "llm.model_name": "gpt-x-2026",
        "gen_ai.response.id": "r-1",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "llm.finish_reason": "tool_calls",
        "input.mime_type": "application/json",
        "output.mime_type": "application/json",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Where is A-1?",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c0",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "get",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.arguments": '{"id":"A-1"}',
        "llm.input_messages.2.message.role": "tool",
        "llm.input_messages.2.message.content": "sent",
        "llm.input_messages.2.message.tool_call_id": "c0",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "One moment.",
        "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "track",
        "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": "{}",
        "gen_ai.usage.input_tokens": 30,
        "gen_ai.usage.output_tokens": 12,
        "gen_ai.usage.cache_read.input_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 5,
        "llm.token_count.prompt": 30,
        "llm.token_count.completion": 12,
        "llm.token_count.total": 42,
        "llm.token_count.prompt_details.cache_read": 10,
        "llm.token_count.completion_details.reasoning": 5,
    }


def test_an_error_is_a_status_a_type_and_an_event(spans: Any) -> None:
    """The exception event has the names of the OpenTelemetry conventions."""

    class GatewaySilent(TimeoutError):
        pass

    @tool
    def refund() -> None:
        raise GatewaySilent("no answer")

    with pytest.raises(GatewaySilent):
        refund()

    (event,) = spans.one().events
    assert spans.one().status.status_code is StatusCode.ERROR
    assert spans.one().status.description == "GatewaySilent: no answer"
    assert spans.attributes()["error.type"].endswith("GatewaySilent")
    assert event.name == "exception"
    assert event.attributes["exception.type"].endswith("test_spans." + GatewaySilent.__qualname__)
    assert event.attributes["exception.message"] == "no answer"
    assert 'raise GatewaySilent("no answer")' in event.attributes["exception.stacktrace"]
    assert "gen_ai.tool.call.result" not in spans.attributes()


def test_an_exception_of_any_size_or_manners_is_recorded_as_an_error(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge message is cut, a lone surrogate escaped, and one that cannot be shown still makes an error."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @tool
    def fails(error: Exception) -> None:
        raise error

    for error in (ValueError("x" * 100_000), ValueError("\ud800"), Mute()):
        with pytest.raises(type(error)):
            fails(error)

    huge, odd, mute = spans.all()
    assert all(span.status.status_code is StatusCode.ERROR for span in spans.all())
    assert len(huge.events[0].attributes["exception.message"]) == 65536
    assert len(huge.events[0].attributes["exception.stacktrace"]) == 65536
    assert odd.events[0].attributes["exception.message"] == "\\ud800"
    assert mute.status.description == "Mute: <Mute that cannot be shown>"


def test_calls_hang_below_the_call_they_were_made_in(spans: Any) -> None:
    """Agent, agent, model, tool: each is its caller's child, and afterwards nothing is left current."""

    @tool
    def leaf() -> None:
        return None

    @model
    def chat() -> str:
        leaf()
        return "hi"

    @agent
    def inner() -> str:
        return chat()

    @agent
    def outer() -> str:
        before = current_run().trace_id
        answer = inner()
        current_run().event("after")
        assert current_run().trace_id == before
        return answer

    assert not trace.get_current_span().get_span_context().is_valid
    outer()

    assert not trace.get_current_span().get_span_context().is_valid
    assert spans.parent_of("execute_tool leaf") == "chat"
    assert spans.parent_of("chat") == "invoke_agent inner"
    assert spans.parent_of("invoke_agent inner") == "invoke_agent outer"
    assert spans.parent_of("invoke_agent outer") is None
    assert [event.name for event in spans.one("invoke_agent outer").events] == ["redfirst.event"]
    assert not spans.one("invoke_agent inner").events


def test_concurrent_tasks_keep_their_own_parents(spans: Any) -> None:
    """Two runs at once, each with tools at once: every tool hangs below its own agent."""

    @tool
    async def look(owner: str, n: int) -> str:
        await asyncio.sleep(0.001 * n)
        return owner

    @agent
    async def handle(owner: str) -> str:
        await asyncio.gather(*(look(owner, n) for n in range(3)))
        return current_run().trace_id

    async def main() -> tuple[str, str]:
        return await asyncio.gather(handle("a"), handle("b"))

    traces = asyncio.run(main())
    assert len(set(traces)) == 2
    for span in spans.all():
        if span.name == "execute_tool look":
            owner = json.loads(span.attributes["gen_ai.tool.call.arguments"])["owner"]
            assert f"{span.context.trace_id:032x}" == traces["ab".index(owner)]
            assert span.parent.trace_id == span.context.trace_id


def test_threads_keep_their_own_parents(spans: Any) -> None:
    """A thread with the caller's context continues its run; one with an empty context begins its own trace."""

    @tool
    def look(where: str) -> str:
        return where

    @agent
    def handle() -> None:
        copied = contextvars.copy_context()
        threads = [
            threading.Thread(target=lambda: copied.run(look, "copied")),
            threading.Thread(target=look, args=("empty",)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    handle()

    parents = {
        json.loads(span.attributes["gen_ai.tool.call.arguments"])["where"]: span.parent
        for span in spans.all()
        if span.name == "execute_tool look"
    }
    assert parents["copied"].span_id == spans.one("invoke_agent handle").context.span_id
    assert parents["empty"] is None


def test_our_spans_are_children_and_parents_of_other_peoples(spans: Any) -> None:
    """A normal OpenTelemetry span in every respect."""
    tracer = trace.get_tracer("host", tracer_provider=configure())

    @tool
    def look() -> None:
        with tracer.start_as_current_span("query"):
            trace.get_current_span().set_attribute("rows", 1)

    with tracer.start_as_current_span("request"):
        look()

    assert spans.parent_of("query") == "execute_tool look"
    assert spans.parent_of("execute_tool look") == "request"


def test_a_run_that_is_not_sampled_writes_nothing_and_works() -> None:
    """No argument is read and no value is written out."""
    configure(provider=TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))

    class Costly:
        def __repr__(self) -> str:
            raise AssertionError("written out")

    @agent
    def handle(value: object) -> str:
        current_run().state({"value": value})
        current_run().event("e", value=value)
        return current_run().trace_id

    assert len(handle(Costly())) == 32


def test_without_any_provider_everything_works_and_nothing_is_traced() -> None:
    """A library may be decorated and its user never configure anything."""

    @agent
    def handle(x: int) -> tuple[int, str]:
        current_run().stop("completed")
        return tool(lambda: x)(), current_run().trace_id

    assert handle(3) == (3, "")


def test_a_provider_that_comes_after_untraced_calls_gets_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether it becomes the global one, takes the place of one that is switched off, or is given to us."""
    look = tool(lambda x: x, name="look")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    off = TracerProvider(shutdown_on_exit=False)
    monkeypatch.delenv("OTEL_SDK_DISABLED")

    def seen_by(put: Any) -> int:
        exporter = InMemorySpanExporter()
        made = TracerProvider(shutdown_on_exit=False)
        made.add_span_processor(SimpleSpanProcessor(exporter))
        assert [look(1), look(2)] == [1, 2]
        put(made)
        look(3)
        return len(exporter.get_finished_spans())

    def globally(made: Any) -> None:
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", made)

    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    assert seen_by(globally) == 1
    globally(off)
    assert seen_by(globally) == 1
    globally(None)
    assert seen_by(lambda made: configure(provider=made)) == 1


def test_an_untraced_call_does_nothing_but_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function of ours is entered beside the wrapper."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(memory.Switch, "on", False)  # a guard of another test
    look = tool(lambda x: x, name="look")
    look(1)
    entered: list[str] = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        look(2)
    finally:
        sys.setprofile(None)

    assert entered == ["synchronous", "<lambda>"]


def test_a_runtime_context_of_another_kind_is_left_as_it_wants(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTEL_PYTHON_CONTEXT may name any implementation; its tokens are its own."""
    tokens: list[object] = []

    class Stack:
        def attach(self, value: Context) -> object:
            tokens.append(value)
            return "token"

        def detach(self, token: object) -> None:
            assert token == "token"
            tokens.pop()

        def get_current(self) -> Context:
            return tokens[-1] if tokens else Context()  # type: ignore[return-value]

    monkeypatch.setattr(context, "_RUNTIME_CONTEXT", Stack())

    @tool
    def outer() -> str:
        return tool(name="inner")(lambda: "x")()

    assert outer() == "x"
    assert not tokens
    assert spans.parent_of("execute_tool inner") == "execute_tool outer"


def test_an_agents_own_attribute_reaches_its_span(spans: Any) -> None:
    """``get_current_span`` inside a wrapped function is its span."""

    @tool
    def look() -> None:
        trace.get_current_span().set_attribute("shard", 4)

    look()

    assert spans.attributes()["shard"] == 4

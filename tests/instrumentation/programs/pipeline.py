"""A host on a pipeline: ``plain``, ``phoenix`` (its ``register``) or ``instrument`` (``opentelemetry-instrument``).

Its own sampler, span processor and exporter must meet our spans as ordinary ones. Ends with 0 when they do.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Decision, Sampler, SamplingResult

from redfirst.instrumentation import agent, configure, current_run, model, session, tool


class Picky(Sampler):
    """Drops the tool that says so in its attributes, and puts a mark on what it keeps."""

    def should_sample(self, parent_context: Any, trace_id: int, name: str, *args: Any, **kwargs: Any) -> Any:
        found = ALWAYS_ON.should_sample(parent_context, trace_id, name, *args, **kwargs)
        attributes = dict(found.attributes or {})
        if attributes.get("gen_ai.tool.name") == "dropped":
            return SamplingResult(Decision.DROP)
        return SamplingResult(found.decision, {**attributes, "sampler": "picky"}, found.trace_state)

    def get_description(self) -> str:
        return "picky"


class Marks(SpanProcessor):
    """Sets an attribute as a span starts, and looks at it as it ends."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Any = None) -> None:
        assert isinstance(span, trace.Span), type(span)
        assert span.is_recording()
        span.set_attribute("tenant", "t-1")

    def on_end(self, span: ReadableSpan) -> None:
        assert isinstance(span, ReadableSpan), type(span)
        self.ended.append(span)


def provider_of(kind: str) -> TracerProvider:
    """The pipeline that the host has before we come."""
    if kind == "plain":
        made = TracerProvider()
        trace.set_tracer_provider(made)
        return made
    if kind == "phoenix":
        from phoenix.otel import register

        return register(endpoint="http://127.0.0.1:9/v1/traces", protocol="http/protobuf", verbose=False)
    found = trace.get_tracer_provider()
    assert isinstance(found, TracerProvider), "not started by opentelemetry-instrument"
    return found


@tool
def look(order: str) -> dict[str, str]:
    """Look."""
    span = trace.get_current_span()
    span.set_attribute("own", 1)
    span.add_event("seen", {"order": order})
    with trace.get_tracer("other").start_as_current_span("inner"):
        return {"order": order}


@tool
def dropped() -> None:
    """Never seen."""
    assert not trace.get_current_span().is_recording()


@tool
def words() -> Iterator[str]:
    """A stream."""
    yield "a"
    yield "b"


@model
async def chat(messages: list[Any], model: str) -> dict[str, Any]:
    """A model."""
    return {"content": "hi", "usage": {"input_tokens": 3, "output_tokens": 2}}


@tool
def fail() -> None:
    """Fails."""
    raise KeyError("k")


@agent(name="support")
def handle(text: str) -> str:
    """A run."""
    look("A-1")
    dropped()
    for word in words():
        assert word == "a"
        break
    asyncio.run(chat([{"role": "user", "content": text}], model="m"))
    try:
        fail()
    except KeyError:
        current_run().event("caught")
    return "done"


def main(kind: str) -> None:
    """Run, and look at what came out."""
    provider = provider_of(kind)
    provider.sampler = Picky()
    marks, exporter = Marks(), InMemorySpanExporter()
    provider.add_span_processor(marks)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    assert configure() is provider
    with session("s-1", user="ann"):
        handle("hello")
    provider.force_flush(2_000)

    spans = {span.name: span for span in exporter.get_finished_spans()}
    assert sorted(spans) == sorted(span.name for span in marks.ended)
    assert sorted(spans) == [
        *("chat m", "execute_tool fail", "execute_tool look", "execute_tool words", "inner"),
        "invoke_agent support",
    ], sorted(spans)
    for span in spans.values():
        assert span.attributes is not None
        assert span.attributes["tenant"] == "t-1"
        assert span.attributes["sampler"] == "picky"
        assert span.end_time is not None
        assert span.start_time is not None
        assert span.start_time <= span.end_time
        json.loads(span.to_json())
    root, looked = spans["invoke_agent support"], spans["execute_tool look"]
    assert root.parent is None
    for name in ("execute_tool look", "chat m", "execute_tool words", "execute_tool fail"):
        parent = spans[name].parent
        assert parent is not None
        assert parent.span_id == root.context.span_id
        assert spans[name].attributes["session.id"] == "s-1"
    assert spans["inner"].parent is not None
    assert spans["inner"].parent.span_id == looked.context.span_id
    assert looked.attributes["own"] == 1
    assert [event.name for event in looked.events] == ["seen"]
    assert json.loads(str(looked.attributes["gen_ai.tool.call.arguments"])) == {"order": "A-1"}
    assert json.loads(str(looked.attributes["output.value"])) == {"order": "A-1"}
    assert looked.status.status_code is trace.StatusCode.OK
    assert spans["execute_tool words"].attributes["redfirst.stream.closed_early"] is True
    assert spans["chat m"].attributes["llm.token_count.prompt"] == 3
    assert spans["execute_tool fail"].status.status_code is trace.StatusCode.ERROR
    assert [event.name for event in spans["execute_tool fail"].events] == ["exception"]
    assert [event.name for event in root.events] == ["redfirst.event"]
    assert root.resource is provider.resource or dict(root.resource.attributes) == dict(
        provider.resource.attributes
    )
    print("as ordinary spans")


if __name__ == "__main__":
    main(sys.argv[1])

"""Traced functions, each the way one library does it: what ``decorators.py`` runs and compares.

    python decorator_variants.py VARIANT SITUATION

Runs in the virtual environment of its library and imports nothing of the benchmark. It answers each line with a number
of calls by the CPU seconds that they took, the flush of what they left included, and by the spans that reached the
exporter meanwhile. The exporters do nothing but count, or encode OTLP and throw it away; a library that reaches for the
network is refused, and said to have tried.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

CHILDREN = 20
REACHED_OUT = [0]
"""Connections that a library wanted to make."""


def look(city: str, days: int, celsius: bool = True) -> dict[str, object]:
    """The weather."""
    return {"city": city, "days": days, "celsius": celsius}


async def look_async(city: str, days: int, celsius: bool = True) -> dict[str, object]:
    """The weather."""
    return {"city": city, "days": days, "celsius": celsius}


def read(text: str) -> dict[str, object]:
    """A large argument."""
    return {"length": len(text)}


def handle(step: Callable[..., object], request: str) -> str:
    """Twenty steps for one request."""
    for number in range(CHILDREN):
        step("Oslo", number, celsius=True)
    return request


class Sink:
    """Counts the spans that would have left."""

    def __init__(self, situation: str) -> None:
        self.spans = 0
        self.encode: Callable[[Any], object] = len
        if "encoded" in situation:
            self.encode = by_the_sdk

    def take(self, spans: Any) -> None:
        """Take a batch."""
        self.spans += len(spans)
        self.encode(spans)


def by_the_sdk(spans: Any) -> object:
    """Spans as its exporters send them."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return encode_spans(spans).SerializePartialToString()


@dataclass(frozen=True, kw_only=True)
class Traced:
    """The functions as one library traces them."""

    look: Callable[..., Any]
    look_async: Callable[..., Any]
    read: Callable[..., Any]
    handle: Callable[[str], Any]
    """Calls the traced ``look`` twenty times inside of a span of its own."""
    flush: Callable[[], object]


def exporter_to(sink: Sink) -> Any:
    """An exporter of the SDK that gives the sink what it gets."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Quiet(SpanExporter):
        def export(self, spans: Any) -> Any:
            sink.take(spans)
            return SpanExportResult.SUCCESS

    return Quiet()


def tenant() -> Any:
    """A processor as hosts have them: it sets an attribute on every span that starts."""
    from opentelemetry.sdk.trace import SpanProcessor

    class Tenant(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.set_attribute("tenant", "t-1")

    return Tenant()


def batches_to(sink: Sink) -> Any:
    """The SDK's batch processor before a sink; it waits for the flush."""
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return BatchSpanProcessor(exporter_to(sink), max_queue_size=100_000, schedule_delay_millis=60_000)


def provider_to(sink: Sink | None) -> Any:
    """The provider that all share who take one: the same sampler, limits and processors."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanLimits, TracerProvider
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(1.0), span_limits=SpanLimits(max_span_attributes=128)
    )
    provider.add_span_processor(tenant())
    if sink is not None:
        provider.add_span_processor(batches_to(sink))
    trace.set_tracer_provider(provider)
    return provider


# --- the variants


def nothing(situation: str, sink: Sink) -> Traced:
    """No tracing."""
    return Traced(
        look=look,
        look_async=look_async,
        read=read,
        handle=lambda request: handle(look, request),
        flush=lambda: None,
    )


def sdk(situation: str, sink: Sink) -> Traced:
    """The SDK by hand: a current span with six attributes, which no JSON is made for."""
    provider = provider_to(sink)
    tracer = provider.get_tracer("bench")

    def traced(city: str, days: int, celsius: bool = True) -> Any:
        with tracer.start_as_current_span("look") as span:
            span.set_attribute("openinference.span.kind", "TOOL")
            span.set_attribute("tool.name", "look")
            span.set_attribute("city", city)
            span.set_attribute("days", days)
            span.set_attribute("celsius", celsius)
            result = look(city, days, celsius)
            span.set_attribute("output.value", "sunny")
            return result

    async def traced_async(city: str, days: int, celsius: bool = True) -> Any:
        with tracer.start_as_current_span("look") as span:
            span.set_attribute("openinference.span.kind", "TOOL")
            span.set_attribute("tool.name", "look")
            span.set_attribute("city", city)
            span.set_attribute("days", days)
            span.set_attribute("celsius", celsius)
            result = await look_async(city, days, celsius)
            span.set_attribute("output.value", "sunny")
            return result

    def traced_read(text: str) -> Any:
        with tracer.start_as_current_span("read") as span:
            span.set_attribute("openinference.span.kind", "TOOL")
            span.set_attribute("tool.name", "read")
            span.set_attribute("input.value", text)
            span.set_attribute("input.mime_type", "text/plain")
            result = read(text)
            span.set_attribute("output.value", "50000")
            span.set_attribute("output.mime_type", "text/plain")
            return result

    def traced_handle(request: str) -> Any:
        with tracer.start_as_current_span("handle") as span:
            span.set_attribute("openinference.span.kind", "CHAIN")
            span.set_attribute("input.value", request)
            span.set_attribute("input.mime_type", "text/plain")
            result = handle(traced, request)
            span.set_attribute("output.value", result)
            span.set_attribute("output.mime_type", "text/plain")
            return result

    return Traced(
        look=traced,
        look_async=traced_async,
        read=traced_read,
        handle=traced_handle,
        flush=provider.force_flush,
    )


def redfirst(situation: str, sink: Sink) -> Traced:
    """Ours, with redaction."""
    from redfirst.instrumentation import configure

    if situation == "disabled":
        configure()
        return _ours(lambda: None)
    flush = provider_to(sink).force_flush
    configure(redact=_redaction())
    return _ours(flush)


def redfirst_exporter(situation: str, sink: Sink) -> Traced:
    """Ours with what ``configure`` adds for an endpoint, up to the bytes that would be sent."""
    from redfirst.instrumentation import configure, provider
    from redfirst.instrumentation.otlp_bytes import request

    os.environ |= {"OTEL_BSP_MAX_QUEUE_SIZE": "100000", "OTEL_BSP_SCHEDULE_DELAY": "60000"}
    sink.encode = request
    provider._otlp_exporter = lambda endpoint: exporter_to(sink)
    flush = provider_to(None).force_flush
    configure(endpoint="http://127.0.0.1:9/v1/traces", redact=_redaction())
    return _ours(flush)


def _redaction() -> Any:
    from redfirst.instrumentation import Redaction

    return Redaction(keys=("password", "token", "secret", "authorization"), patterns=("email", "api_key"))


def _ours(flush: Callable[[], object]) -> Traced:
    from redfirst.instrumentation import chain, tool

    traced = tool(look)

    @chain(name="handle")
    def traced_handle(request: str) -> str:
        return handle(traced, request)

    return Traced(
        look=traced, look_async=tool(look_async), read=tool(read), handle=traced_handle, flush=flush
    )


def openinference(situation: str, sink: Sink) -> Traced:
    """OpenInference's tracer."""
    from openinference.instrumentation import OITracer, TraceConfig

    provider = provider_to(sink)
    tracer: Any = OITracer(provider.get_tracer("bench"), config=TraceConfig())
    traced = tracer.tool(look)
    return Traced(
        look=traced,
        look_async=tracer.tool(look_async),
        read=tracer.tool(read),
        handle=tracer.chain(name="handle")(lambda request: handle(traced, request)),
        flush=provider.force_flush,
    )


def traceloop(situation: str, sink: Sink) -> Traced:
    """Traceloop's SDK, which makes its provider itself and is given the processors."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import tool, workflow

    Traceloop.init(
        enabled=situation != "disabled",
        telemetry_enabled=False,
        sampler=ParentBasedTraceIdRatio(1.0),
        processor=[tenant(), batches_to(sink)],
        instruments=set(),
    )
    traced = tool(name="look")(look)
    return Traced(
        look=traced,
        look_async=tool(name="look")(look_async),
        read=tool(name="read")(read),
        handle=workflow(name="handle")(lambda request: handle(traced, request)),
        flush=getattr(trace.get_tracer_provider(), "force_flush", lambda: None),
    )


def langfuse(situation: str, sink: Sink) -> Traced:
    """Langfuse's decorator on its own processor, with the exporter that does nothing."""
    from langfuse import Langfuse, observe

    provider = provider_to(None)
    Langfuse(
        public_key="pk",
        secret_key="sk",
        host="http://127.0.0.1:9",
        tracer_provider=provider,
        flush_at=512,
        span_exporter=exporter_to(sink),
        tracing_enabled=situation != "disabled",
    )
    wrap = observe(as_type="tool")
    traced = wrap(look)

    @observe(as_type="chain", name="handle")
    def traced_handle(request: str) -> str:
        return handle(traced, request)

    return Traced(
        look=traced,
        look_async=wrap(look_async),
        read=wrap(read),
        handle=traced_handle,
        flush=provider.force_flush,
    )


def mlflow(situation: str, sink: Sink) -> Traced:
    """MLflow's decorator on its way to an OTLP endpoint, whose exporter does nothing."""
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = "http://127.0.0.1:9/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    os.environ["MLFLOW_TRACKING_URI"] = "http://127.0.0.1:9"  # unset, it wants a database here
    import mlflow as flow
    from mlflow.tracing import provider as theirs

    processors: tuple[Any, ...] = ()
    if situation == "disabled":
        flow.tracing.disable()
    else:
        processors = theirs._get_tracer("bench").span_processor._span_processors
    for processor in processors:
        processor.span_exporter.export = exporter_to(sink).export
    wrap = flow.trace(span_type="TOOL")
    traced = wrap(look)

    @flow.trace(name="handle", span_type="CHAIN")
    def traced_handle(request: str) -> str:
        return handle(traced, request)

    return Traced(
        look=traced,
        look_async=wrap(look_async),
        read=wrap(read),
        handle=traced_handle,
        flush=lambda: [processor.force_flush() for processor in processors],
    )


VARIANTS = {
    one.__name__: one
    for one in (nothing, sdk, redfirst, redfirst_exporter, openinference, traceloop, langfuse, mlflow)
}


# --- at work


def a_slice(situation: str, traced: Traced, calls: int) -> int:
    """So many calls, and the flush; how many spans must have come of them."""
    spans = calls
    if situation.startswith("50 kB"):
        text = "x" * 50_000
        for _ in range(calls):
            traced.read(text)
    elif situation == "async":

        async def all_calls() -> None:
            for number in range(calls):
                await traced.look_async("Oslo", number, celsius=True)

        asyncio.run(all_calls())
    elif situation == f"{CHILDREN} children":
        families = max(1, calls // CHILDREN)
        for _ in range(families):
            traced.handle("the weather")
        spans = families * (CHILDREN + 1)
    else:
        for number in range(calls):
            traced.look("Oslo", number, celsius=True)
    traced.flush()
    return spans


def _refused(*_address: object, **_more: object) -> NoReturn:
    REACHED_OUT[0] += 1
    raise ConnectionRefusedError("there is no network in this benchmark")


def count_calls() -> int:
    """Python and C calls that one traced call of ours makes, without the function's own.

    On a plain provider with a batch processor and no redaction: what others' processors do is not ours to count.
    """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    from redfirst.instrumentation import configure, tool

    provider = TracerProvider()
    provider.add_span_processor(batches_to(Sink("small")))
    trace.set_tracer_provider(provider)
    configure()
    traced = tool(look)
    for number in range(50):
        traced("Oslo", number, celsius=True)
    seen = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    sys.setprofile(count)
    for number in range(10):
        traced("Oslo", number, celsius=True)
    sys.setprofile(None)
    return round(seen / 10) - 2  # the function itself, and our setprofile


def main(variant: str, situation: str) -> int:
    """Work until there are no more lines."""
    socket.socket.connect = socket.socket.connect_ex = _refused  # type: ignore[assignment,method-assign]
    socket.getaddrinfo = _refused
    if variant == "count":
        print(json.dumps({"calls": count_calls()}))
        return 0
    sink = Sink(situation)
    try:
        traced = VARIANTS[variant](situation, sink)
        a_slice(situation, traced, 60)
    except Exception as problem:  # noqa: BLE001 - a peer that has changed its API is left out, and said so
        print(json.dumps({"failed": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
        return 1
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        before, begun = sink.spans, time.process_time()
        spans = a_slice(situation, traced, int(line))
        seconds = time.process_time() - begun
        answer = {"seconds": seconds, "spans": spans, "exported": sink.spans - before}
        print(json.dumps({**answer, "reached out": REACHED_OUT[0]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))

"""Our spans are ordinary ones, whoever made the pipeline; and the fast way makes what the SDK makes."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import (
    ConcurrentMultiSpanProcessor,
    ReadableSpan,
    SpanLimits,
    SpanProcessor,
    TracerProvider,
)
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, Sampler, TraceIdRatioBased

from redfirst.instrumentation import (
    agent,
    configure,
    current_run,
    fast_spans,
    faults,
    guard,
    model,
    otlp_bytes,
    otlp_sending,
    provider,
    tool,
    tracing,
)
from redfirst.instrumentation.redacting import redacted
from redfirst.instrumentation.redaction import Redaction, Redactor

PROGRAM = Path(__file__).parent / "programs" / "pipeline.py"


@pytest.mark.parametrize("kind", ["plain", "phoenix", "instrument"])
def test_a_hosts_own_sampler_processor_and_exporter_meet_ordinary_spans(kind: str) -> None:
    """The same assertions over the SDK, Phoenix' ``register`` and ``opentelemetry-instrument``."""
    command = [sys.executable, str(PROGRAM), kind]
    if kind == "instrument":
        from importlib.metadata import entry_points

        (script,) = entry_points(group="console_scripts", name="opentelemetry-instrument")
        run = f"import sys; from {script.module} import run; sys.exit(run())"
        command = [sys.executable, "-c", run, *command]
    environment = {
        **os.environ,
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PHOENIX_COLLECTOR_ENDPOINT": "http://127.0.0.1:9",
        "PYTHONWARNINGS": "ignore",
        "REDFIRST_RAISE_FAULTS": "1",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)

    assert done.stdout.splitlines()[-1:] == ["as ordinary spans"], done.stdout + done.stderr


class Counting(IdGenerator):
    """The same ids in each run."""

    def __init__(self) -> None:
        self._last = 0

    def generate_span_id(self) -> int:
        self._last += 1
        return self._last

    def generate_trace_id(self) -> int:
        self._last += 1
        return self._last + (1 << 100)


class Edits(SpanProcessor):
    """Sets and replaces attributes, as processors of others do."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        span.set_attribute("tenant", "t")

    def on_end(self, span: ReadableSpan) -> None:
        span._attributes = {**(span.attributes or {}), "edited": True}


@tool(effect="write", schema={"type": "object"})
def look(x: Any, n: int = 1) -> Any:
    """Look."""
    span = trace.get_current_span()
    span.set_attributes({"own": 1, "list": ["a", "b"]})
    span.add_event("seen", {"n": n})
    span.add_link(trace.SpanContext(5, 6, is_remote=True), {"l": 1})
    span.update_name("renamed")
    return {"x": x}


@tool
def ends_early() -> None:
    """End its own span."""
    trace.get_current_span().end()


@tool
def fail(x: str) -> None:
    """Fail."""
    raise KeyError(x)


@model
def chat(messages: list[Any]) -> Any:
    """A model."""
    return {"content": "hi", "stop_reason": "stop", "usage": {"input_tokens": 1, "output_tokens": 2}}


@agent(version="1")
def handle(text: str) -> str:
    """A run."""
    current_run().state({"a": 1})
    look(text, n=2)
    look("y" * 100)
    chat([{"role": "user", "content": text}] * 30)
    ends_early()
    with pytest.raises(KeyError):
        fail(text)
    return text


SAMPLERS: dict[str, Any] = {
    "on": ALWAYS_ON,
    "off": ALWAYS_OFF,
    "parent": ParentBased(ALWAYS_ON),
    "half": ParentBased(TraceIdRatioBased(0.5)),
    "own": type(
        "Own",
        (Sampler,),
        {
            "should_sample": lambda self, *a, **k: ALWAYS_ON.should_sample(*a, **k),
            "get_description": lambda self: "own",
        },
    )(),
}
LIMITS = {
    "usual": SpanLimits(),
    "few": SpanLimits(max_span_attributes=5, max_events=1),
    "short": SpanLimits(max_span_attribute_length=10),
    "none": SpanLimits(max_span_attributes=SpanLimits.UNSET, max_events=SpanLimits.UNSET),
}


def seen(
    way: str, sampler: str, limits: str, edits: bool, monkeypatch: pytest.MonkeyPatch
) -> tuple[type, list[Any]]:
    """What an exporter gets of the same runs: as protobuf, without times and stack traces."""
    exporter = InMemorySpanExporter()
    multi = ConcurrentMultiSpanProcessor(1) if edits else None
    made = TracerProvider(
        sampler=SAMPLERS[sampler],
        span_limits=LIMITS[limits],
        id_generator=Counting(),
        shutdown_on_exit=False,
        active_span_processor=multi,
    )
    if edits:
        made.add_span_processor(Edits())
    made.add_span_processor(SimpleSpanProcessor(exporter))
    provider.reset()
    with monkeypatch.context() as patched:
        if way == "slow":
            patched.setattr(provider, "tracing_of", tracing.Tracing)
        configure(provider=made)
        kind = type(provider.tracing())
        for parent in (None, trace.TraceFlags(1), trace.TraceFlags(0)):
            context = trace.SpanContext(77, 88, is_remote=True, trace_flags=parent or trace.TraceFlags(0))
            above = trace.INVALID_SPAN if parent is None else trace.NonRecordingSpan(context)
            with trace.use_span(above):
                handle("x")
    made.shutdown()
    found = []
    for span in encode_spans(exporter.get_finished_spans()).resource_spans:
        for one in (one for scope in span.scope_spans for one in scope.spans):
            one.start_time_unix_nano = one.end_time_unix_nano = 0
            for event in one.events:
                event.time_unix_nano = 0
                kept = [item for item in event.attributes if item.key != "exception.stacktrace"]
                del event.attributes[:]
                event.attributes.extend(kept)
            attributes = sorted(one.attributes, key=lambda item: item.key)
            del one.attributes[:]
            one.attributes.extend(attributes)
            found.append(one)
    return kind, found


@pytest.mark.parametrize("edits", [False, True])
@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_fast_way_makes_what_the_sdk_makes(
    sampler: str, limits: str, edits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field by field, under every sampler and limit, with processors that edit, roots and remote parents."""
    fast_kind, fast = seen("fast", sampler, limits, edits, monkeypatch)
    slow_kind, slow = seen("slow", sampler, limits, edits, monkeypatch)

    assert slow_kind is tracing.Tracing
    assert (fast_kind is fast_spans.FastTracing) is (limits in ("usual", "none"))
    assert fast == slow
    assert bool(fast) is (sampler != "off")


def parsed(body: bytes) -> list[Any]:
    """Each span of a request with what it shares with others."""
    return [
        (resource.resource, resource.schema_url, scope.scope, scope.schema_url, span)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@pytest.mark.parametrize("edits", [False, True])
def test_our_bytes_say_what_the_sdks_encoder_says(edits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Field by field: runs, errors, events, remote parents; values of every type; spans of others in between."""
    exporter = InMemorySpanExporter()
    made = TracerProvider(shutdown_on_exit=False)
    if edits:
        made.add_span_processor(Edits())
    made.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=made)
    values = [
        "é" * 20_000,
        "",
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        300,
        1.5,
        float("inf"),
        "x" * 60,
        2**63,
        "\ud800",
    ]
    for state in (None, trace.TraceState([("a", "b")])):
        context = trace.SpanContext(
            77, 88, is_remote=True, trace_flags=trace.TraceFlags(1), trace_state=state
        )
        with trace.use_span(trace.NonRecordingSpan(context)):
            handle("x")
            with made.get_tracer("other", "1.2", "https://example.org/schema").start_as_current_span(
                "theirs"
            ):
                look("x" * 300)
    for value in [*values, b"raw", [1, 2], {"a": [None]}]:

        @tool
        def write(x: Any = value) -> None:
            trace.get_current_span().set_attribute("x", x)

        write()
        write()

    spans = exporter.get_finished_spans()
    assert len(spans) > 40
    assert sorted(map(str, parsed(otlp_bytes.request(spans)))) == sorted(
        map(str, parsed(encode_spans(spans).SerializeToString()))
    )
    quick = [span for span in spans if isinstance(span, fast_spans.FastSpan) and span.plain() is not None]
    assert (len(quick) > 20) is not edits


@pytest.mark.parametrize("resource", [Resource({}), Resource({"a": ["b"]}, "https://example.org/schema")])
def test_what_spans_share_is_said_as_the_sdks_encoder_says_it(resource: Resource) -> None:
    """A resource that says nothing is there all the same, and one that a span makes up when it is asked is its own."""

    class Makes(ReadableSpan):
        @property
        def resource(self) -> Resource:
            return Resource({"of": self.name})

    context = trace.SpanContext(1, 2, is_remote=False)
    plain = ReadableSpan("plain", context, resource=resource)
    assert ExportTraceServiceRequest.FromString(otlp_bytes.request([plain])) == encode_spans([plain])

    spans = [Makes(str(number), context) for number in range(50)]
    hidden = Redactor(Redaction(patterns=["email"]))
    for shared, *_, span in [
        *parsed(otlp_bytes.request(spans)),
        *parsed(otlp_bytes.request(redacted(hidden, spans))),
    ]:
        assert [item.value.string_value for item in shared.attributes] == [span.name]


def test_an_encoder_of_the_sdk_that_says_more_is_used_itself(
    spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later version may write what ours does not know of."""

    def later(given: Any) -> Any:
        made = encode_spans(given)
        for span in made.resource_spans[0].scope_spans[0].spans:
            span.flags |= 1
        return made

    tool(lambda: 1)()
    otlp_bytes._as_the_exporters.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(otlp_bytes, "encode_spans", later)
        (sent,) = parsed(otlp_bytes.request(spans.all()))
    otlp_bytes._as_the_exporters.cache_clear()

    assert otlp_bytes._as_the_exporters()
    assert sent[-1].flags & 1


def test_a_span_that_cannot_be_encoded_is_left_out_alone(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is counted, and the others of its batch are sent."""
    monkeypatch.setattr(guard, "raise_faults", False)

    @tool
    def write(name: str) -> None:
        trace.get_current_span().update_name(name)

    for name in ("a", "\ud800", "b"):
        write(name)

    assert [span.name for *_, span in parsed(otlp_bytes.request(spans.all()))] == ["a", "b"]
    assert faults() == {"encode a span": 1}


def test_the_exporter_sends_our_bytes_where_the_sdks_own_is_as_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise it is the SDK's, unchanged."""
    ours = otlp_sending.exporter("http://127.0.0.1:9")
    assert isinstance(ours, OTLPSpanExporter)
    assert ours.export.__func__.__globals__["encode_spans"] is otlp_sending._Request  # type: ignore[attr-defined]

    monkeypatch.setattr(OTLPSpanExporter, "export", lambda self, spans: None)
    assert type(otlp_sending.exporter("http://127.0.0.1:9")) is OTLPSpanExporter


WRITTEN: dict[str, list[tuple[Any, Any]]] = {
    "again": [("a", "1"), ("b", True), ("a", 2.5), ("c", 10**30)],
    "no value": [("a", None), ("b", [1, None]), ("c", ["x", 1]), ("d", object()), ("e", "\ud800")],
    "no key": [("", 1), (7, 1), (None, "x"), ("a", 1)],
    "subclasses": [(type("S", (str,), {})("a"), type("T", (str,), {})("v")), ("b", type("I", (int,), {})(3))],
    "too many": [(f"k{number}", number) for number in range(200)] + [("k150", "again")],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("written", WRITTEN)
def test_an_attribute_set_by_hand_is_what_the_sdk_makes_of_it(written: str) -> None:
    """Values, their order, and how many were dropped."""

    def seen_of(way: type[tracing.Tracing]) -> tuple[Any, ...]:
        made = TracerProvider(shutdown_on_exit=False, sampler=ALWAYS_ON)
        used = way(made, made.get_tracer("t"))
        span: Any = used.start("s", {}, Context(), used.decide(Context()))
        for key, value in WRITTEN[written]:
            span.set_attribute(key, value)
        used.finish(span, {}, trace.Status(trace.StatusCode.OK))
        span.set_attribute("late", 1)
        return [(key, str(value)) for key, value in span.attributes.items()], span.dropped_attributes

    assert seen_of(fast_spans.FastTracing) == seen_of(tracing.Tracing)


def test_a_span_can_be_copied_and_takes_nothing_after_its_end(
    spans: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """As the SDK's spans, which warn."""
    kept: list[Any] = []

    @tool
    def keep() -> None:
        kept.append(trace.get_current_span())

    keep()
    kept[0].set_attribute("late", 1)
    kept[0].add_event("late")
    kept[0].end()
    assert "late" not in spans.attributes()
    assert not spans.one().events
    assert copy.deepcopy(kept[0]).name == "execute_tool keep"


def test_where_the_sdk_is_not_what_it_was_tried_out_with_its_own_way_is_used(
    monkeypatch: pytest.MonkeyPatch, spans: Any
) -> None:
    """Slower, and right."""
    monkeypatch.setattr(fast_spans, "_tried", [False])
    provider.settings.tracing = None
    tool(lambda: 1)()

    assert type(provider.settings.tracing) is tracing.Tracing
    assert spans.one().name == "execute_tool <lambda>"


def test_a_processor_or_sampler_that_comes_later_is_used(spans: Any) -> None:
    """Nothing is kept from a first look."""
    tool(lambda: 1)()
    made: Any = provider.settings.provider
    made.add_span_processor(Edits())
    tool(lambda: 2)()
    assert spans.all()[1].attributes["tenant"] == "t"
    provider.tracing().tracer.sampler = ALWAYS_OFF  # type: ignore[attr-defined]
    tool(lambda: 3)()
    assert len(spans.all()) == 2

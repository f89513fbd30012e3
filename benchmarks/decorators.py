"""What a traced call costs: ours against the bare SDK and the decorators of openinference, traceloop, langfuse, mlflow.

    python benchmarks/decorators.py [--rounds 9] [--calls 300] [--peers openinference,mlflow] [--json FILE] [--gate]

CPU of the process per call, background threads and the flush at the end of a slice included. Every variant runs in a
process of its own and gives one slice after the other to a common clock: each round asks all of them in turn, the next
in the opposite order. Ratios are taken within a round; median and range over the rounds are printed.

Peers are installed by pip into virtual environments of their own below ``~/.cache/redfirst/benchmarks``. All export to
an exporter that does nothing, except where the column says that the spans are encoded as OTLP.

Ours and the bare SDK run with the same sampler (parent based, ratio 1.0), the same limits and the same processor that
sets an attribute on every span that starts; ours redacts four keys and two patterns, too.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "redfirst" / "benchmarks"
SITUATIONS = ("small", "50 kB", "50 kB encoded", "async", "20 children", "small encoded", "disabled")
PEERS: dict[str, tuple[str, ...]] = {
    "openinference": ("openinference-instrumentation", "opentelemetry-exporter-otlp-proto-http"),
    "langfuse": ("langfuse",),
    "mlflow": ("mlflow-tracing",),
    "traceloop": ("traceloop-sdk",),
}
GOALS = {"sdk": 0.35, "openinference": 14.0, "traceloop": 6.0, "langfuse": 20.0, "mlflow": 25.0}
"""``sdk``: ours is at most so many of it. Peers: they are at least so many of ours."""
EXPORTED = [0]
"""Spans that a variant's exporter was given while it warmed up: one that traces nothing is not compared."""
MOST_CALLS = 60
"""Python and C calls of one traced call: the gate that holds on a busy machine, too."""


# --- the worker: one variant in one process


def look(city: str, days: int, celsius: bool = True) -> dict[str, object]:
    """The weather."""
    return {"city": city, "days": days, "celsius": celsius}


async def look_async(city: str, days: int, celsius: bool = True) -> dict[str, object]:
    """The weather."""
    return {"city": city, "days": days, "celsius": celsius}


def read(text: str) -> dict[str, object]:
    """A large argument."""
    return {"length": len(text)}


Variant = Callable[
    [str], tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Callable[[], None]]
]
"""From a situation to the traced ``look``, ``look_async`` and ``read``, and a flush."""


def nothing(situation: str) -> Any:
    """No tracing."""
    return look, look_async, read, lambda: None


def _provider(*, encode: bool, quiet: bool = True) -> Any:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

    class Quiet(SpanExporter):
        def export(self, spans: Any) -> Any:
            EXPORTED[0] += len(spans)
            if encode:
                from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

                encode_spans(spans).SerializeToString()
            return SpanExportResult.SUCCESS

    class Tenant(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            span.set_attribute("tenant", "t-1")

    provider = TracerProvider(
        sampler=ParentBasedTraceIdRatio(1.0), span_limits=SpanLimits(max_span_attributes=128)
    )
    provider.add_span_processor(Tenant())
    if quiet:
        batch = BatchSpanProcessor(Quiet(), max_queue_size=100_000, schedule_delay_millis=60_000)
        provider.add_span_processor(batch)
    trace.set_tracer_provider(provider)
    return provider


def sdk(situation: str) -> Any:
    """The SDK by hand: a current span with six attributes, which no JSON is made for."""
    provider = _provider(encode="encoded" in situation)
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

    return traced, traced_async, traced_read, provider.force_flush


def redfirst(situation: str) -> Any:
    """Ours, with redaction."""
    from redfirst.instrumentation import Redaction, configure, tool

    if situation == "disabled":
        configure()
        return tool(look), tool(look_async), tool(read), lambda: None
    provider = _provider(encode="encoded" in situation)
    configure(
        redact=Redaction(keys=("password", "token", "secret", "authorization"), patterns=("email", "api_key"))
    )
    return tool(look), tool(look_async), tool(read), provider.force_flush


def openinference(situation: str) -> Any:
    """OpenInference's tracer."""
    from openinference.instrumentation import OITracer, TraceConfig

    provider = _provider(encode="encoded" in situation)
    tracer = OITracer(provider.get_tracer("bench"), config=TraceConfig())
    return tracer.tool(look), tracer.tool(look_async), tracer.tool(read), provider.force_flush


def traceloop(situation: str) -> Any:
    """Traceloop's SDK on the same provider's processors."""
    from traceloop.sdk import Traceloop
    from traceloop.sdk.decorators import tool

    provider = _provider(encode="encoded" in situation)
    Traceloop.init(
        disable_batch=False,
        telemetry_enabled=False,
        processor=provider._active_span_processor,
        instruments=set(),
    )
    return (
        tool(name="look")(look),
        tool(name="look")(look_async),
        tool(name="read")(read),
        provider.force_flush,
    )


def langfuse(situation: str) -> Any:
    """Langfuse, its own exporter replaced by the one that does nothing."""
    from langfuse import Langfuse, observe

    provider = _provider(encode="encoded" in situation, quiet=False)
    Langfuse(
        public_key="pk",
        secret_key="sk",
        host="http://127.0.0.1:9",
        tracer_provider=provider,
        flush_at=512,
    )
    for processor in provider._active_span_processor._span_processors[1:]:
        processor.span_exporter.export = _counted
        batch = getattr(processor, "_batch_processor", None)
        if batch is not None:
            batch._exporter = processor.span_exporter
    wrap = observe(as_type="tool")
    return wrap(look), wrap(look_async), wrap(read), provider.force_flush


def _counted(spans: Any) -> None:
    EXPORTED[0] += len(spans)


def mlflow(situation: str) -> Any:
    """MLflow's trace decorator on its way to an OTLP endpoint, whose exporter does nothing."""
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["MLFLOW_TRACKING_URI"] = (
        "http://127.0.0.1:9/v1/traces"
    )
    import mlflow as flow
    from mlflow.tracing import provider as theirs

    wrap = flow.trace(span_type="TOOL")
    traced = wrap(look), wrap(look_async), wrap(read)
    encode = "encoded" in situation

    def export(spans: Any) -> None:
        _counted(spans)
        if encode:
            from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

            encode_spans(spans).SerializeToString()

    processors = theirs._get_tracer("bench").span_processor._span_processors
    for processor in processors:
        processor.span_exporter.export = export
    return *traced, lambda: [processor.force_flush() for processor in processors]


def _slice(situation: str, traced: Any, calls: int) -> None:
    plain, later, large, flush = traced
    if situation.startswith("50 kB"):
        text = "x" * 50_000
        for _ in range(calls):
            large(text)
    elif situation == "async":
        import asyncio

        async def all_calls() -> None:
            for number in range(calls):
                await later("Oslo", number, celsius=True)

        asyncio.run(all_calls())
    elif situation == "20 children":
        for _ in range(max(1, calls // 20)):
            _parent(plain)
    else:
        for number in range(calls):
            plain("Oslo", number, celsius=True)
    flush()


def _parent(plain: Any) -> None:
    from opentelemetry import trace

    with trace.get_tracer("bench").start_as_current_span("parent"):
        for number in range(20):
            plain("Oslo", number, celsius=True)


def work(variant: str, situation: str) -> None:
    """Answer each line with a number of calls by the CPU seconds they took."""
    try:
        traced = globals()[variant](situation)
        _slice(situation, traced, 60)
    except Exception as problem:  # noqa: BLE001 - a peer that has changed its API is left out, and said so
        print(json.dumps({"failed": f"{type(problem).__name__}: {problem}"[:300]}), flush=True)
        return
    print(json.dumps({"ready": True, "exported": EXPORTED}), flush=True)
    for line in sys.stdin:
        calls = int(line)
        begun = time.process_time()
        _slice(situation, traced, calls)
        print(json.dumps({"seconds": time.process_time() - begun}), flush=True)


def count_calls() -> int:
    """Python and C calls that one traced call of ours makes, without the function's own.

    On a plain provider with a batch processor and no redaction: what others' processors do is not ours to count.
    """
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from redfirst.instrumentation import configure, tool

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(InMemorySpanExporter(), schedule_delay_millis=60_000))
    trace.set_tracer_provider(provider)
    configure()
    traced = [tool(look)]
    plain = traced[0]
    for number in range(50):
        plain("Oslo", number, celsius=True)
    seen = 0

    def count(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal seen
        seen += event in ("call", "c_call")

    sys.setprofile(count)
    for number in range(10):
        plain("Oslo", number, celsius=True)
    sys.setprofile(None)
    return round(seen / 10) - 2  # the function itself, and our setprofile


# --- the parent: all variants in turn


class Worker:
    """One variant at work."""

    def __init__(self, python: str, variant: str, situation: str) -> None:
        environment = dict(os.environ)
        if situation == "disabled":
            environment["OTEL_SDK_DISABLED"] = "true"
        environment |= {
            "OTEL_TRACES_EXPORTER": "none",
            "TRACELOOP_TELEMETRY": "false",
            "PYTHONWARNINGS": "ignore",
        }
        self.variant = variant
        self._process = subprocess.Popen(
            [python, str(HERE), "--work", variant, situation],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        answer = self._answer()
        self.failed = answer.get("failed")
        if (
            self.failed is None
            and variant != "nothing"
            and situation != "disabled"
            and not answer["exported"][0]
        ):
            self.failed = "it exported nothing"

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)  # type: ignore[no-any-return]
        return {"failed": "it ended"}

    def seconds(self, calls: int) -> float:
        """CPU seconds of so many calls."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()
        return float(self._answer()["seconds"])

    def end(self) -> None:
        """Stop it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which is made when it is not there."""
    wanted = PEERS[peer]
    place = CACHE / f"{peer}-{hashlib.sha256(repr(wanted).encode()).hexdigest()[:8]}"
    python = place / "bin" / "python"
    if not (place / ".made").exists():
        print(f"installing {', '.join(wanted)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *wanted], check=True)
        (place / ".made").touch()
    return str(python)


def measure(situation: str, variants: dict[str, str], rounds: int, calls: int) -> dict[str, Any]:
    """Microseconds and ratios of every variant in one situation."""
    workers = [Worker(python, variant, situation) for variant, python in variants.items()]
    failed = {worker.variant: worker.failed for worker in workers if worker.failed}
    working = [worker for worker in workers if not worker.failed]
    taken: dict[str, list[float]] = {worker.variant: [] for worker in working}
    for number in range(rounds):
        for worker in working if number % 2 == 0 else reversed(working):
            taken[worker.variant].append(worker.seconds(calls) / calls * 1e6)
    for worker in working:
        worker.end()
    ours = taken["redfirst"]
    return {
        "us": {name: _middle(values) for name, values in taken.items()},
        "ratio": {
            name: _middle([(a / b if name == "sdk" else b / a) for a, b in zip(ours, values, strict=True)])
            for name, values in taken.items()
            if name not in ("redfirst", "nothing")
        },
        "failed": failed,
    }


def _middle(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def show(situation: str, found: dict[str, Any]) -> None:
    """One table."""
    print(f"\n{situation}")
    for name, us in found["us"].items():
        ratio = found["ratio"].get(name)
        said = ""
        if ratio is not None:
            what = "ours is of it" if name == "sdk" else "of ours"
            said = f"{ratio['median']:8.2f}x {what} ({ratio['low']:.2f}-{ratio['high']:.2f})"
        print(f"  {name:14} {us['median']:10.2f} us ({us['low']:.2f}-{us['high']:.2f}) {said}")
    for name, why in found["failed"].items():
        print(f"  {name:14} left out: {why}")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--situations", default=",".join(SITUATIONS))
    parser.add_argument(
        "--peers", default=",".join(PEERS), help="those to install and compare; empty for none"
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--gate", action="store_true", help=f"fail above {MOST_CALLS} calls per traced call")
    parser.add_argument("--work", nargs=2, metavar=("VARIANT", "SITUATION"), help=argparse.SUPPRESS)
    parser.add_argument("--count", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(*asked.work)
        return 0
    if asked.count:
        print(count_calls())
        return 0
    counted = int(subprocess.check_output([sys.executable, str(HERE), "--count"], text=True))
    print(f"{counted} Python and C calls per traced call (at most {MOST_CALLS})")
    variants = {"nothing": sys.executable, "sdk": sys.executable, "redfirst": sys.executable}
    for peer in filter(None, asked.peers.split(",")):
        variants[peer] = python_of(peer)
    found: dict[str, Any] = {"calls_per_call": counted, "goals": GOALS, "rounds": asked.rounds}
    for situation in asked.situations.split(","):
        found[situation] = measure(situation, variants, asked.rounds, asked.calls)
        show(situation, found[situation])
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 1 if asked.gate and counted > MOST_CALLS else 0


if __name__ == "__main__":
    sys.exit(main())

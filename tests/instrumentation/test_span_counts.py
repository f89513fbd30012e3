"""What became of the spans of this process, in numbers."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from redfirst.instrumentation import configure, force_flush, provider, shutdown, span_counts, tool
from redfirst.instrumentation.counting import Tally
from redfirst.instrumentation.counts import ExporterCounts, SpanCounts

look = tool(lambda: 1)


class Exporter(SpanExporter):
    """Does with each batch what it is told to."""

    def __init__(self, does: Any = SpanExportResult.SUCCESS) -> None:
        self.does = does
        self.entered, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        assert self.gate.wait(10)
        if isinstance(self.does, Exception):
            raise self.does
        return self.does  # type: ignore[no-any-return]

    def shutdown(self) -> None:
        return


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Exporter:
    """What ``configure`` exports to in this test; only a flush and a full batch send anything."""
    made = Exporter()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: made)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    return made


def counts() -> SpanCounts:
    """Those of the provider in use."""
    found = span_counts()
    assert found is not None
    return found


def of_exporter() -> ExporterCounts:
    """Those of its only exporter."""
    exporters = counts().exporters
    assert exporters is not None
    (one,) = exporters
    return one


def test_without_a_provider_there_is_nothing_to_count() -> None:
    """Asking makes no provider."""
    assert span_counts() is None
    assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def test_each_span_is_counted_once_on_its_way(exporter: Exporter) -> None:
    """Begun, ended, waiting, exported."""
    configure()
    look()
    look()
    left_open = provider.tracing().tracer.start_span("open")
    before = of_exporter()
    assert force_flush()
    after = of_exporter()

    assert (counts().started, counts().ended, counts().not_sampled) == (3, 2, 0)
    assert (before.exported, before.waiting) == (0, 2)
    assert (after.exported, after.waiting, after.lost) == (2, 0, 0)
    left_open.end()
    assert counts().ended == 3


def test_a_batch_that_was_not_delivered_is_lost(exporter: Exporter) -> None:
    """The exporter's own word for it."""
    exporter.does = SpanExportResult.FAILURE
    configure()
    look()
    force_flush()
    exporter.does = SpanExportResult.SUCCESS
    look()
    look()
    force_flush()

    assert (of_exporter().failed, of_exporter().exported, of_exporter().lost) == (1, 2, 1)


def test_what_an_exporter_raises_reaches_its_processor_and_is_a_loss(
    exporter: Exporter, caplog: pytest.LogCaptureFixture
) -> None:
    """The SDK logs it as it would without us."""
    exporter.does = RuntimeError("no route")
    configure()
    look()
    force_flush()

    assert "no route" in caplog.text
    assert (of_exporter().failed, of_exporter().exported, of_exporter().exporting) == (1, 0, 0)


def test_what_a_full_queue_drops_is_counted(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 2 spans in an export that hangs and 4 places in the queue, 5 of 11 are dropped."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
    exporter.gate.clear()
    configure()
    look()
    look()
    assert exporter.entered.wait(10)
    for _ in range(9):
        look()
    during = of_exporter()
    exporter.gate.set()
    force_flush()

    assert (during.exporting, during.waiting, during.queue_full, during.exported) == (2, 4, 5, 0)
    assert (of_exporter().exported, of_exporter().queue_full, of_exporter().waiting) == (6, 5, 0)


def test_what_a_sampler_drops_is_counted(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a provider of ours those of every tracer; the sampler still says what it is."""
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    made = configure()
    look()
    made.get_tracer("other").start_span("s").end()

    assert (counts().started, counts().not_sampled, counts().every_sampler) == (0, 2, True)
    assert counts().sampler == "AlwaysOffSampler"
    assert of_exporter().lost == 0


def test_a_joined_provider_stays_as_it_is(exporter: Exporter) -> None:
    """All its spans are counted, the drops of our decorators' alone; its sampler and its exporter are not touched."""
    host, seen = TracerProvider(shutdown_on_exit=False, sampler=ALWAYS_OFF), InMemorySpanExporter()
    processor = SimpleSpanProcessor(seen)
    host.add_span_processor(processor)
    trace.set_tracer_provider(host)
    configure(endpoint="http://h/v1/traces")
    look()
    host.get_tracer("host").start_span("s").end()

    assert (counts().started, counts().not_sampled, counts().every_sampler) == (0, 1, False)
    assert host.sampler is ALWAYS_OFF
    assert processor.span_exporter is seen
    assert "export" not in vars(seen)
    exporters = counts().exporters
    assert exporters is not None
    assert [(one.name, one.exported) for one in exporters] == [
        ("InMemorySpanExporter", None),
        ("Exporter", 0),
    ]
    host.shutdown()


def test_spans_of_the_host_go_to_our_exporter_and_are_counted(exporter: Exporter) -> None:
    """Whoever makes them."""
    host = TracerProvider(shutdown_on_exit=False)
    trace.set_tracer_provider(host)
    host.get_tracer("host").start_span("before us").end()
    configure(endpoint="http://h/v1/traces")
    host.get_tracer("host").start_span("s").end()
    force_flush()

    assert (counts().started, counts().ended) == (1, 1)
    assert (of_exporter().exported, of_exporter().lost) == (1, 0)
    host.shutdown()


def test_spans_after_a_shutdown_are_lost_unless_it_is_configured_again(exporter: Exporter) -> None:
    """The exporter is closed; a new one takes what comes."""
    configure()
    look()
    shutdown()
    look()
    look()
    assert (of_exporter().exported, of_exporter().already_shutdown) == (1, 2)

    configure()
    look()
    force_flush()
    exporters = counts().exporters
    assert exporters is not None
    assert sum(one.lost for one in exporters) == 0


def test_a_processor_that_picks_among_spans_drops_none(
    exporter: Exporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves out is not told from what its queue dropped."""

    class Picking(BatchSpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            return

    monkeypatch.setenv("REDFIRST_SPAN_REPORT", str(tmp_path))
    host = TracerProvider(shutdown_on_exit=False)
    host.add_span_processor(Picking(Exporter()))
    configure(provider=host)
    look()

    assert (of_exporter().exported, of_exporter().queue_full) == (0, None)
    host.shutdown()


def test_under_examination_a_hosts_exporters_are_counted_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come after ``configure``, too, from their first span on."""
    monkeypatch.setenv("REDFIRST_SPAN_REPORT", str(tmp_path))
    host, first, later = TracerProvider(shutdown_on_exit=False), Exporter(), Exporter()
    host.add_span_processor(SimpleSpanProcessor(first))
    trace.set_tracer_provider(host)
    configure()
    look()
    host.add_span_processor(SimpleSpanProcessor(later))
    look()

    exporters = counts().exporters
    assert exporters is not None
    assert [one.exported for one in exporters] == [2, 1]
    (report,) = tmp_path.glob("*.json")
    assert SpanCounts.from_json(json.loads(report.read_bytes())).provider == counts().provider
    assert SpanCounts.from_json(json.loads(json.dumps(asdict(counts())))) == counts()
    host.shutdown()


def test_threads_lose_no_count() -> None:
    """Reading in between changes nothing."""
    tally = Tally()

    def work() -> None:
        for _ in range(20_000):
            tally.add()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        tally.read()

    assert tally.read() == tally.read() == 80_000

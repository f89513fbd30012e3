"""The way to the exporter: bounded, counted, watched over."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from redfirst.instrumentation import configure, exporting, force_flush, provider, shutdown, span_counts, tool
from redfirst.instrumentation.counts import ExporterCounts


class Exporter(SpanExporter):
    """Takes spans, holds them up, or dies, as a test says."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.open = threading.Event()
        self.open.set()
        self.entered = threading.Event()
        self.dies = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.entered.set()
        self.open.wait(20)
        if self.dies:
            self.dies -= 1
            raise SystemExit  # ends a thread without a word
        self.names += [span.name for span in spans]
        return SpanExportResult.SUCCESS


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exporter]:
    made = Exporter()
    exporting._said.clear()
    monkeypatch.setattr(provider, "_otlp_exporter", lambda endpoint: made)
    yield made
    made.open.set()


@tool
def look(text: str) -> None:
    """Look."""


def counted() -> ExporterCounts:
    counts = span_counts()
    assert counts is not None
    assert counts.exporters is not None
    return counts.exporters[0]


def hold_up(exporter: Exporter) -> None:
    """One span is in an export that does not return."""
    exporter.open.clear()
    look("first")
    threading.Thread(target=force_flush, args=(10,)).start()
    assert exporter.entered.wait(20)


def test_what_is_too_large_for_the_queue_is_dropped_and_counted_as_that(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes are bounded, whatever the number of spans; one log line tells of it."""
    monkeypatch.setenv("REDFIRST_MAX_QUEUE_BYTES", "100000")
    configure()
    hold_up(exporter)
    for _ in range(10):
        look("x" * 10_000)  # each is counted twice: both vocabularies say it

    found = counted()
    assert (found.bytes_full, found.queue_full, found.waiting) == (6, 0, 4)
    assert found.lost == 6
    assert len([record for record in caplog.records if "queue of spans is full" in record.message]) == 1
    exporter.open.set()
    assert force_flush()
    assert len(exporter.names) == 5


def test_a_value_larger_than_the_whole_queue_goes_through(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span is never dropped for its own size."""
    monkeypatch.setenv("REDFIRST_MAX_QUEUE_BYTES", "1000")
    configure()
    look("x" * 50_000)

    assert force_flush()
    assert exporter.names == ["execute_tool look"]


def test_the_number_of_queued_spans_is_bounded_as_the_standard_variable_says(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OTEL_BSP_MAX_QUEUE_SIZE."""
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
    configure()
    hold_up(exporter)
    for _ in range(10):
        look("x")

    assert (counted().queue_full, counted().bytes_full, counted().waiting) == (6, 0, 4)


def test_a_worker_that_died_is_replaced_and_that_is_told(
    exporter: Exporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exporter that ends its thread costs one batch, not all that come after."""
    monkeypatch.setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)  # it dies, and that is meant
    configure()
    exporter.dies = 1
    look("lost")
    force_flush(2_000)
    look("a")
    look("b")

    assert force_flush()
    assert exporter.names == ["execute_tool look"] * 2
    assert (counted().restarts, counted().failed, counted().exported) == (1, 1, 2)


def test_the_age_of_the_last_export_is_told(exporter: Exporter, monkeypatch: pytest.MonkeyPatch) -> None:
    """None before the first; seconds after it."""
    configure()
    assert counted().last_export_age is None
    look("a")
    monkeypatch.setattr(exporting.time, "time", lambda: 1_000.0)
    force_flush()
    monkeypatch.setattr(exporting.time, "time", lambda: 1_007.0)
    assert counted().last_export_age == 7.0


def test_a_span_that_ends_while_its_own_thread_works_on_the_queue_is_queued(exporter: Exporter) -> None:
    """The collector of garbage ends the spans of streams in whatever thread it runs, between any two lines."""
    processor = exporting.BoundedProcessor(exporter)
    ended: Any = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("a")
    ended.end()

    class Sizes(deque[int]):
        def popleft(self) -> int:
            if not exporter.names and len(processor.queue) == 0:
                processor.on_end(ended)
            return super().popleft()

    processor._sizes = Sizes()

    def work() -> None:
        processor.on_end(ended)
        processor.force_flush(5_000)
        processor.shutdown()

    thread = threading.Thread(target=work, daemon=True)  # where it waits for itself the test must not
    thread.start()
    thread.join(10)
    assert exporter.names == ["a", "a"]
    assert processor._bytes == 0


def test_a_forked_child_exports_its_own_spans_and_none_of_its_parents(exporter: Exporter) -> None:
    """The queue is empty there, and a thread of its own empties it."""
    configure()
    look("parent")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        look("child")
        look("child")
        done = force_flush(10_000)
        os.write(write, f"{done} {len(exporter.names)}".encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        assert told.read() == "True 2"
    os.waitpid(child, 0)
    assert force_flush()
    assert exporter.names == ["execute_tool look"]


def test_shutdown_hands_over_what_is_queued(exporter: Exporter) -> None:
    """And what comes later is counted as too late."""
    configure()
    look("a")
    shutdown()

    assert exporter.names == ["execute_tool look"]
    look("late")
    assert (counted().already_shutdown, counted().exported) == (1, 1)


@pytest.mark.parametrize("wrong", ["-1", "0", "many", "9" * 30])
def test_a_wrong_number_in_the_environment_breaks_nothing(
    wrong: str, exporter: Exporter, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """It is named, and the usual one is used."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", wrong)
    configure()
    look("a")

    assert force_flush()
    assert "OTEL_BSP_SCHEDULE_DELAY" in caplog.text

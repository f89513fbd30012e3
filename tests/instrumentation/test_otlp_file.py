"""The file of OTLP/JSON lines."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult

from redfirst.evaluators.otlp import decode
from redfirst.instrumentation import agent, current_run, faults, otlp_file, tool
from redfirst.instrumentation.otlp_file import OtlpFileExporter

SUCCESS, FAILURE = SpanExportResult.SUCCESS, SpanExportResult.FAILURE


def some_spans(spans: Any, n: int = 1) -> Any:
    """Spans to export."""
    for _ in range(n):
        tool(lambda: "x")()
    found = spans.all()
    spans.clear()
    return found


def test_the_file_reads_back_to_the_same_spans(spans: Any, tmp_path: Path) -> None:
    """Ids in hex, times, status, attributes of every type, events and links, resource and scope."""
    host = TracerProvider(resource=Resource({"service.name": "shop", "n": 3}), shutdown_on_exit=False)
    link = trace.Link(trace.SpanContext(2**127, 2**63, is_remote=True), {"why": "retry"})

    @tool
    def fail(x: float) -> None:
        raise KeyError(x)

    @agent
    def handle(text: str) -> str:
        current_run().state({"a": 1})
        with pytest.raises(KeyError):
            fail(1.5)
        return text

    handle("héllo")
    other: Any = host.get_tracer("host", "1.2").start_span("odd", links=[link], kind=trace.SpanKind.CLIENT)
    other.set_attributes(
        {"b": b"\x00\xff", "f": float("nan"), "l": [1, 2], "t": True, "i": -(2**63), "inf": 1e400}
    )
    other.end()
    ended = [*spans.all(), other]

    exporter = OtlpFileExporter(tmp_path / "deep" / "spans.jsonl")
    assert exporter.export(ended) is SUCCESS
    assert exporter.export(spans.all()) is SUCCESS
    exporter.shutdown()

    written = (tmp_path / "deep" / "spans.jsonl").read_bytes()
    assert written.count(b"\n") == 2
    decoded = decode(written)
    assert not decoded.refused
    read = {span.span_id: span for span in decoded.spans}
    assert len(decoded.spans) == 5
    for span in ended:
        found = read[f"{span.context.span_id:016x}"]
        assert found.trace_id == f"{span.context.trace_id:032x}"
        assert found.parent_id == (f"{span.parent.span_id:016x}" if span.parent else None)
        assert (found.name, found.start_ns, found.end_ns) == (span.name, span.start_time, span.end_time)
        assert found.status == span.status.status_code.value
        assert found.status_message == (span.status.description or "")
        assert found.scope == span.instrumentation_scope.name
        assert repr(dict(found.attributes)) == repr(dict(span.attributes))
        assert [(e.name, e.time_ns, dict(e.attributes)) for e in found.events] == [
            (e.name, e.timestamp, dict(e.attributes)) for e in span.events
        ]
    odd = read[f"{other.context.span_id:016x}"]
    assert (odd.links[0].trace_id, odd.links[0].span_id) == (f"{2**127:032x}", f"{2**63:016x}")
    assert dict(odd.links[0].attributes) == {"why": "retry"}
    assert dict(odd.resource) == {"service.name": "shop", "n": 3}


def test_one_span_that_cannot_be_encoded_takes_no_other_with_it(
    spans: Any, tmp_path: Path, faults_swallowed: None
) -> None:
    """Another instrumentation may put anything on its spans; ours are written, and the loss is counted."""
    good = some_spans(spans, 2)
    bad: Any = TracerProvider(shutdown_on_exit=False).get_tracer("host").start_span("\ud800")
    bad.end()
    exporter = OtlpFileExporter(tmp_path / "f")

    assert exporter.export([good[0], bad, good[1]]) is SUCCESS
    assert exporter.export([bad]) is FAILURE
    assert exporter.export([bad, bad]) is FAILURE
    exporter.shutdown()

    assert len(decode((tmp_path / "f").read_bytes()).spans) == 2
    assert faults() == {"encode a span": 4}


def test_threads_and_exporters_share_a_file_line_by_line(spans: Any, tmp_path: Path) -> None:
    """Two exporters, eight threads: every line is whole."""
    batch = some_spans(spans, 20)
    exporters = [OtlpFileExporter(tmp_path / "f") for _ in range(2)]

    def write(n: int) -> None:
        for _ in range(20):
            assert exporters[n % 2].export(batch) is SUCCESS

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for exporter in exporters:
        exporter.shutdown()

    assert len(decode((tmp_path / "f").read_bytes()).spans) == 8 * 20 * 20


WRITER = """
import sys
from redfirst.instrumentation import configure, shutdown, tool
configure(file=sys.argv[1])
@tool
def look(x): return x
for n in range(200): look("v" * 2000)
shutdown()
"""


def test_processes_share_a_file_line_by_line(tmp_path: Path) -> None:
    """Workers of one service write into one file."""
    path = tmp_path / "f"
    workers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path)]) for _ in range(3)]

    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert len(decode(path.read_bytes()).spans) == 600


def test_a_full_disk_is_a_failure_and_leaves_no_half_line(spans: Any, tmp_path: Path) -> None:
    """What was written stays readable, and writing goes on when there is room again."""
    batch = some_spans(spans, 5)
    exporter = OtlpFileExporter(tmp_path / "f")
    assert exporter.export(batch) is SUCCESS
    size = (tmp_path / "f").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, before[1]))
    try:
        assert exporter.export(batch) is FAILURE
        assert (tmp_path / "f").stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert exporter.export(batch) is SUCCESS
    exporter.shutdown()

    assert len(decode((tmp_path / "f").read_bytes()).spans) == 10


def test_a_device_that_is_full_is_a_failure_and_closing_it_is_none(spans: Any) -> None:
    """Nothing is left in a buffer to fail later."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    exporter = OtlpFileExporter("/dev/full")

    assert exporter.export(some_spans(spans)) is FAILURE
    exporter.shutdown()


def test_short_writes_are_continued(spans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system may take less than it was given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:100])))
    exporter = OtlpFileExporter(tmp_path / "f")

    assert exporter.export(some_spans(spans, 3)) is SUCCESS
    exporter.shutdown()
    assert len(decode((tmp_path / "f").read_bytes()).spans) == 3


def test_without_file_locks_a_process_still_writes_whole_lines(
    spans: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Windows."""
    monkeypatch.setattr(otlp_file, "fcntl", None)
    exporter = OtlpFileExporter(tmp_path / "f")

    assert exporter.export(some_spans(spans, 2)) is SUCCESS
    exporter.shutdown()
    assert len(decode((tmp_path / "f").read_bytes()).spans) == 2


def test_after_shutdown_a_batch_is_a_failure(spans: Any, tmp_path: Path) -> None:
    """And shutting down twice is none."""
    exporter = OtlpFileExporter(tmp_path / "f")
    assert exporter.force_flush()
    exporter.shutdown()
    exporter.shutdown()

    assert exporter.export(some_spans(spans)) is FAILURE
    assert (tmp_path / "f").read_bytes() == b""

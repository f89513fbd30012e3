"""The exporters that programs have: Python's over both protocols, and JavaScript's over all three."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from redfirst.collector_processor.receiving.tenants import Tenants
from tests.frameworks.conftest import DEV, environment_of
from tests.otlp.items import proves
from tests.otlp.receiver import Receiver
from tests.service.conftest import a_run

HERE = Path(__file__).parent
PYTHON = ("http", "grpc")
NODE = {"http/protobuf": "gzip", "http/json": "none", "grpc": "gzip"}


def exporter(protocol: str, receiver: Receiver, **more: str) -> SpanExporter:
    if protocol == "grpc":
        return GrpcExporter(receiver.grpc, insecure=True, timeout=20, headers=tuple(more.items()))
    address = f"http://{receiver.http}/v1/traces"
    return HttpExporter(address, timeout=20, compression=Compression.Gzip, headers=more)


@proves(6, 12)
@pytest.mark.parametrize("protocol", PYTHON)
def test_python_delivers(receiver, kept, protocol):
    """Every span that the exporter was told is exported is durable."""
    sender = exporter(protocol, receiver)
    runs = [a_run(spans=4) for _ in range(5)]
    assert {sender.export(run) for run in runs} == {SpanExportResult.SUCCESS}
    sender.shutdown()
    assert {span.span_id for span in kept()} == {
        span.context.span_id.to_bytes(8, "big") for run in runs for span in run
    }


@proves(15, 16)
@pytest.mark.parametrize("protocol", PYTHON)
def test_python_comes_again_when_pushed_back(receiver, kept, protocol):
    """The exporter finds the time to wait where we put it, and delivers when there is room again."""
    receiver.journal._budget.most = 0
    rejected = receiver.metrics.value("redfirst_rejected_total", reason="full")
    freeing = threading.Thread(target=freed_after_a_refusal, args=(receiver, rejected))
    freeing.start()
    sender = exporter(protocol, receiver)
    assert sender.export(a_run(spans=2)) is SpanExportResult.SUCCESS
    sender.shutdown()
    freeing.join()
    assert len(kept()) == 2


@proves(21)
@pytest.mark.parametrize("protocol", PYTHON)
def test_python_sends_a_token(fresh, protocol):
    """As a header over HTTP, as metadata over gRPC; without one nothing is delivered, and not tried again."""
    with fresh(tenants=Tenants([("north", "n-1")])) as receiver:
        bare, named = exporter(protocol, receiver), exporter(protocol, receiver, authorization="Bearer n-1")
        assert bare.export(a_run(spans=2)) is SpanExportResult.FAILURE
        assert receiver.metrics.value("redfirst_rejected_total", reason="unauthenticated") == 1
        assert named.export(a_run(spans=2)) is SpanExportResult.SUCCESS
        bare.shutdown()
        named.shutdown()
        assert [record.tenant for record in receiver.records()] == ["north"]


@proves(6, 12)
@pytest.mark.parametrize("protocol", NODE)
def test_javascript_delivers(receiver, kept, protocol):
    """The same over protobuf, JSON and gRPC: every exported span is durable, with its attributes and events."""
    assert sent_by_node(receiver, protocol, count=3) == 3
    spans = kept()
    assert [span.name for span in spans] == ["inner", "outer"] * 3
    outer = spans[1]
    values = {pair.key: pair.value for pair in outer.attributes}
    assert (values["n"].int_value, values["half"].double_value, values["yes"].bool_value) == (0, 0.5, True)
    assert [one.string_value for one in values["list"].array_value.values] == ["a", "ä"]
    assert spans[0].parent_span_id == outer.span_id
    assert [event.name for event in spans[0].events] == ["e"]


@proves(15, 16)
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_javascript_comes_again_when_pushed_back(receiver, kept, protocol):
    """And delivers when there is room again. Its gRPC exporter never comes again, whatever it is told."""
    receiver.journal._budget.most = 0
    rejected = receiver.metrics.value("redfirst_rejected_total", reason="full")
    freeing = threading.Thread(target=freed_after_a_refusal, args=(receiver, rejected))
    freeing.start()
    assert sent_by_node(receiver, protocol, count=1) == 1
    freeing.join()
    assert len(kept()) == 2


def freed_after_a_refusal(receiver: Receiver, rejected: float) -> None:
    deadline = time.monotonic() + 30
    while receiver.metrics.value("redfirst_rejected_total", reason="full") == rejected:
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    receiver.journal._budget.most = None


def sent_by_node(receiver: Receiver, protocol: str, *, count: int) -> int:
    environment_of("node", "node_modules/@opentelemetry/sdk-trace-node")
    address = receiver.grpc if protocol == "grpc" else receiver.http
    done = subprocess.run(
        [shutil.which("node") or "node", HERE / "node" / "send.cjs"],
        env={
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "NODE_PATH": str(DEV / "node" / "node_modules"),
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{address}",
            "OTEL_EXPORTER_OTLP_PROTOCOL": protocol,
            "OTEL_EXPORTER_OTLP_COMPRESSION": NODE[protocol],
            "COUNT": str(count),
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)

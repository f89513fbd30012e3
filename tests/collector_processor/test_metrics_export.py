"""The service's metrics by OTLP have the names that a conversion turns into those of ``/metrics``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any, cast

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.metrics_export import MetricsExport
from redfirst.collector_processor.settings import MetricsExportSettings
from redfirst.evaluators.errors import ConfigurationError


class Endpoint:
    """An OTLP endpoint on loopback that answers as it is told and keeps what it was sent."""

    def __init__(self) -> None:
        self.status = 200
        self.got: list[tuple[str, str | None, ExportMetricsServiceRequest]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                sent = ExportMetricsServiceRequest.FromString(body)
                endpoint.got.append((self.path, self.headers.get("authorization"), sent))
                self.send_response(endpoint.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


def exported(endpoint: Endpoint, metrics: Metrics, said: list[str], *, exports: int = 1) -> None:
    """Let the export work until it has sent this often."""
    settings = MetricsExportSettings(
        endpoint=endpoint.url, headers={"authorization": "env:KEY"}, interval_seconds=0.01, timeout=5
    )
    export = MetricsExport(settings, environment={"KEY": "Bearer abc"}, say=said.append)
    export.start(cast("Parts", type("", (), {"metrics": metrics})()))
    end = time.monotonic() + 20
    while len(endpoint.got) < exports and time.monotonic() < end:
        time.sleep(0.01)
    export.stop(10)


def test_counters_gauges_and_histograms_arrive(endpoint: Endpoint) -> None:
    """``redfirst_traces_total`` is the sum ``redfirst.traces``; seconds are a unit; labels are attributes."""
    metrics = Metrics()
    metrics.add("redfirst_traces_total", 3, gen_ai_agent_name="support", redfirst_verdict="clean")
    metrics.gauge("redfirst_journal_bytes", lambda: 7.0)
    for seconds in (0.4, 0.5, 7200.0):
        metrics.observe("redfirst_trace_score_duration_seconds", seconds)
    exported(endpoint, metrics, [])
    path, key, sent = endpoint.got[0]
    (resource,) = sent.resource_metrics
    found: dict[str, Any] = {one.name: one for one in resource.scope_metrics[0].metrics}

    assert (path, key) == ("/v1/metrics", "Bearer abc")
    assert ("service.name", "redfirst") in [
        (one.key, one.value.string_value) for one in resource.resource.attributes
    ]
    traces = found["redfirst.traces"].sum
    assert traces.is_monotonic
    assert traces.aggregation_temporality == 2  # cumulative
    (point,) = traces.data_points
    assert point.as_double == 3.0
    assert {one.key: one.value.string_value for one in point.attributes} == {
        "gen_ai.agent.name": "support",
        "redfirst.verdict": "clean",
    }
    assert found["redfirst.journal"].unit == "By"
    assert found["redfirst.journal"].gauge.data_points[0].as_double == 7.0
    took = found["redfirst.trace_score_duration"]
    (point,) = took.histogram.data_points
    assert took.unit == "s"
    assert (point.count, point.sum, point.min, point.max) == (3, 7200.9, 0.4, 7200.0)
    assert list(point.bucket_counts) == [0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]


def test_an_endpoint_that_refuses_is_said_once_and_counted(endpoint: Endpoint) -> None:
    """Every failed export is counted; people are told when it begins."""
    endpoint.status = 400
    metrics, said = Metrics(), list[str]()
    exported(endpoint, metrics, said, exports=3)

    assert metrics.value("redfirst_metrics_exports_total", outcome="failed") >= 3
    assert said == ["metrics: the OTLP endpoint does not take them"]


def test_a_variable_that_is_not_set_stops_the_start(endpoint: Endpoint) -> None:
    """The message names it."""
    settings = MetricsExportSettings(endpoint=endpoint.url, headers={"authorization": "env:KEY"})
    with pytest.raises(
        ConfigurationError, match="serve: metrics_export: header authorization: the environment variable KEY"
    ):
        MetricsExport(settings, environment={})

"""The service's own metrics as OTLP, for a backend that scrapes nothing.

Names are those of ``/metrics`` by OpenTelemetry's rules: a Collector's or Prometheus' conversion gives the same names again
(``redfirst.traces`` → ``redfirst_traces_total``, unit ``s`` → ``_seconds``; opentelemetry.io, "Prometheus and
OpenMetrics Compatibility").
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.metrics.export import Histogram as HistogramData
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.metrics import Metrics, described
from redfirst.collector_processor.posting.poster import checked_headers, from_environment
from redfirst.collector_processor.settings import MetricsExportSettings

_ATTRIBUTES: Mapping[str, str] = {
    "service_name": "service.name",
    "gen_ai_agent_name": "gen_ai.agent.name",
    "gen_ai_evaluation_name": "gen_ai.evaluation.name",
    "redfirst_verdict": "redfirst.verdict",
    "redfirst_ending": "redfirst.ending",
    "redfirst_rule": "redfirst.rule",
}
_UNITS = {"_seconds": "s", "_bytes": "By"}
_CUMULATIVE = AggregationTemporality.CUMULATIVE


class MetricsExport:
    """Sends all metrics every so often, as a ``Companion`` of the service."""

    destinations: tuple[str, ...] = ()

    def __init__(
        self,
        settings: MetricsExportSettings,
        *,
        environment: Mapping[str, str] = os.environ,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """
        Raises:
            ConfigurationError: a variable that the settings name is not set.
        """
        logging.getLogger(OTLPMetricExporter.__module__).disabled = True  # said once, below, and counted
        where = "serve: metrics_export"
        base = from_environment(settings.endpoint, environment, where).rstrip("/")
        self._exporter = OTLPMetricExporter(
            endpoint=f"{base}/v1/metrics",
            headers=checked_headers(settings.headers, environment, where),
            timeout=settings.timeout,
        )
        self._interval = settings.interval_seconds
        self._timeout = settings.timeout
        self._say = say
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="metrics-export", daemon=True)
        self._metrics = Metrics()
        self._began_ns = time.time_ns()
        self._down = False

    def start(self, parts: Parts) -> None:
        """Begin to send."""
        self._metrics = parts.metrics
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Send what stands at the end, once, and end."""
        self._stop.set()
        self._thread.join(timeout)

    def trouble(self) -> str | None:
        """None: a far end that is down is no trouble of the service."""
        return None

    def _work(self) -> None:
        while not self._stop.wait(self._interval):
            self._send()
        self._send()

    def _send(self) -> None:
        data = otlp(self._metrics, began_ns=self._began_ns, now_ns=time.time_ns())
        result = self._exporter.export(data, timeout_millis=self._timeout * 1000)
        down = result is not MetricExportResult.SUCCESS
        self._metrics.add("redfirst_metrics_exports_total", outcome="failed" if down else "delivered")
        if down != self._down:
            self._down = down
            self._say("metrics: the OTLP endpoint " + ("does not take them" if down else "takes them again"))


def otlp(metrics: Metrics, *, began_ns: int, now_ns: int) -> MetricsData:
    """All metrics as cumulative sums, gauges and histograms since ``began_ns`` (Unix nanoseconds)."""
    resource = Resource.create({"service.name": "redfirst", "service.version": version("redfirst")})
    scope = InstrumentationScope("redfirst", version("redfirst"))
    found = [*_numbers(metrics, began_ns, now_ns), *_histograms(metrics, began_ns, now_ns)]
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, found, "")], "")])


def _numbers(metrics: Metrics, began_ns: int, now_ns: int) -> Iterator[Metric]:
    for name, series in sorted(metrics.values().items()):
        kind, text = described(name)
        points = [
            NumberDataPoint(_attributes(labels), began_ns, now_ns, float(value))
            for labels, value in sorted(series.items())
        ]
        counted = kind == "counter" or name.endswith(("_count", "_sum"))
        yield _metric(name, text, Sum(points, _CUMULATIVE, True) if counted else Gauge(points))


def _histograms(metrics: Metrics, began_ns: int, now_ns: int) -> Iterator[Metric]:
    for name, series in sorted(metrics.histograms().items()):
        points = [
            HistogramDataPoint(
                _attributes(labels),
                began_ns,
                now_ns,
                count=one.count,
                sum=one.sum,
                bucket_counts=one.counts,
                explicit_bounds=one.bounds,
                min=one.least,
                max=one.most,
            )
            for labels, one in sorted(series.items())
        ]
        yield _metric(name, described(name)[1], HistogramData(points, _CUMULATIVE))


def _metric(name: str, text: str, data: Sum | Gauge | HistogramData) -> Metric:
    """Under OpenTelemetry's name: the unit and ``_total``, which a conversion adds, are not part of it."""
    base = name.removesuffix("_total")
    end = next((end for end in _UNITS if base.endswith(end)), "")
    return Metric(
        "redfirst." + base.removesuffix(end).removeprefix("redfirst_"), text, _UNITS.get(end, ""), data
    )


def _attributes(labels: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {_ATTRIBUTES.get(name, name): value for name, value in labels}

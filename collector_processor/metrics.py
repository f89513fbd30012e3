"""Counters, gauges and summaries in Prometheus' text format; nothing else, so nothing to install."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping

from redfirst.collector_processor.histogram import BOUNDS, Histogram

_Labels = tuple[tuple[str, str], ...]

MOST_SERIES = 1000
"""Series of one name: what a trace can name (agents) must not be able to fill the memory. The rest are ``other``."""

_LONGEST_LABEL = 200
"""Characters of a label: the same for how long its name may be."""

_HELP: Mapping[str, tuple[str, str]] = {
    "redfirst_requests_total": ("counter", "Export requests by protocol, signal and result."),
    "redfirst_spans_accepted_total": ("counter", "Spans acknowledged after they were durable."),
    "redfirst_logs_accepted_total": ("counter", "Log records acknowledged after they were durable."),
    "redfirst_received_bytes_total": ("counter", "Bytes of requests received, unpacked, by protocol."),
    "redfirst_receive_budget_bytes": (
        "gauge",
        "Bytes that requests in flight may take over all connections.",
    ),
    "redfirst_receiving_bytes": ("gauge", "Bytes that requests in flight take."),
    "redfirst_odd_records_total": (
        "counter",
        "Records kept although something is wrong with them, and values replaced in them, by what it is.",
    ),
    "redfirst_certificate_reloads_total": (
        "counter",
        "Changed certificates of the OTLP ports, by whether they were taken or refused.",
    ),
    "redfirst_rejected_total": ("counter", "Requests or records refused, by reason."),
    "redfirst_journal_write_seconds": ("summary", "Write of one batch to the journal."),
    "redfirst_journal_fsync_seconds": ("summary", "Sync of one batch to the medium."),
    "redfirst_journal_records_total": ("counter", "Requests written to the journal."),
    "redfirst_journal_failures_total": ("counter", "Failed writes or syncs of the journal, by reason."),
    "redfirst_journal_quarantined_bytes_total": (
        "counter",
        "Bytes that are no record and were kept aside, by reason.",
    ),
    "redfirst_journal_removed_segments_total": ("counter", "Segments removed by retention, by reason."),
    "redfirst_journal_bytes": ("gauge", "Size of the journal."),
    "redfirst_journal_room_bytes": (
        "gauge",
        "Bytes that may be journalled before senders are asked to wait.",
    ),
    "redfirst_journal_written_bytes_total": (
        "counter",
        "Bytes written to the journal, compressed and framed.",
    ),
    "redfirst_journal_body_bytes_total": (
        "counter",
        "Bytes of the requests that were written, before compression.",
    ),
    "redfirst_journal_pinned_segments": ("gauge", "Segments kept past retention for flagged runs."),
    "redfirst_journal_damaged_total": ("counter", "Stretches of the journal that held no whole record."),
    "redfirst_cuts_total": ("counter", "Traces released by the assembler, by reason."),
    "redfirst_late_total": (
        "counter",
        "Traces that spans came for after they were judged, by what became of it.",
    ),
    "redfirst_traces_open": ("gauge", "Traces that are still being assembled."),
    "redfirst_scoring_runs": ("gauge", "Traces at the scorer."),
    "redfirst_lag_seconds": ("gauge", "How long the oldest due trace has been waiting for its verdict."),
    "redfirst_landed_total": ("counter", "Traces whose verdicts were stored, by state."),
    "redfirst_traces_total": (
        "counter",
        "Runs scored for the first time, by service, agent, ending and verdict.",
    ),
    "redfirst_findings_total": (
        "counter",
        "What checks that flag found in runs scored for the first time, by check, service and agent.",
    ),
    "redfirst_evaluation_score": ("histogram", "Scores of runs scored for the first time, by check."),
    "redfirst_traces_rescored_total": ("counter", "Later versions of runs, by whether the verdict changed."),
    "redfirst_trace_score_duration_seconds": (
        "histogram",
        "From the last span of a run to its stored verdict, settle time included.",
    ),
    "redfirst_scorer_restarts_total": (
        "counter",
        "Scorer processes that had to be started again, by reason.",
    ),
    "redfirst_unscored_total": ("counter", "Runs stored without a verdict, by reason."),
    "redfirst_evaluator_seconds_total": ("counter", "Seconds that each check took."),
    "redfirst_inconclusive_total": ("counter", "Verdicts that came to no answer, by check and reason."),
    "redfirst_abandoned_total": ("counter", "Runs told to be abandoned, by agent."),
    "redfirst_truncated_runs_total": ("counter", "Judgements of runs too large to be judged whole."),
    "redfirst_truncated_spans_total": ("counter", "Spans and log records that were left out of them."),
    "redfirst_expired_runs_total": ("counter", "Runs whose verdicts went by their age."),
    "redfirst_erased_on_landing_total": (
        "counter",
        "Traces that were still open when all runs of their user or session were erased, and went when they landed.",
    ),
    "redfirst_outbox_dropped_total": (
        "counter",
        "Things not told any more to receivers that are configured no more, by destination and reason.",
    ),
    "redfirst_grpc_restarts_total": (
        "counter",
        "Servers on the gRPC port that ended by themselves and were begun anew.",
    ),
    "redfirst_joins_truncated_total": ("counter", "Conversations with more traces than are judged together."),
    "redfirst_scorer_output_dropped_bytes_total": (
        "counter",
        "What checks printed beyond what is passed on.",
    ),
    "redfirst_store_failures_total": ("counter", "Transactions of the store that had to be repeated."),
    "redfirst_assembly_failures_total": ("counter", "Journal records the assembler could not read."),
    "redfirst_forward_requests_total": (
        "counter",
        "Export requests to a destination, by outcome and reason.",
    ),
    "redfirst_forward_lag_seconds": ("gauge", "Age of the oldest request a destination has not been given."),
    "redfirst_forward_rejected_total": (
        "counter",
        "Records that a destination refused in a partial success, by signal.",
    ),
    "redfirst_forward_dead_letters_total": ("counter", "Requests kept aside as refused for good, by reason."),
    "redfirst_forward_dropped_total": ("counter", "Requests given up, by reason."),
    "redfirst_forward_failures_total": ("counter", "Failed readings of the journal and of the store."),
    "redfirst_forward_missing_segments_total": (
        "counter",
        "Journal segments that were gone before a destination was given them.",
    ),
    "redfirst_sink_runs_total": (
        "counter",
        "Runs told to a backend, or tried to be, by outcome and reason.",
    ),
    "redfirst_alert_changes_total": ("counter", "Changes of an alert, by the status it changed to."),
    "redfirst_alert_failures_total": ("counter", "Failures in keeping alerts, by reason."),
    "redfirst_alert_notices_waiting": ("gauge", "Notices that are not delivered yet."),
    "redfirst_alert_posts_total": ("counter", "Posts to a webhook, by outcome and reason."),
    "redfirst_alerts_firing": ("gauge", "Alerts that fire."),
    "redfirst_alerts_no_data": ("gauge", "Alerts whose window holds too few runs."),
    "redfirst_metrics_exports_total": ("counter", "Exports of these metrics by OTLP, by outcome."),
    "redfirst_rules_reloads_total": ("counter", "Edited rules files, by whether they were taken or refused."),
    "redfirst_ready": ("gauge", "1 when /readyz says so."),
}


class Metrics:
    """Numbers by name and labels. Safe from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, dict[_Labels, float]] = {}
        self._histograms: dict[str, dict[_Labels, Histogram]] = {}
        self._gauges: dict[str, Callable[[], float]] = {}
        self._examples: dict[tuple[str, _Labels], str] = {}

    def add(self, name: str, value: float = 1, *, trace_id: str = "", **labels: str) -> None:
        """Add to a counter; ``trace_id`` is of the trace that it was for, the last of which OpenMetrics shows."""
        with self._lock:
            series = self._values.setdefault(name, {})
            key = self._bounded(series, labels)
            series[key] = series.get(key, 0) + value
            if trace_id:
                shown = f'{{trace_id="{_escaped(trace_id)}"}} {value:.17g} {time.time():.3f}'
                self._examples[name, key] = shown

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Add one observation to a histogram, or to a summary: its count, its sum and its largest value."""
        with self._lock:
            if name in BOUNDS:
                histograms = self._histograms.setdefault(name, {})
                key = self._bounded(histograms, labels)
                histograms.setdefault(key, Histogram(BOUNDS[name])).add(value)
                return
            for suffix, amount in (("_count", 1.0), ("_sum", value)):
                series = self._values.setdefault(name + suffix, {})
                series[()] = series.get((), 0) + amount
            largest = self._values.setdefault(name + "_max", {})
            largest[()] = max(largest.get((), 0), value)

    @staticmethod
    def _bounded(series: Mapping[_Labels, object], labels: Mapping[str, str]) -> _Labels:
        key = tuple(sorted((label, text[:_LONGEST_LABEL]) for label, text in labels.items()))
        full = len(series) >= MOST_SERIES and key not in series
        return tuple((label, "other") for label, _ in key) if full else key

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Have a gauge read when it is asked for."""
        self._gauges[name] = read

    def value(self, name: str, **labels: str) -> float:
        """The value of one series; without labels, the sum over all of them."""
        if name in self._gauges:
            return float(self._gauges[name]())
        with self._lock:
            series = self._values.get(name, {})
            return series.get(tuple(sorted(labels.items())), 0) if labels else sum(series.values())

    def open_metrics(self) -> str:
        """Everything as OpenMetrics 1.0, each counter that has one with the trace it counted last as its exemplar."""
        with self._lock:
            examples = dict(self._examples)
        values, lines, said = self.values(), [], set()
        for name in sorted(values, key=lambda name: (_family(name), name)):
            kind, help_text = described(name)
            family = name.removesuffix("_total") if kind == "counter" else _family(name)
            if family not in said:
                lines.append(f"# TYPE {family} {kind}")
                lines += [f"# HELP {family} {help_text}"] if help_text else []
                said.add(family)
            for labels, value in sorted(values[name].items()):
                example = examples.get((name, labels))
                lines.append(_sample(name, labels, value) + (f" # {example}" if example else ""))
        return "\n".join([*lines, *self._histogram_lines(), "# EOF"]) + "\n"

    def values(self) -> dict[str, dict[_Labels, float]]:
        """Counters, gauges and the parts of summaries, as they are now."""
        with self._lock:
            values = {name: dict(series) for name, series in self._values.items()}
        for name, read in self._gauges.items():
            try:
                values[name] = {(): float(read())}
            except (
                OSError,
                sqlite3.Error,
            ):  # a disk or a store that cannot be asked: the other series still matter
                values[name] = {(): math.nan}
        return values

    def histograms(self) -> dict[str, dict[_Labels, Histogram]]:
        """Histograms, as they are now."""
        with self._lock:
            return {
                name: {labels: one.copy() for labels, one in series.items()}
                for name, series in self._histograms.items()
            }

    def text(self) -> str:
        """Everything, as ``/metrics`` answers it."""
        values = self.values()
        lines: list[str] = []
        said: set[str] = set()
        for name in sorted(values):
            family = _family(name)
            if family in _HELP and family not in said:
                kind, help_text = described(name)
                lines += [f"# HELP {family} {help_text}", f"# TYPE {family} {kind}"]
                said.add(family)
            for labels, value in sorted(values[name].items()):
                lines.append(_sample(name, labels, value))
        return "\n".join([*lines, *self._histogram_lines()]) + "\n"

    def _histogram_lines(self) -> list[str]:
        lines = []
        for name, series in sorted(self.histograms().items()):
            lines += [f"# TYPE {name} histogram", f"# HELP {name} {described(name)[1]}"]
            for labels, one in sorted(series.items()):
                for bound, count in one.cumulative():
                    lines.append(_sample(f"{name}_bucket", (*labels, ("le", bound)), count))
                lines += [
                    _sample(f"{name}_count", labels, one.count),
                    _sample(f"{name}_sum", labels, one.sum),
                ]
        return lines


def described(name: str) -> tuple[str, str]:
    """The kind of a series and what it counts; a name that is not described is of unknown kind."""
    return _HELP.get(_family(name), ("unknown", ""))


def _family(name: str) -> str:
    return next((name.removesuffix(end) for end in ("_count", "_sum") if name.endswith(end)), name)


def _sample(name: str, labels: _Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
    return f"{name}{{{shown}}} {value:.17g}" if shown else f"{name} {value:.17g}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

"""Datadog LLM Observability: evaluation metrics joined to the root span. Whether it joins OpenTelemetry's spans is
not known, and what was sent cannot be taken back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.sinks.scores import RunScores, Score
from redfirst.collector_processor.sinks.sink import Send, Told, told_of

Json = Any
_NO_LETTER = re.compile(r"[^0-9A-Za-z_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatadogSink:
    """``POST /api/intake/llm-obs/v2/eval-metric``."""

    project: str
    """The ``ml_app``."""

    def told(self, about: RunScores) -> Told:
        """Nothing that could be withdrawn."""
        return told_of(about, names=())

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Send every number."""
        metrics = [self._metric(score, about) for score in about.scores if score.value is not None]
        body = {"data": {"type": "evaluation_metric", "attributes": {"metrics": metrics}}}
        send("POST", "/api/intake/llm-obs/v2/eval-metric", body)

    def withdraw(self, before: Told, send: Send) -> None:
        """There is no way to."""

    def _metric(self, score: Score, about: RunScores) -> Mapping[str, Json]:
        return {
            "join_on": {"span": {"span_id": about.root_span_id, "trace_id": about.trace_id}},
            "label": _NO_LETTER.sub("_", score.name),
            "metric_type": "score",
            "score_value": score.value,
            "ml_app": self.project,
            "timestamp_ms": about.judged_ns // 1_000_000,
            "assessment": "fail" if score.label in ("failed", "flagged") else "pass",
            "reasoning": score.because,
            "event_kind": "evaluation",
            "eval_scope": "trace",
            "tags": [f"redfirst.version:{about.version}", f"redfirst.run_id:{about.run_id}"],
        }

"""Braintrust: scores merged into the root's row; a score that is withdrawn is merged as null."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.sinks.scores import RunScores
from redfirst.collector_processor.sinks.sink import Send, Told, told_of

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class BraintrustSink:
    """``POST /logs3``, merged by the row's id, which is the span's."""

    project: str
    """The project's id."""

    def told(self, about: RunScores) -> Told:
        """Every score; an inconclusive one as null."""
        return told_of(about)

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Merge every score, and null for those that are said no more."""
        scores = {score.name: score.value for score in about.scores}
        because = {score.name: f"{score.label}: {score.because}" for score in about.scores}
        told = {"redfirst": {"run_id": about.run_id, "version": about.version, "because": because}}
        self._merge(about.root_span_id, {**dict.fromkeys(before.names), **scores}, told, send)

    def withdraw(self, before: Told, send: Send) -> None:
        """Merge null for all of ours."""
        self._merge(
            before.root_span_id,
            dict.fromkeys(before.names),
            {"redfirst": {"run_id": before.run_id, "withdrawn": True}},
            send,
        )

    def _merge(
        self, row: str, scores: Mapping[str, float | None], told: Mapping[str, Json], send: Send
    ) -> None:
        change = {
            "id": row,
            "project_id": self.project,
            "log_id": "g",
            "scores": scores,
            "_is_merge": True,
            "_audit_source": "external",
            "_audit_metadata": told,
        }
        send("POST", "/logs3", {"rows": [change], "api_version": 2})

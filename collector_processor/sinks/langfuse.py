"""Langfuse: numeric scores of a trace, with ids of ours, so that one that is sent again replaces the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.sinks.ids import score_id
from redfirst.collector_processor.sinks.scores import RunScores
from redfirst.collector_processor.sinks.sink import Send, Told, gone, told_of

_SCORES = "/api/public/scores"


@dataclass(frozen=True, slots=True)
class LangfuseSink:
    """``POST /api/public/scores``; a score may come before its trace."""

    def told(self, about: RunScores) -> Told:
        """Every score with a number; an inconclusive one has none."""
        return told_of(about, names=[score.name for score in about.scores if score.value is not None])

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Send every number, delete those that are said no more."""
        for score in about.scores:
            if score.value is not None:
                send(
                    "POST",
                    _SCORES,
                    {
                        "id": score_id(about.run_id, score.name),
                        "traceId": about.trace_id,
                        "name": score.name,
                        "value": score.value,
                        "dataType": "NUMERIC",
                        "comment": f"{score.label}: {score.because}",
                        "metadata": _metadata(about, score.revision),
                    },
                )
        self._delete(about.run_id, before.beyond(self.told(about).names), send)

    def withdraw(self, before: Told, send: Send) -> None:
        """Delete all of ours."""
        self._delete(before.run_id, before.names, send)

    def _delete(self, run_id: str, names: tuple[str, ...], send: Send) -> None:
        for name in names:
            gone(send, "DELETE", f"{_SCORES}/{score_id(run_id, name)}")


def _metadata(about: RunScores, revision: str) -> dict[str, Any]:
    return {"run_id": about.run_id, "version": about.version, "revision": revision}

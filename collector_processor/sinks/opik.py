"""Opik: feedback scores by name, on the trace that the root names as ``opik.trace_id``, or else on the thread.

Opik makes its own ids for traces that come by OTLP, which nobody outside can work out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.sinks.scores import RunScores, Score
from redfirst.collector_processor.sinks.sink import NotTaken, Send, Told, gone, told_of

Json = Any
_TRACES = "/v1/private/traces"
_TRACE_ID = "opik.trace_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpikSink:
    """``PUT …/feedback-scores``; a score of the same name replaces the one before."""

    project: str

    def told(self, about: RunScores) -> Told:
        """Every score with a number."""
        names = [score.name for score in _numbers(about)]
        return told_of(about, names=names, target=_trace_of(about))

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Put every number, delete those that are said no more.

        Raises:
            NotTaken: a request was not, or the run has neither of the two ids.
        """
        now = self.told(about)
        if now.target:
            path, key = f"{_TRACES}/feedback-scores", {"id": now.target}
        elif about.session_id:
            path, key = f"{_TRACES}/threads/feedback-scores", {"thread_id": about.session_id}
        else:
            raise NotTaken("no_target", again=False, said="its root has neither opik.trace_id nor session.id")
        send("PUT", path, {"scores": [{**key, **self._score(score)} for score in _numbers(about)]})
        self._delete(before, before.beyond(now.names), send)

    def withdraw(self, before: Told, send: Send) -> None:
        """Delete all of ours."""
        self._delete(before, before.names, send)

    def _score(self, score: Score) -> Mapping[str, Json]:
        return {
            "project_name": self.project,
            "name": score.name,
            "value": score.value,
            "category_name": score.label,
            "reason": score.because,
            "source": "sdk",
        }

    def _delete(self, before: Told, names: tuple[str, ...], send: Send) -> None:
        if not names or not (before.target or before.session_id):
            return
        if not before.target:
            body = {"project_name": self.project, "thread_id": before.session_id, "names": list(names)}
            gone(send, "POST", f"{_TRACES}/threads/feedback-scores/delete", body)
            return
        for name in names:
            gone(send, "POST", f"{_TRACES}/{before.target}/feedback-scores/delete", {"name": name})


def _numbers(about: RunScores) -> Iterable[Score]:
    return (score for score in about.scores if score.value is not None)


def _trace_of(about: RunScores) -> str:
    return next((pair.value.string_value for pair in about.root.span.attributes if pair.key == _TRACE_ID), "")

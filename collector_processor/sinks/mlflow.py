"""MLflow: assessments of a trace. A second POST makes a second assessment, so what is there is looked up and patched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from redfirst.collector_processor.sinks.scores import RUN, RunScores, Score
from redfirst.collector_processor.sinks.sink import NotTaken, Send, Told, gone, told_of

Json = Any
_TRACES = "/api/3.0/mlflow/traces"
_CHANGED = "feedback,rationale,metadata"


@dataclass(frozen=True, slots=True)
class MlflowSink:
    """Its trace id is ``tr-`` and OpenTelemetry's."""

    def told(self, about: RunScores) -> Told:
        """Assessments of the trace."""
        return told_of(about)

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Patch what is there, post what is not, delete what is said no more."""
        trace = _trace(about.trace_id)
        there = _ours(send, trace)
        for score in about.scores:
            assessment = _assessment(score, about)
            first, *more = there.pop(score.name, []) or [""]
            if first:
                body = {"assessment": assessment, "update_mask": _CHANGED}
                send("PATCH", f"{_TRACES}/{trace}/assessments/{first}", body)
            else:
                given = {**assessment, "trace_id": trace, "assessment_name": score.name, **_SOURCE}
                send("POST", f"{_TRACES}/{trace}/assessments", {"assessment": given})
            there |= {score.name: more} if more else {}  # doubled when an answer was lost on the way
        for assessment_id in (one for ids in there.values() for one in ids):
            gone(send, "DELETE", f"{_TRACES}/{trace}/assessments/{assessment_id}")

    def withdraw(self, before: Told, send: Send) -> None:
        """Delete all of ours."""
        trace = _trace(before.trace_id)
        try:
            there = _ours(send, trace)
        except NotTaken as problem:
            if problem.reason == "not_there":
                return
            raise
        for assessment_id in (one for ids in there.values() for one in ids):
            gone(send, "DELETE", f"{_TRACES}/{trace}/assessments/{assessment_id}")


_SOURCE: Mapping[str, Json] = {"source": {"source_type": "CODE", "source_id": RUN}}


def _trace(trace_id: str) -> str:
    return f"tr-{trace_id}"


def _ours(send: Send, trace: str) -> dict[str, list[str]]:
    """The ids of our assessments by name, oldest first.

    Raises:
        NotTaken: the trace cannot be had, or something else than MLflow answers.
    """
    answer = send("GET", f"{_TRACES}/{quote(trace)}")
    found: dict[str, list[str]] = {}
    try:
        for one in answer["trace"]["trace_info"].get("assessments", ()):
            if one.get("source", {}).get("source_id") == RUN:
                found.setdefault(one["assessment_name"], []).append(one["assessment_id"])
    except (TypeError, KeyError, AttributeError) as problem:
        raise NotTaken("odd_answer", again=True, whole=True, said="it holds no trace") from problem
    return found


def _assessment(score: Score, about: RunScores) -> Mapping[str, Json]:
    metadata = {"run_id": about.run_id, "version": str(about.version), "revision": score.revision}
    if score.value is not None:
        metadata["score"] = f"{score.value:g}"
    return {"feedback": {"value": score.label}, "rationale": score.because, "metadata": metadata}

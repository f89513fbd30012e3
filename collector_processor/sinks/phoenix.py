"""Arize Phoenix: annotations of the trace, of the spans where a failure is seen, and of the session.

It upserts by (target, name, identifier). Ours is the run's, and for a span the run's with the span's, so that a
filter by identifier deletes exactly what is not said any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from redfirst.collector_processor.sinks.scores import RUN, RunScores, Score
from redfirst.collector_processor.sinks.sink import Send, Told, gone, told_of

Json = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoenixSink:
    """Posts with ``sync=true``: the asynchronous answer comes before anything is known of the target."""

    project: str

    def told(self, about: RunScores) -> Told:
        """Annotations of the trace and of every span that shows a failure."""
        places = dict.fromkeys((span_id, score.name) for score, span_id, _ in _seen(about))
        return replace(told_of(about), places=tuple(places))

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Upsert, then delete what is left of earlier versions."""
        now = self.told(about)
        whole = [
            {"trace_id": about.trace_id, **_annotation(score, about, _mark(about.run_id))}
            for score in about.scores
        ]
        send("POST", "/v1/trace_annotations?sync=true", {"data": whole})
        spans = [
            {"span_id": span_id, **_annotation(score, about, _mark(about.run_id, span_id), note=note)}
            for score, span_id, note in _seen(about)
        ]
        if spans:
            send("POST", "/v1/span_annotations?sync=true", {"data": spans})
        if about.session_id:
            session = [
                {"session_id": about.session_id, **_annotation(score, about, _mark(about.run_id))}
                for score in about.scores
                if score.name == RUN
            ]
            send("POST", "/v1/session_annotations?sync=true", {"data": session})
        for name in before.beyond(now.names):
            self._delete(send, "trace", identifier=_mark(about.run_id), name=name)
        for span_id, name in before.places:
            if (span_id, name) not in now.places:
                self._delete(send, "span", identifier=_mark(about.run_id, span_id), name=name)

    def withdraw(self, before: Told, send: Send) -> None:
        """Delete all annotations of the run."""
        self._delete(send, "trace", identifier=_mark(before.run_id))
        if before.session_id:
            self._delete(send, "session", identifier=_mark(before.run_id))
        for span_id in dict.fromkeys(span_id for span_id, _ in before.places):
            self._delete(send, "span", identifier=_mark(before.run_id, span_id))

    def _delete(self, send: Send, what: str, **which: str) -> None:
        project = quote(self.project, safe="")
        # delete_all asks for no bounds in time; the filters hold nevertheless
        query = urlencode({"delete_all": "true", **which})
        gone(send, "DELETE", f"/v1/projects/{project}/{what}_annotations?{query}")


def _seen(about: RunScores) -> Iterable[tuple[Score, str, str]]:
    """Each failed score with a span that shows it, each span once; why the run is flagged, on its root."""
    for score in about.scores:
        if score.label == "flagged":
            yield score, about.root_span_id, score.because
        if score.label == "failed":
            for span_id, note in dict(reversed(score.places)).items():
                yield score, span_id, note


def _mark(*parts: str) -> str:
    return ":".join((RUN, *parts))


def _annotation(score: Score, about: RunScores, identifier: str, *, note: str = "") -> Mapping[str, Json]:
    result: dict[str, Json] = {"label": score.label, "explanation": note or score.because}
    if score.value is not None:
        result["score"] = score.value
    return {
        "name": score.name,
        "annotator_kind": "CODE",
        "identifier": identifier,
        "result": result,
        "metadata": {
            "run_id": about.run_id,
            "version": about.version,
            "revision": score.revision,
            "severity": score.severity,
        },
    }

"""LangSmith: feedback on the root's run, whose id is the root span's, padded to a UUID."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.collector_processor.sinks.ids import padded, score_id
from redfirst.collector_processor.sinks.scores import RunScores
from redfirst.collector_processor.sinks.sink import NotTaken, Send, Told, gone, told_of


@dataclass(frozen=True, slots=True)
class LangSmithSink:
    """``POST /feedback`` with ids of ours; what is there already is patched."""

    def told(self, about: RunScores) -> Told:
        """Feedback for every score."""
        return told_of(about)

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Patch what is there, post what is not, delete what is said no more."""
        for score in about.scores:
            said = {"score": score.value, "value": score.label, "comment": score.because}
            given = {
                "id": score_id(about.run_id, score.name),
                "run_id": padded(about.root_span_id),
                "key": score.name,
                **said,
                "feedback_source": {
                    "type": "api",
                    "metadata": {
                        "run_id": about.run_id,
                        "version": about.version,
                        "revision": score.revision,
                    },
                },
            }
            try:
                send("PATCH", f"/feedback/{given['id']}", said)
            except NotTaken as problem:
                if problem.reason != "not_there":
                    raise
                send("POST", "/feedback", given)
        self._delete(about.run_id, before.beyond(about.names), send)

    def withdraw(self, before: Told, send: Send) -> None:
        """Delete all of ours."""
        self._delete(before.run_id, before.names, send)

    def _delete(self, run_id: str, names: tuple[str, ...], send: Send) -> None:
        for name in names:
            gone(send, "DELETE", f"/feedback/{score_id(run_id, name)}")

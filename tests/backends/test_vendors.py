"""What the backends are sent that no server could be had of: the requests of the vendors' own SDKs, recorded here.

That the vendors' servers take it for spans that came by OpenTelemetry is not shown by this.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.settings import SinkSettings
from redfirst.collector_processor.sinks.backends import KINDS
from redfirst.collector_processor.sinks.ids import score_id
from redfirst.collector_processor.sinks.sink import NotTaken
from tests.backends.vendor_recorder import VendorRecorder
from tests.collector_processor.sinking import FLAGGED, ROOT, SESSION, TRACE, a_root, a_run
from tests.frameworks.conftest import Programs, environment_of

Json = Any
HERE = Path(__file__).parent
NAME = "redfirst.repeats"
GIVEN = {
    "trace_id": TRACE,
    "span_id": ROOT,
    "session_id": SESSION,
    "score_id": score_id(TRACE, NAME),
    "project": "shop",
    "name": NAME,
    "value": 0.5,
    "label": "failed",
    "because": "repeats is failed",
}


@pytest.fixture
def vendor() -> Iterator[VendorRecorder]:
    made = VendorRecorder()
    yield made
    made.close()


class Ours:
    """What a sink of ours sends; nothing of ours is there yet."""

    def __init__(self, kind: str, **attributes: str) -> None:
        self.asked: list[tuple[str, str, Json]] = []
        entry = SinkSettings(name="x", kind=kind, endpoint="http://localhost", project="shop")  # type: ignore[arg-type]
        sink = KINDS[kind].make(entry)
        about = a_run(FLAGGED[0], root=a_root(**{"session.id": SESSION, **attributes}))
        told = sink.told(about)
        sink.tell(about, told, self._send)
        sink.withdraw(told, self._send)

    def _send(self, method: str, path: str, body: Json = None) -> Json:
        self.asked.append((method, path, body))
        if method == "PATCH" and len([one for one in self.asked if one[0] == "PATCH"]) == 1:
            raise NotTaken("not_there", again=True)
        return {}

    def to(self, method: str, part: str) -> list[Json]:
        """The bodies of the requests with this method whose path has this part."""
        return [body for how, path, body in self.asked if how == method and part in path]

    def paths(self, method: str) -> set[str]:
        return {path for how, path, _ in self.asked if how == method}


def recorded(programs: Programs, vendor: VendorRecorder, name: str) -> VendorRecorder:
    """The vendor's SDK, told the same score."""
    programs.run(
        [environment_of("sdks", "bin/python"), HERE / "vendor_calls.py", name, vendor.url],
        GIVEN=json.dumps(GIVEN),
        HOME=str(programs.notes.parent),
    )
    return vendor


def same(
    ours: Json, theirs: Json, *, leaves_out: set[str] = frozenset(), but: set[str] = frozenset()
) -> None:
    """The same keys and values, but those that are left out here, and those (``but``) whose content is each one's own."""
    assert set(ours) == set(theirs) - leaves_out
    for key in set(ours) - but:
        assert ours[key] == theirs[key], key


def test_langfuse(programs: Programs, vendor: VendorRecorder) -> None:
    """Each score is what the SDK puts into its batch; the time is the server's."""
    theirs = recorded(programs, vendor, "langfuse")
    ours = Ours("langfuse")
    (batched,) = theirs.to("POST", "/api/public/scores")
    (score,) = [body for body in ours.to("POST", "/api/public/scores") if body["name"] == NAME]

    same(score, batched, leaves_out={"timestamp"}, but={"metadata", "comment"})
    assert theirs.to("DELETE", "/api/public/scores/") is None
    assert f"/api/public/scores/{GIVEN['score_id']}" in ours.paths("DELETE")


def test_langsmith(programs: Programs, vendor: VendorRecorder) -> None:
    """The run's id is the root span's as LangSmith pads it; feedback is posted, patched and deleted by our id."""
    theirs = recorded(programs, vendor, "langsmith")
    ours = Ours("langsmith")
    (posted,) = [body for body in ours.to("POST", "/feedback") if body["key"] == "redfirst"]
    sent = theirs.to("POST", "/feedback")
    assert set(posted) == set(sent) - {"created_at", "modified_at", "extend_trace_retention"}
    assert (posted["run_id"], set(posted["feedback_source"])) == (
        sent["run_id"],
        set(sent["feedback_source"]),
    )

    feedback = f"/feedback/{GIVEN['score_id']}"
    assert ours.to("PATCH", feedback) == [theirs.to("PATCH", feedback)]
    assert feedback in ours.paths("DELETE")
    assert theirs.to("DELETE", feedback) is None


def test_opik(programs: Programs, vendor: VendorRecorder) -> None:
    """On a thread, and on a trace that the root names, put and deleted as the SDK's client does it."""
    theirs = recorded(programs, vendor, "opik")
    for part, ours in (
        ("/traces/threads/feedback-scores", Ours("opik")),
        ("/traces/feedback-scores", Ours("opik", **{"opik.trace_id": GIVEN["score_id"]})),
    ):
        (body,) = ours.to("PUT", part)
        (score,) = [one for one in body["scores"] if one["name"] == NAME]
        same({"scores": [score]}, theirs.to("PUT", part))
    assert Ours("opik").to("POST", "threads/feedback-scores/delete") == [
        {**theirs.to("POST", "threads/feedback-scores/delete"), "names": ["redfirst", NAME]}
    ]
    one = f"/{GIVEN['score_id']}/feedback-scores/delete"
    deleted = Ours("opik", **{"opik.trace_id": GIVEN["score_id"]}).to("POST", one)
    assert theirs.to("POST", one) in deleted


def test_braintrust(programs: Programs, vendor: VendorRecorder) -> None:
    """One row, merged by the span's id; what the SDK keeps as the audit's metadata is ours there, too."""
    theirs = recorded(programs, vendor, "braintrust").to("POST", "/logs3")
    told, withdrawn = Ours("braintrust").to("POST", "/logs3")

    assert (set(told), told["api_version"]) == (set(theirs), theirs["api_version"])
    (row,), (sent,) = told["rows"], theirs["rows"]
    same(row, sent, but={"scores", "_audit_metadata"})
    assert row["scores"][NAME] == sent["scores"][NAME]
    assert withdrawn["rows"][0]["scores"] == {"redfirst": None, NAME: None}


def test_datadog(programs: Programs, vendor: VendorRecorder) -> None:
    """The metric is the SDK's but for its tags and the time."""
    theirs = recorded(programs, vendor, "datadog").to("POST", "/eval-metric")
    (ours,) = Ours("datadog").to("POST", "/eval-metric")
    metrics = ours["data"]["attributes"]["metrics"]
    (metric,) = [one for one in metrics if one["label"] == "redfirst_repeats"]

    assert ours["data"]["type"] == theirs["data"]["type"]
    same(metric, theirs["data"]["attributes"]["metrics"][0], but={"tags", "timestamp_ms"})
    assert all(re.fullmatch(r"[0-9A-Za-z_]+", one["label"]) for one in metrics)
    assert all(re.fullmatch(r"[a-z._]+:.+", tag) for one in metrics for tag in one["tags"])

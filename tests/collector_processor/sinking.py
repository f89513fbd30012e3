"""Runs to be told, and backends that take scores as their kind does, in memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from redfirst.collector_processor.sinks.root import Root
from redfirst.collector_processor.sinks.scores import RunScores, scores_of
from redfirst.collector_processor.sinks.sink import NotTaken
from redfirst.collector_processor.storing.store import RunState, StoredRun

Json = Any
TRACE, ROOT, CALL = "ab" * 16, "cd" * 8, "ef" * 8
SESSION = "sess-1"
END_NS = 1_900_000_000_000_000_000


def a_root(**attributes: str) -> Root:
    """A span of four seconds that ends at ``END_NS``, of service shop."""
    span = Span(
        trace_id=bytes.fromhex(TRACE),
        span_id=bytes.fromhex(ROOT),
        name="support",
        start_time_unix_nano=END_NS - 4 * 10**9,
        end_time_unix_nano=END_NS,
        attributes=[_text(key, value) for key, value in attributes.items()],
    )
    resource = Resource(attributes=[_text("service.name", "shop")])
    return Root(span=span, resource=resource, resource_schema="")


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def verdict(check: str, outcome: str, *, score: float | None = None, severity: str = "flag") -> Json:
    """As a record has it; a failure is seen on the span of one call."""
    evidence = [{"span_id": CALL, "pointer": "/tool_calls/0", "note": "the second of two"}]
    return {
        "check": check,
        "outcome": outcome,
        "score": score,
        "because": f"{check} is {outcome}",
        "severity": severity,
        "revision": f"r-{check}",
        "evidence": evidence if outcome == "failed" else [],
    }


FLAGGED = (
    verdict("repeats", "failed", score=0.5),
    verdict("termination", "passed"),
    verdict("recall", "inconclusive"),
    verdict("recovery", "not_applicable"),
)
CLEAN = (verdict("repeats", "passed", score=1.0), verdict("termination", "passed"))


def a_run(
    *verdicts: Json, version: int = 1, session: str | None = SESSION, root: Root | None = None
) -> RunScores:
    """A judged run as a backend is told of it."""
    failed = [
        one["check"] for one in verdicts if one["outcome"] == "failed" and one["severity"] in ("flag", "page")
    ]
    return scores_of(
        StoredRun(
            run_id=TRACE,
            version=version,
            state=RunState.SCORED,
            tenant="default",
            agent="support",
            flagged=bool(failed),
            spans=3,
            span_set_hash="h",
            cut="root_ended",
            arrived_ns=1,
            judged_ns=END_NS + 60 * 10**9,
            record={"trace_ids": [TRACE], "session_id": session, "verdicts": list(verdicts)},
            failed=failed,
        ),
        root or a_root(**{"session.id": session} if session else {}),
    )


Held = dict[tuple[str, str], Json]
"""By target and name: the label or number that a person would see."""


class MemoryBackend:
    """A ``Send`` to a backend of one kind that has the trace, unless ``there`` is false. ``breaks_at`` lets the request
    of that number get lost, after it was carried out."""

    def __init__(self, kind: str) -> None:
        self.there = True
        self.breaks_at = 0
        self.requests: list[tuple[str, str, Json]] = []
        self.rows: dict[Any, Json] = {}
        self._answer: Callable[[str, str, Json], Json] = getattr(self, f"_{kind}")

    def __call__(self, method: str, path: str, body: Json | bytes | None = None) -> Json:
        if isinstance(body, bytes):
            raise TypeError("scores are sent as JSON")
        self.requests.append((method, path, json.loads(json.dumps(body))))
        answer = self._answer(method, path, body)
        if len(self.requests) == self.breaks_at:
            raise NotTaken("timeout", again=True, whole=True)
        return answer

    def held(self) -> Held:
        """What a person would see."""
        return {key: row for key, row in sorted(self.rows.items()) if row is not None}

    def _missing(self) -> NotTaken:
        return NotTaken("not_there", again=True)

    def _phoenix(self, method: str, path: str, body: Json) -> Json:
        url = urlsplit(path)
        what = next(kind for kind in ("trace", "span", "session") if f"{kind}_annotations" in url.path)
        if method == "DELETE":
            wanted = parse_qs(url.query)
            assert "identifier" in wanted
            assert wanted["delete_all"] == ["true"]  # 422 without, as the real one answers
            for key in list(self.rows):
                kind, _, name, identifier = key
                if kind == what and identifier in wanted["identifier"] and name in wanted.get("name", [name]):
                    del self.rows[key]
            return None
        if not self.there:
            raise self._missing()
        for one in body["data"]:
            self.rows[what, one[f"{what}_id"], one["name"], one["identifier"]] = one["result"]["label"]
        return {"data": []}

    def _mlflow(self, method: str, path: str, body: Json) -> Json:
        if not self.there:
            raise self._missing()
        if method == "GET":
            found = [
                {"assessment_id": key, "assessment_name": one[1], "source": {"source_id": "redfirst"}}
                for key, one in self.rows.items()
            ]
            return {"trace": {"trace_info": {"assessments": found}}}
        if method == "POST":
            said = body["assessment"]
            self.rows[f"a-{len(self.requests)}"] = [
                TRACE,
                said["assessment_name"],
                said["feedback"]["value"],
            ]
        elif method == "PATCH":
            self.rows[path.rpartition("/")[2]][2] = body["assessment"]["feedback"]["value"]
        elif self.rows.pop(path.rpartition("/")[2], None) is None:
            raise self._missing()
        return {}

    def _langfuse(self, method: str, path: str, body: Json) -> Json:
        if method == "POST":
            self.rows[body["id"]] = [body["traceId"], body["name"], body["value"]]
        elif self.rows.pop(path.rpartition("/")[2], None) is None:
            raise self._missing()
        return {}

    def _langsmith(self, method: str, path: str, body: Json) -> Json:
        if not self.there and method == "POST":
            raise self._missing()
        if method == "POST":
            self.rows[body["id"]] = [body["run_id"], body["key"], body["value"]]
            return {}
        feedback = path.rpartition("/")[2]
        if feedback not in self.rows:
            raise self._missing()
        if method == "PATCH":
            self.rows[feedback][2] = body["value"]
        else:
            del self.rows[feedback]
        return {}

    def _opik(self, method: str, path: str, body: Json) -> Json:
        if method == "PUT":
            for one in body["scores"]:
                self.rows[one.get("thread_id") or one["id"], one["name"]] = one["value"]
        elif "threads" in path:
            for name in body["names"]:
                self.rows.pop((body["thread_id"], name), None)
        else:
            found = re.search(r"traces/([^/]+)/", path)
            assert found is not None
            self.rows.pop((found[1], body["name"]), None)
        return {}

    def _braintrust(self, method: str, path: str, body: Json) -> Json:
        for row in body["rows"]:
            assert row["_is_merge"] is True
            for name, value in row["scores"].items():
                self.rows[row["id"], name] = value
        return {}

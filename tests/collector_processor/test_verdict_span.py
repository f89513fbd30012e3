"""The verdict as OTLP stretches no trace, makes no second one, and is the same span when it is sent again."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from redfirst.collector_processor.receiving.request import check
from redfirst.collector_processor.sinks.root import root_of
from redfirst.collector_processor.sinks.verdict_span import events_request, verdict_request
from tests.collector_processor.sinking import CLEAN, END_NS, FLAGGED, ROOT, SESSION, TRACE, a_run


def the_span(request: bytes) -> Span:
    (group,) = ExportTraceServiceRequest.FromString(request).resource_spans
    (scope,) = group.scope_spans
    (span,) = scope.spans
    return span


def attributes(of: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of.attributes}


def test_it_is_a_child_of_the_root_without_length_at_its_end() -> None:
    """Judged a minute later, the trace still ends when the agent did; the time of judging is an attribute."""
    span = the_span(verdict_request(a_run(*FLAGGED)))

    assert span.trace_id.hex() == TRACE
    assert span.parent_span_id.hex() == ROOT
    assert span.start_time_unix_nano == span.end_time_unix_nano == END_NS
    assert attributes(span)["redfirst.scored_at"] == "2030-03-17T17:47:40Z"
    assert not span.links


def test_it_says_what_and_why_in_flat_attributes() -> None:
    """A search by tag finds flagged runs, and the reason can be read on the span."""
    said = attributes(the_span(verdict_request(a_run(*FLAGGED))))

    assert said["redfirst.verdict"] == "flagged"
    assert said["redfirst.failed"] == "repeats"
    assert said["redfirst.because"] == "repeats: repeats is failed"
    assert said["redfirst.outcome.recall"] == "inconclusive"
    assert said["redfirst.score.repeats"] == 0.5
    assert "redfirst.score.recall" not in said
    assert "redfirst.outcome.recovery" not in said
    assert said["session.id"] == SESSION
    assert said["openinference.span.kind"] == "EVALUATOR"
    assert said["trace.evaluations.1.evaluation.name"] == "redfirst.repeats"
    assert json.loads(said["output.value"])["redfirst"]["outcome"] == "flagged"


def test_it_has_the_resource_of_the_root_and_a_scope_of_its_own() -> None:
    """It lands where the agent's spans are, and can be told from them."""
    (group,) = ExportTraceServiceRequest.FromString(verdict_request(a_run(*FLAGGED))).resource_spans

    assert attributes(group.resource) == {"service.name": "shop"}
    assert group.scope_spans[0].scope.name == "redfirst.verdict"


def test_the_same_version_is_the_same_span_and_another_verdict_is_another() -> None:
    """Byte for byte when sent again; an id of its own for a later version, and for other checks."""
    first = verdict_request(a_run(*FLAGGED))

    assert first == verdict_request(a_run(*FLAGGED))
    ids = {
        the_span(request).span_id
        for request in (
            first,
            verdict_request(a_run(*FLAGGED, version=2)),
            verdict_request(a_run(*CLEAN)),
        )
    }
    assert len(ids) == 3


def test_only_on_request_it_is_an_error() -> None:
    """By default a flagged run is no error of the agent in the backend's counts."""
    assert the_span(verdict_request(a_run(*FLAGGED))).status.code == Status.STATUS_CODE_UNSET
    marked = the_span(verdict_request(a_run(*FLAGGED), mark_error=True))
    assert marked.status.code == Status.STATUS_CODE_ERROR
    clean = the_span(verdict_request(a_run(*CLEAN), mark_error=True))
    assert clean.status.code == Status.STATUS_CODE_UNSET


def test_our_own_span_coming_back_opens_no_run() -> None:
    """A collector that sends us what we sent makes no loop: it is kept, and never judged."""
    checked = check(verdict_request(a_run(*FLAGGED)), "traces")

    assert checked.accepted == 1
    assert checked.heads == {}


def test_the_root_is_the_span_without_a_parent_else_the_earliest_of_those_on_top() -> None:
    """A verdict is never hung on our own span, nor on an inner one."""
    request = ExportTraceServiceRequest.FromString(verdict_request(a_run(*FLAGGED)))
    spans = request.resource_spans[0].scope_spans.add().spans
    trace = bytes.fromhex(TRACE)
    spans.add(trace_id=trace, span_id=b"inner   ", parent_span_id=b"late    ", start_time_unix_nano=3)
    spans.add(trace_id=trace, span_id=b"late    ", parent_span_id=b"nowhere ", start_time_unix_nano=9)
    spans.add(trace_id=trace, span_id=b"early   ", parent_span_id=b"nowhere ", start_time_unix_nano=5)
    assert root_of(request.SerializeToString()).span.span_id == b"early   "

    spans.add(trace_id=trace, span_id=b"root    ", start_time_unix_nano=7)
    assert root_of(request.SerializeToString()).span.span_id == b"root    "


def test_log_events_have_the_name_of_the_conventions_with_revision_and_range() -> None:
    """One ``gen_ai.evaluation.result`` a score, on the root, with what is needed to read its number."""
    (group,) = ExportLogsServiceRequest.FromString(events_request(a_run(*FLAGGED))).resource_logs
    records = {
        attributes(record)["gen_ai.evaluation.name"]: record for record in group.scope_logs[0].log_records
    }

    assert set(records) == {"redfirst", "redfirst.repeats", "redfirst.termination", "redfirst.recall"}
    record = records["redfirst.repeats"]
    assert record.event_name == "gen_ai.evaluation.result"
    assert (record.trace_id.hex(), record.span_id.hex()) == (TRACE, ROOT)
    said = attributes(record)
    assert said["gen_ai.evaluation.score.value"] == 0.5
    assert said["gen_ai.evaluation.score.label"] == "failed"
    assert said["redfirst.evaluation.revision"] == "r-repeats"
    assert (said["redfirst.evaluation.score.min"], said["redfirst.evaluation.score.max"]) == (0.0, 1.0)
    assert "gen_ai.evaluation.score.value" not in attributes(records["redfirst.recall"])

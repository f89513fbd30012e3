"""The verdict as OTLP: one span a version, a child of the root at its end, and log events for who wants them.

The span has no length and lies at the root's end, so that it stretches no trace; its id is a function of what it
says, so that sending it twice makes no second one; its resource is the root's, so that it lands in the same project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from redfirst.collector_processor.posting.poster import VERSION
from redfirst.collector_processor.sinks.scores import LEAST, MOST, RunScores, Score
from redfirst.collector_processor.storing.rows import moment
from redfirst.evaluators import semconv

NAME = "evaluate redfirst"
_COPIED = (semconv.SESSION_ID, semconv.CONVERSATION_ID, semconv.USER_ID)
_SEVERITY_INFO, _SEVERITY_WARN = 9, 13


def span_id_of(about: RunScores) -> bytes:
    """The verdict's span id: the same for the same version of a run judged by the same checks."""
    said = [
        about.run_id,
        str(about.version),
        *(f"{score.name} {score.revision} {score.label}" for score in about.scores),
    ]
    return blake2b("\n".join(said).encode(), digest_size=8, person=b"verdict").digest()


def verdict_request(about: RunScores, *, mark_error: bool = False) -> bytes:
    """An ``ExportTraceServiceRequest`` with the one span. ``mark_error`` gives that of a flagged run status ERROR."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add(schema_url=about.root.resource_schema)
    group.resource.CopyFrom(about.root.resource)
    scope = group.scope_spans.add()
    scope.scope.name, scope.scope.version = semconv.VERDICT_SCOPE, VERSION
    end = about.root.span.end_time_unix_nano or about.root.span.start_time_unix_nano
    span = scope.spans.add(
        trace_id=about.root.span.trace_id,
        span_id=span_id_of(about),
        parent_span_id=about.root.span.span_id,
        name=NAME,
        kind=Span.SPAN_KIND_INTERNAL,
        start_time_unix_nano=end,
        end_time_unix_nano=end,
        attributes=[*_attributes(about), *_copied(about.root.span.attributes)],
    )
    if mark_error and about.flagged:
        span.status.code, span.status.message = Status.STATUS_CODE_ERROR, about.scores[0].because
    return bytes(request.SerializeToString())


def events_request(about: RunScores) -> bytes:
    """An ``ExportLogsServiceRequest`` with one ``gen_ai.evaluation.result`` a score, on the root."""
    request = ExportLogsServiceRequest()
    group = request.resource_logs.add(schema_url=about.root.resource_schema)
    group.resource.CopyFrom(about.root.resource)
    scope = group.scope_logs.add()
    scope.scope.name, scope.scope.version = semconv.VERDICT_SCOPE, VERSION
    for score in about.scores:
        bad = score.label in ("failed", "flagged")
        scope.log_records.add(
            time_unix_nano=about.judged_ns,
            observed_time_unix_nano=about.judged_ns,
            severity_number=_SEVERITY_WARN if bad else _SEVERITY_INFO,
            severity_text="WARN" if bad else "INFO",
            event_name=semconv.EVALUATION_EVENT,
            trace_id=about.root.span.trace_id,
            span_id=about.root.span.span_id,
            attributes=list(_pairs(_event(about, score))),
        )
    return bytes(request.SerializeToString())


def _event(about: RunScores, score: Score) -> dict[str, Any]:
    scored = {} if score.value is None else {semconv.EVALUATION_VALUE: score.value}
    revision = {semconv.EVALUATION_REVISION: score.revision} if score.revision else {}
    return {
        semconv.EVALUATION_NAME: score.name,
        semconv.EVALUATION_LABEL: score.label,
        **scored,
        semconv.EVALUATION_EXPLANATION: score.because,
        **revision,
        semconv.EVALUATION_LEAST: LEAST,
        semconv.EVALUATION_MOST: MOST,
        semconv.RUN_ID: about.run_id,
        semconv.VERDICT_VERSION: about.version,
    }


def _attributes(about: RunScores) -> Iterable[KeyValue]:
    whole, *checks = about.scores
    told = {score.name: {"outcome": score.label, "because": score.because} for score in about.scores}
    flat: dict[str, Any] = {
        semconv.OI_KIND: "EVALUATOR",
        semconv.RUN_ID: about.run_id,
        semconv.VERDICT: whole.label,
        semconv.VERDICT_BECAUSE: whole.because,
        semconv.VERDICT_FAILED: ",".join(about.failed),
        semconv.VERDICT_VERSION: about.version,
        semconv.VERDICT_SCORED_AT: moment(about.judged_ns),
        semconv.OUTPUT_VALUE: orjson.dumps(told).decode(),
        semconv.OUTPUT_MIME_TYPE: semconv.JSON_MIME,
    }
    for score in checks:
        check = score.name.partition(".")[2]
        flat[semconv.VERDICT_OUTCOME + check] = score.label
        if score.value is not None:
            flat[semconv.VERDICT_SCORE + check] = score.value
    for number, score in enumerate(about.scores):
        flat |= _open_inference(number, about, score)
    return _pairs(flat)


def _open_inference(number: int, about: RunScores, score: Score) -> dict[str, Any]:
    """OpenInference, "Annotations and Evaluations": the only written shape of scores on spans."""
    before = f"trace.evaluations.{number}.evaluation."
    said: dict[str, Any] = {
        "name": score.name,
        "label": score.label,
        "explanation": score.because,
        "annotator_kind": "CODE",
        "identifier": about.run_id,
    }
    if score.value is not None:
        said["score"] = score.value
    return {before + key: value for key, value in said.items()}


def _copied(attributes: Sequence[KeyValue]) -> Iterable[KeyValue]:
    return (pair for pair in attributes if pair.key in _COPIED)


def _pairs(flat: Mapping[str, Any]) -> Iterable[KeyValue]:
    for key, value in flat.items():
        kind = {str: "string_value", int: "int_value", float: "double_value"}[type(value)]
        yield KeyValue(key=key, value=AnyValue(**{kind: value}))

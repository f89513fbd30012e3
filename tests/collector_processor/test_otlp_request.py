"""A request at the door: kept byte for byte where it can be, and exactly in protobuf where it was JSON."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.receiving.request import HEAD, check, heads_of
from redfirst.collector_processor.scoring.slices import cut, joined
from redfirst.evaluators.errors import UnreadableInput
from tests.otlp.wire import as_otlp_json, everything

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), bytes(range(9, 17))


def test_a_bad_span_takes_nothing_else_with_it():
    """The good span of the same scope stays as it was."""
    request = everything()
    request.resource_spans[0].scope_spans[0].spans.add(trace_id=TRACE, span_id=b"short")

    checked = check(request.SerializeToString(), "traces")
    assert ExportTraceServiceRequest.FromString(checked.body) == everything()
    assert (checked.accepted, checked.rejected) == (1, {"bad_span_id": 1})


def test_heads_name_span_parent_and_end():
    """What assembly holds of a span, read at the door and again from the journal."""
    body = everything().SerializeToString()

    assert check(body, "traces").heads == heads_of(body, "traces") == {TRACE: HEAD.pack(SPAN, PARENT, 1)}


@pytest.mark.parametrize("where", ["scope", "resource"])
def test_our_own_spans_are_kept_and_never_judged(where):
    """Verdicts that come back from a backend, and replays, have no head."""
    request = everything()
    if where == "scope":
        request.resource_spans[0].scope_spans[0].scope.name = "redfirst.verdict"
    else:
        request.resource_spans[0].resource.attributes.add(
            key="redfirst.replay.scenario"
        ).value.string_value = "s"

    checked = check(request.SerializeToString(), "traces")
    assert (checked.accepted, checked.heads) == (1, {})


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "SPAN_KIND_CLIENT"},
        {"name": 7},
        {"startTimeUnixNano": "1.5"},
        {"startTimeUnixNano": -1},
        {"attributes": {}},
        {"status": []},
        {"attributes": [{"key": "k", "value": {"bytesValue": "!"}}]},
        {"attributes": [{"key": "k", "value": {"boolValue": "true"}}]},
    ],
)
def test_a_value_of_the_wrong_type_is_named(change):
    """Enums are integers, and a field that cannot be read is not guessed at."""
    document = json.loads(as_otlp_json(everything()))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0].update(change)

    with pytest.raises(UnreadableInput, match=next(iter(change))):
        check(json.dumps(document).encode(), "traces", is_json=True)


def test_slices_are_the_bytes_that_came():
    """A request cut by trace and joined again is the same request."""
    body = everything().SerializeToString()

    assert ExportTraceServiceRequest.FromString(joined(cut(body, "traces")[TRACE])) == everything()

"""A request at the door: kept byte for byte where it can be, and exactly in protobuf where it was JSON."""

from __future__ import annotations

import base64
import json
import math

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.receiving.json_request import TOO_DEEP
from redfirst.collector_processor.receiving.request import HEAD, check, heads_of
from redfirst.collector_processor.scoring.slices import cut, joined
from redfirst.evaluators.errors import UnreadableInput

TRACE, SPAN, PARENT = bytes(range(1, 17)), bytes(range(1, 9)), bytes(range(9, 17))


def a_request() -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add(schema_url="https://example.test/1")
    group.resource.attributes.add(key="service.name").value.string_value = "x"
    group.resource.dropped_attributes_count = 3
    scope = group.scope_spans.add(schema_url="https://example.test/2")
    scope.scope.name = "s"
    scope.scope.attributes.add(key="k").value.bool_value = True
    span = scope.spans.add(
        trace_id=TRACE, span_id=SPAN, parent_span_id=PARENT, trace_state="a=b", flags=0x301, name="chät", kind=3,
        start_time_unix_nano=2**63 + 1, end_time_unix_nano=2**63 + 2, dropped_attributes_count=1,
        dropped_events_count=2, dropped_links_count=4,
    )  # fmt: skip
    span.status.code = 2
    span.status.message = "no"
    values = span.attributes
    values.add(key="i").value.int_value = -(2**53) - 1
    values.add(key="d").value.double_value = math.inf
    values.add(key="b").value.bytes_value = b"\x00\xff"
    values.add(key="e").value.SetInParent()
    array = values.add(key="a").value.array_value.values
    array.add().string_value = "one"
    array.add().kvlist_value.values.add(key="n").value.int_value = 1
    event = span.events.add(name="ev", time_unix_nano=5)
    event.attributes.add(key="k").value.string_value = "v"
    span.links.add(trace_id=TRACE, span_id=SPAN, trace_state="c", flags=1, dropped_attributes_count=9)
    return request


def as_otlp_json(request: ExportTraceServiceRequest) -> bytes:
    """By the protocol's mapping: protobuf's own, with ids in hex and enums as integers."""

    def hexed(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: hexed(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [hexed(item) for item in value]
        return base64.b64decode(str(value)).hex() if key in ("traceId", "spanId", "parentSpanId") else value

    return json.dumps(hexed(MessageToDict(request, use_integers_for_enums=True))).encode()


def test_json_becomes_the_protobuf_request_it_stands_for():
    """Nothing the protocol defines is lost or changed: what is journalled can be forwarded as if it had come so."""
    checked = check(as_otlp_json(a_request()), "traces", is_json=True)

    assert ExportTraceServiceRequest.FromString(checked.body) == a_request()


def test_protobuf_is_kept_byte_for_byte_unknown_fields_included():
    """A field of a later version of the protocol goes on to whoever understands it."""
    body = a_request().SerializeToString() + b"\xfa\x3e\x03abc"

    assert check(body, "traces").body == body


def test_a_bad_span_takes_nothing_else_with_it():
    """The good span of the same scope stays as it was."""
    request = a_request()
    request.resource_spans[0].scope_spans[0].spans.add(trace_id=TRACE, span_id=b"short")

    checked = check(request.SerializeToString(), "traces")
    assert ExportTraceServiceRequest.FromString(checked.body) == a_request()
    assert (checked.accepted, checked.rejected) == (1, {"bad_span_id": 1})


def test_heads_name_span_parent_and_end():
    """What assembly holds of a span, read at the door and again from the journal."""
    body = a_request().SerializeToString()

    assert check(body, "traces").heads == heads_of(body, "traces") == {TRACE: HEAD.pack(SPAN, PARENT, 1)}


@pytest.mark.parametrize("where", ["scope", "resource"])
def test_our_own_spans_are_kept_and_never_judged(where):
    """Verdicts that come back from a backend, and replays, have no head."""
    request = a_request()
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
    document = json.loads(as_otlp_json(a_request()))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0].update(change)

    with pytest.raises(UnreadableInput, match=next(iter(change))):
        check(json.dumps(document).encode(), "traces", is_json=True)


def test_what_protobuf_parsers_would_not_take_is_marked_and_the_span_kept():
    """An attribute nested beyond every parser's limit is left out with a mark in its place."""
    value: dict[str, object] = {"stringValue": "deep"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}
    document = json.loads(as_otlp_json(a_request()))
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [{"key": "k", "value": value}]

    checked = check(json.dumps(document).encode(), "traces", is_json=True)
    assert TOO_DEEP.encode() in checked.body
    assert heads_of(checked.body, "traces")


def test_half_a_surrogate_pair_is_replaced():
    """JSON can say what no UTF-8 can; the span is kept."""
    body = as_otlp_json(a_request()).replace(b"ch\\u00e4t", b"ch\\ud800t")

    request = ExportTraceServiceRequest.FromString(check(body, "traces", is_json=True).body)
    assert request.resource_spans[0].scope_spans[0].spans[0].name == "ch���t"


def test_slices_are_the_bytes_that_came():
    """A request cut by trace and joined again is the same request."""
    body = a_request().SerializeToString()

    assert ExportTraceServiceRequest.FromString(joined(cut(body, "traces")[TRACE])) == a_request()

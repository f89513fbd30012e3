"""What stands in requests, and what is kept of it."""

from __future__ import annotations

import json
import math

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.receiving.json_request import TOO_DEEP
from redfirst.collector_processor.receiving.request import heads_of
from redfirst.collector_processor.scoring.slices import cut
from redfirst.evaluators.otlp import decode_traces
from tests.otlp.bodies import JSON, NOW, SPAN, TRACE, a_span, body, json_body, json_of, logs, request
from tests.otlp.items import proves
from tests.otlp.receiver import Receiver
from tests.otlp.wire import as_otlp_json, everything, field, nested, with_bad_text


def odd(receiver: Receiver, what: str) -> float:
    return receiver.metrics.value("redfirst_odd_records_total", what=what)


def posted(receiver: Receiver, document: bytes) -> dict[str, object]:
    """The partial success of a JSON request; empty when there was none."""
    found = receiver.post("/v1/traces", document, content_type=JSON)
    assert found.status == 200, found.body
    partial: dict[str, object] = json.loads(found.body).get("partialSuccess", {})
    return partial


@proves(28)
@pytest.mark.parametrize("parent", [b"short", bytes(8), b"longer than eight"])
def test_28_a_bad_parent_makes_a_root(receiver, kept, parent):
    """The span is kept as it came and read as a root; counted as odd."""
    before = odd(receiver, "bad_parent")
    assert receiver.post("/v1/traces", body(a_span(parent_span_id=parent))).body == b""
    (span,) = kept()
    assert span.parent_span_id == parent
    assert decode_traces(body(span))[0].parent_id is None
    assert odd(receiver, "bad_parent") == before + 1


@proves(28)
@pytest.mark.parametrize(
    ("trace_id", "span_id"), [(bytes(16), SPAN), (TRACE[:15], SPAN), (TRACE, bytes(8)), (TRACE, b"")]
)
def test_28_spans_without_ids_are_refused(receiver, kept, trace_id, span_id):
    """An id of another length, or of zeros alone, is none."""
    assert receiver.post("/v1/traces", body(a_span(span_id, trace_id=trace_id), a_span())).body != b""
    assert [span.span_id for span in kept()] == [SPAN]


@proves(28)
def test_28_an_id_that_is_there_twice(receiver):
    """The last counts, as for everybody who decodes it: for what assembly is told, and for what the run is read from."""
    other = bytes(15) + b"\x07"
    twice = a_span().SerializeToString() + field(1, other)
    assert receiver.post("/v1/traces", field(1, field(2, field(2, twice)))).body == b""
    kept = receiver.records()[-1].body
    assert heads_of(kept, "traces").keys() == cut(kept, "traces").keys() == {other}


@proves(25)
def test_25_log_records_without_a_trace(receiver, fresh):
    """Kept and counted, or, with `traceless_logs: refuse`, left out by partial success; those with a trace are kept."""
    data = logs({"time_unix_nano": 1}, {"time_unix_nano": 1, "trace_id": TRACE})
    before = odd(receiver, "no_trace")
    assert (receiver.post("/v1/logs", data).body, odd(receiver, "no_trace")) == (b"", before + 1)
    with fresh(keep_traceless=False) as strict:
        found = ExportLogsServiceResponse.FromString(strict.post("/v1/logs", data).body).partial_success
        assert (found.rejected_log_records, [log.trace_id for log in strict.logs()]) == (1, [TRACE])
        assert "without a trace id" in found.error_message


@proves(29)
@pytest.mark.parametrize("spelled", [TRACE.hex(), TRACE.hex().upper()])
def test_29_hex_of_any_case(receiver, kept, spelled):
    """Either way it is the same trace."""
    assert posted(receiver, json_body(traceId=spelled)) == {}
    assert kept()[0].trace_id == TRACE


@proves(29)
@pytest.mark.parametrize("spelled", ["W47/95gDgQPSabYzgT/GDA==", "0102", "zz" * 16, TRACE.hex(" ")[:32]])
def test_29_anything_else_is_no_id(receiver, kept, spelled):
    """Base64 is not guessed: the span is refused alone."""
    assert posted(receiver, json_body(traceId=spelled))["rejectedSpans"] == "1"
    assert kept() == []


@proves(30)
def test_30_enums_are_integers(receiver, kept):
    """Also ones nobody knows yet; names are refused, for that span alone."""
    assert posted(receiver, json_body(kind=3, status={"code": 7})) == {}
    assert (kept()[0].kind, kept()[0].status.code) == (3, 7)
    assert posted(receiver, json_body(beside=True, status={"code": "STATUS_CODE_OK"}))["rejectedSpans"] == "1"


@proves(31)
def test_31_unknown_fields_at_any_depth(receiver, kept):
    """They are ignored; `null` is a field that is not there, and a name in snake_case is unknown."""
    value = {"stringValue": "v", "newer": [1, {"x": None}]}
    document = json_body(
        newer={}, start_time_unix_nano="5", parentSpanId=None, attributes=[{"key": "k", "value": value}]
    )
    assert posted(receiver, document) == {}
    (span,) = kept()
    assert (span.start_time_unix_nano, span.parent_span_id, span.attributes[0].value.string_value) == (
        0,
        b"",
        "v",
    )


@proves(31)
def test_31_a_list_is_no_message(receiver):
    """`[]` where an object belongs is refused, for that span alone."""
    assert posted(receiver, json_body(beside=True, status=[]))["rejectedSpans"] == "1"


@proves(32)
@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"intValue": "9007199254740993"}, ("int_value", 2**53 + 1)),
        ({"intValue": 9007199254740993}, ("int_value", 2**53 + 1)),
        ({"intValue": "-9223372036854775808"}, ("int_value", -(2**63))),
        ({"doubleValue": "Infinity"}, ("double_value", math.inf)),
        ({"doubleValue": "-Infinity"}, ("double_value", -math.inf)),
        ({"doubleValue": 1}, ("double_value", 1.0)),
        ({"bytesValue": "+/8="}, ("bytes_value", b"\xfb\xff")),
        ({"bytesValue": "-_8"}, ("bytes_value", b"\xfb\xff")),
        ({"stringValue": "\u00e4\U0001f4e6"}, ("string_value", "\u00e4\U0001f4e6")),
    ],
)
def test_32_values_without_loss(receiver, kept, value, read):
    """64-bit integers as text or number, doubles as words, bytes in either base64, padded or not."""
    assert posted(receiver, json_body(attributes=[{"key": "k", "value": value}])) == {}
    found = kept()[0].attributes[0].value
    assert (found.WhichOneof("value"), getattr(found, read[0])) == read


@proves(32)
def test_32_not_a_number(receiver, kept):
    """`NaN` is a word in JSON."""
    posted(receiver, json_body(attributes=[{"key": "k", "value": {"doubleValue": "NaN"}}]))
    assert math.isnan(kept()[0].attributes[0].value.double_value)


@proves(32)
@pytest.mark.parametrize(
    "value",
    [{"intValue": "9223372036854775808"}, {"intValue": "1_0"}, {"intValue": 0.5}, {"bytesValue": "!"}],
)
def test_32_what_is_no_such_value(receiver, value):
    """Out of range, or of another kind: that span is refused alone."""
    document = json_body(beside=True, attributes=[{"key": "k", "value": value}])
    assert posted(receiver, document)["rejectedSpans"] == "1"


@proves(32, 35)
def test_32_half_a_surrogate_pair(receiver, kept):
    """What no UTF-8 can hold is replaced, the span is kept, and the sender is told."""
    before = odd(receiver, "bad_utf8")
    partial = posted(receiver, json_body(name="a\ud800z"))
    assert partial == {"errorMessage": "1 texts were not UTF-8 and got U+FFFD where they were not."}
    assert kept()[0].name == "a\ufffdz"
    assert odd(receiver, "bad_utf8") == before + 1


@proves(33, 37, 38)
def test_33_json_is_the_protobuf_request_it_stands_for(receiver):
    """Every field the protocol has, every kind of value: the two are kept as equal messages."""
    before = len(receiver.records())
    assert receiver.post("/v1/traces", as_otlp_json(everything()), content_type=JSON).body == b"{}"
    (record,) = receiver.records()[before:]
    assert ExportTraceServiceRequest.FromString(record.body) == everything()


@proves(34, 38)
def test_34_protobuf_is_kept_byte_for_byte(receiver):
    """Fields of a later version of the protocol among it."""
    before = len(receiver.records())
    data = everything().SerializeToString() + b"\xfa\x3e\x03abc"
    assert receiver.post("/v1/traces", data).body == b""
    assert receiver.records()[before].body == data


@proves(34)
def test_34_a_string_table_is_no_fault(receiver, kept):
    """A value that only names a place in a table that traces do not have is an absent value."""
    span = a_span()
    span.attributes.add(key="k").value.ParseFromString(b"\x40\x05")  # field 8: string_value_strindex
    assert receiver.post("/v1/traces", body(span)).body == b""
    assert decode_traces(body(*kept()))[0].attributes == {"k": None}


@proves(35)
@pytest.mark.parametrize("where", ["name", "attribute", "resource", "scope", "schema_url"])
def test_35_text_that_is_not_utf8(receiver, kept, where):
    """It gets U+FFFD where it is wrong, the sender is told, and a span beside it stays as it was."""
    before = odd(receiver, "bad_utf8")
    found = receiver.post("/v1/traces", with_bad_text(where))
    assert found.status == 200
    assert b"1 texts were not UTF-8" in found.body
    assert odd(receiver, "bad_utf8") == before + 1
    assert [span.span_id for span in kept()] == [SPAN, b"neighbor"]
    assert "a\ufffdz".encode() in receiver.records()[-1].body


@proves(36)
@pytest.mark.parametrize("levels", [30, 60, 500])
@pytest.mark.parametrize("kind", ["array", "kvlist"])
def test_36_deep_values_in_protobuf(receiver, kept, levels, kind):
    """Beyond what parsers take everywhere a mark stands in the value's place; the span and its neighbour are kept."""
    found = receiver.post("/v1/traces", nested(levels, kind))
    assert (found.status, len(kept())) == (200, 2)
    marked = TOO_DEEP.encode() in receiver.records()[-1].body
    assert marked == (levels > 30)
    assert (b"nested too deeply" in found.body) == marked


@proves(36)
@pytest.mark.parametrize("levels", [30, 200, 5000])
def test_36_deep_values_in_json(receiver, kept, levels):
    """The same in JSON, also where no parser of JSON reads as deep: what is around the value is kept."""
    value = '{"arrayValue": {"values": [' * levels + '{"stringValue": "]} deep"}' + "]}}" * levels
    document = json_body(
        attributes=[{"key": "k", "value": "HERE"}, {"key": "after", "value": {"intValue": 1}}]
    )
    text = document.replace(b'"HERE"', value.encode())
    before = odd(receiver, "too_deep")
    found = receiver.post("/v1/traces", text, content_type=JSON)
    marked = TOO_DEEP.encode() in receiver.records()[-1].body
    assert (found.status, marked) == (200, levels > 30)
    assert (b"nested too deeply" in found.body) == marked
    assert odd(receiver, "too_deep") == before + marked
    assert [pair.key for pair in kept()[0].attributes] == ["k", "after"]


@proves(36)
def test_36_json_without_bottom_is_400(receiver):
    """Brackets in the thousands are no request, and end no process."""
    assert receiver.post("/v1/traces", b"[" * 100_000, content_type=JSON).status == 400


@proves(37)
def test_37_of_a_key_twice_the_last(receiver, kept):
    """Both are kept as they came; read is the last."""
    span = a_span()
    span.attributes.add(key="k").value.int_value = 1
    span.attributes.add(key="k").value.string_value = "two"
    receiver.post("/v1/traces", body(span))
    assert len(kept()[0].attributes) == 2
    assert decode_traces(body(*kept()))[0].attributes == {"k": "two"}


@proves(37)
def test_37_of_a_json_name_twice_the_last(receiver, kept):
    """An object that has one name twice is read as JSON's parsers read it."""
    twice = json_body().replace(b'"name": "chat"', b'"name": "first", "name": "last"')
    assert receiver.post("/v1/traces", twice, content_type=JSON).body == b"{}"
    assert kept()[0].name == "last"


@proves(39, 40, 41)
@pytest.mark.parametrize(
    ("start", "end", "what"),
    [
        (NOW, NOW - 5, "bad_times"),
        (NOW, 0, "bad_times"),
        (5, 6, "far_time"),
        (2**64 - 2, 2**64 - 1, "far_time"),
    ],
)
def test_39_times_are_kept_as_they_came(receiver, kept, start, end, what):
    """Backwards, unfinished, of 1970 or of the year 2554: accepted, counted as odd, never rewritten."""
    before = odd(receiver, what)
    assert (
        receiver.post("/v1/traces", body(a_span(start_time_unix_nano=start, end_time_unix_nano=end))).body
        == b""
    )
    (span,) = kept()
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (start, end)
    assert odd(receiver, what) == before + 1


@proves(40)
def test_40_records_are_dated_by_arrival(receiver):
    """A sender's clock has no say in when something came."""
    receiver.post("/v1/traces", body(a_span(start_time_unix_nano=1, end_time_unix_nano=2)))
    first = receiver.records()[-1].arrival_ns
    receiver.post("/v1/traces", body(a_span(start_time_unix_nano=2**63, end_time_unix_nano=2**63)))
    assert 10**18 < first <= receiver.records()[-1].arrival_ns < 2 * 10**18


@proves(28, 31)
def test_31_resources_and_scopes_without_anything(receiver, kept):
    """A resource, a scope or a name may be missing."""
    assert posted(receiver, json_of([{"traceId": TRACE.hex(), "spanId": SPAN.hex()}])) == {}
    assert len(kept()) == 1
    bare = request(a_span())
    bare.resource_spans[0].ClearField("resource")
    assert receiver.post("/v1/traces", bare.SerializeToString()).body == b""

"""OTLP bodies are read whatever encoding they come in, and bad ones are refused with a reason."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators.errors import RedfirstError, UnreadableInput
from redfirst.evaluators.otlp import MAX_BYTES, decode, decode_logs, decode_traces
from redfirst.evaluators.span import StatusCode

FIXTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
BODIES = sorted(FIXTURES.glob("*.otlp.pb"))
TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"


def request(**fields: object) -> dict[str, object]:
    """An export request of one span."""
    span = {
        "traceId": TRACE,
        "spanId": SPAN,
        "name": "a",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "2",
    } | fields
    return {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "s"}, "spans": [span]}]}]}


def body(**fields: object) -> bytes:
    return json.dumps(request(**fields)).encode()


def the_value(value: object) -> object:
    """One attribute value after a trip through OTLP/JSON."""
    (span,) = decode_traces(body(attributes=[{"key": "k", "value": value}]))
    return span.attributes["k"]


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.name.removesuffix(".otlp.pb"))
def test_protobuf_bodies_are_told_apart_by_their_content(path: Path):
    """A body with spans gives spans and one with log records gives log records, without being told which."""
    found = decode(path.read_bytes())

    assert bool(found.logs) == (".logs." in path.name)
    assert bool(found.spans) == (".logs." not in path.name)
    assert found.refused == ()


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.otlp.json")), ids=lambda path: path.name)
def test_json_and_protobuf_are_one_message(path: Path):
    """The two encodings of one request give equal spans and equal log records."""
    twin = path.with_suffix(".pb")

    assert decode(path.read_bytes()) == decode(twin.read_bytes())


def test_gzip_is_unpacked_around_any_encoding():
    """A gzipped body, even of several members, reads as the body itself."""
    one, two = body(), body(spanId="b7ad6b7169203332")
    lines = gzip.compress(one + b"\n") + gzip.compress(two)

    assert len(decode(lines).spans) == 2
    assert decode(gzip.compress(BODIES[0].read_bytes())) == decode(BODIES[0].read_bytes())


def test_each_json_line_is_a_request():
    """Lines of trace and log requests, blank ones between, are one stream."""
    log = {
        "resourceLogs": [
            {"scopeLogs": [{"logRecords": [{"traceId": TRACE, "spanId": SPAN, "eventName": "e"}]}]}
        ]
    }
    found = decode(body() + b"\n\n" + json.dumps(log).encode() + b"\r\n")

    assert (len(found.spans), len(found.logs)) == (1, 1)
    assert found.logs[0].event_name == "e"


def test_a_pretty_printed_document_is_not_lines():
    """One JSON document over many lines is read as one."""
    assert len(decode(json.dumps(request(), indent=2).encode()).spans) == 1


def test_a_half_last_line_names_its_line():
    """A file whose writer was stopped says which line is cut short."""
    with pytest.raises(UnreadableInput, match=r"line 3: .*cut short"):
        decode(body() + b"\n" + body() + b"\n" + body()[:50])


def test_field_names_and_numbers_in_every_allowed_form():
    """snake_case names, integers as numbers or strings, enums by name: all are the same span."""
    snake = {
        "resource_spans": [
            {
                "scope_spans": [
                    {
                        "spans": [
                            {
                                "trace_id": TRACE.upper(),
                                "span_id": SPAN,
                                "start_time_unix_nano": 1,
                                "end_time_unix_nano": 2.0,
                                "name": "a",
                                "kind": "SPAN_KIND_CLIENT",
                                "status": {"code": "STATUS_CODE_ERROR", "message": "no"},
                                "attributes": [{"key": "n", "value": {"int_value": "9007199254740993"}}],
                                "some_field_of_tomorrow": [1, {"x": 2}],
                            }
                        ]
                    }
                ]
            }
        ]
    }
    (span,) = decode_traces(json.dumps(snake).encode())

    assert (span.trace_id, span.start_ns, span.end_ns, span.kind) == (TRACE, 1, 2, 3)
    assert (span.status, span.status_message) == (StatusCode.ERROR, "no")
    assert span.attributes == {"n": 9007199254740993}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ({"stringValue": "é"}, "é"),
        ({"boolValue": False}, False),
        ({"intValue": "-5"}, -5),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "-Infinity"}, float("-inf")),
        ({"bytesValue": base64.b64encode(b"\x00\xff").decode()}, b"\x00\xff"),
        ({"arrayValue": {"values": [{"intValue": 1}, {}]}}, (1, None)),
        ({"kvlistValue": {"values": [{"key": "a", "value": {"stringValue": "b"}}]}}, {"a": "b"}),
        ({"arrayValue": {}}, ()),
        ({}, None),
        (None, None),
    ],
)
def test_attribute_values_become_plain_values(written: object, read: object):
    """Each kind of AnyValue has one Python value."""
    assert the_value(written) == read


def test_base64_ids_are_read_only_where_their_length_proves_it():
    """An id is hex; 24 and 12 characters can only be base64 of 16 and 8 bytes."""
    encoded = {
        "traceId": base64.b64encode(bytes.fromhex(TRACE)).decode(),
        "spanId": base64.b64encode(bytes.fromhex(SPAN)).decode(),
    }
    (span,) = decode_traces(body(**encoded))

    assert (span.trace_id, span.span_id) == (TRACE, SPAN)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"traceId": "0" * 32}, "bad trace id"),
        ({"traceId": "xyz"}, "bad trace id"),
        ({"spanId": ""}, "bad span id"),
        ({"spanId": 7}, "bad span id"),
        ({"spanId": "zz" * 8}, "bad span id"),
    ],
)
def test_a_span_with_bad_ids_is_left_out_and_counted(fields: dict[str, object], reason: str):
    """One unusable span costs itself, not its body, and its place is told."""
    good = request()["resourceSpans"]
    bad = request(**fields)["resourceSpans"]
    found = decode(json.dumps({"resourceSpans": [*good, *bad]}).encode())  # type: ignore[misc]

    assert len(found.spans) == 1
    assert found.refusals() == {reason: 1}
    assert found.refused[0].where == "resourceSpans[1].scopeSpans[0].spans[0]"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"startTimeUnixNano": "soon"},
            r"spans\[0\]\.startTimeUnixNano: expected a 64-bit integer, found str 'soon'",
        ),
        ({"startTimeUnixNano": -1}, "64-bit integer"),
        ({"endTimeUnixNano": 2**64}, "64-bit integer"),
        ({"attributes": {"k": "v"}}, r"attributes: expected an array, found dict"),
        ({"attributes": [{"key": 1, "value": {}}]}, r"attributes\[0\]\.key: expected a string"),
        ({"attributes": [{"key": "k", "value": "bare"}]}, "expected an object, found str 'bare'"),
        ({"attributes": [{"key": "k", "value": {"boolValue": "yes"}}]}, "expected true or false"),
        ({"attributes": [{"key": "k", "value": {"bytesValue": "§"}}]}, "expected base64"),
        ({"name": ["a"]}, "name: expected a string"),
        ({"events": [3]}, r"events\[0\]: expected an object"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields: dict[str, object], message: str):
    """The message says where, what was expected and what was found."""
    with pytest.raises(UnreadableInput, match=message):
        decode(body(**fields))


@pytest.mark.parametrize(
    "bad",
    [
        b"\x00\x01\x02",
        b"\x0a\x05abc",
        b"not otlp at all",
        b"[1, 2]",
        b'"text"',
        b'{"a": 1}',
        b"{" * 10,
        b'{"resourceSpans": ' + b"[" * 200_000,
        b'{"resourceSpans": "\xff\xfe"}',
        b'{"resourceSpans": ' + b"9" * 5_000 + b"}",
        gzip.compress(b"{}")[:-3],
        b"\x1f\x8b\x08nonsense",
    ],
    ids=lambda bad: repr(bad[:12]),
)
def test_what_is_no_otlp_is_refused_with_a_reason(bad: bytes):
    """No bad body raises anything but our own error, in one line."""
    with pytest.raises(UnreadableInput) as caught:
        decode(bad)

    assert str(caught.value)
    assert "\n" not in str(caught.value)


def test_deeply_nested_values_are_refused():
    """A value nested a thousand levels deep is an error, not a crash."""
    value: dict[str, object] = {"stringValue": "x"}
    for _ in range(200):
        value = {"arrayValue": {"values": [value]}}

    with pytest.raises(UnreadableInput, match="levels deep"):
        the_value(value)


def test_half_a_surrogate_pair_is_replaced():
    """JSON may carry half a character; no UTF-8 output could, so it is replaced at the door."""
    found = the_value({"stringValue": "cut \ud83d"})

    assert isinstance(found, str)
    assert found.encode("utf-8")


def test_a_gzip_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch):
    """What would unpack beyond the limit is refused before it is unpacked."""
    monkeypatch.setattr("redfirst.evaluators.otlp.MAX_BYTES", 1_000)

    with pytest.raises(UnreadableInput, match="unpack to more than"):
        decode(gzip.compress(b"x" * 100_000))
    assert MAX_BYTES >= 2**20


def test_an_empty_body_holds_nothing():
    """Nothing is no error: an exporter may flush an empty batch."""
    assert decode(b"").spans == ()
    assert decode_logs(b"{}", content="json") == []


@settings(max_examples=300, deadline=None)
@given(
    st.binary(max_size=200) | st.text(max_size=80).map(lambda t: b"{" + t.encode("utf-8", "surrogatepass"))
)
def test_no_bytes_raise_anything_but_our_error(data: bytes):
    """Any bytes at all are either read or refused."""
    with contextlib.suppress(RedfirstError):
        decode(data)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_body_is_read_or_refused(data: st.DataObject):
    """A real body with one byte changed, or cut short, never raises anything but our error."""
    whole = bytearray(data.draw(st.sampled_from(BODIES)).read_bytes())
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        whole[place] = data.draw(st.integers(0, 255))
    else:
        del whole[place:]
    with contextlib.suppress(RedfirstError):
        decode(bytes(whole))


def test_importing_the_reader_is_cheap():
    """Importing it brings neither protobuf nor the OpenTelemetry SDK."""
    script = (
        "import sys; import redfirst.evaluators.otlp;"
        "print([m for m in sys.modules if m.startswith(('google.protobuf', 'opentelemetry', 'numpy', 'pydantic'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("body", [b"x\n", b"hi", b"zz"])
def test_a_few_letters_are_no_request_though_they_parse_as_unknown_fields(body: bytes) -> None:
    """A text file named by mistake is refused, not read as a file without runs."""
    with pytest.raises(UnreadableInput, match="Neither an OTLP"):
        decode(body)

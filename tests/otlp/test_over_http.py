"""OTLP/HTTP, by bytes over a socket."""

from __future__ import annotations

import gzip
import json
import socket
import threading
import zlib

import pytest
import zstandard
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from redfirst.collector_processor.receiving.over_http import HttpOptions
from tests.otlp.bodies import JSON, PROTOBUF, a_span, body, json_body, json_of, logs, metrics
from tests.otlp.items import proves
from tests.otlp.receiver import Answer, answer, head
from tests.service.conftest import eventually


def status_of(found: Answer) -> Status:
    """The Status in an answer, in whichever encoding."""
    if found.headers["content-type"] == PROTOBUF:
        return Status.FromString(found.body)
    said = json.loads(found.body)
    return Status(code=said["code"], message=said["message"])


@proves(2)
def test_02_paths_and_methods(receiver):
    """The two signals' paths take POST; another path, profiles among them, is 404; another method 405 with `Allow`."""
    assert receiver.post("/v1/traces", body()).status == 200
    assert receiver.post("/v1/logs", logs({"time_unix_nano": 1})).status == 200
    assert receiver.post("/v1development/profiles", b"").status == 404
    got = receiver.say(head("GET", "/v1/traces", {}))
    assert (got.status, got.headers["allow"]) == (405, "POST")


@proves(2)
def test_02_a_prefix(fresh):
    """With `http_prefix` the paths are below it, and nowhere else."""
    with fresh(http=HttpOptions(prefix="/otlp")) as receiver:
        assert receiver.post("/otlp/v1/traces", body()).status == 200
        assert receiver.post("/v1/traces", body()).status == 404


@proves(3, 4)
@pytest.mark.parametrize("kind", ["application/x-protobuf", "Application/X-Protobuf; charset=utf-8"])
def test_03_protobuf_in_any_spelling(receiver, kind):
    """Case and parameters of the content type do not matter; the answer's is the plain one."""
    found = receiver.post("/v1/traces", body(), content_type=kind)
    assert (found.status, found.headers["content-type"]) == (200, PROTOBUF)


@proves(3, 4)
def test_03_json_on_the_same_port(receiver, kept):
    """JSON is answered in JSON."""
    found = receiver.post("/v1/traces", json_body(), content_type="application/json; charset=utf-8")
    assert (found.status, found.headers["content-type"], found.body) == (200, JSON, b"{}")
    assert [span.name for span in kept()] == ["chat"]


@proves(3, 5)
@pytest.mark.parametrize("headers", [{"content-type": "text/plain"}, {}])
def test_03_another_type_or_none(receiver, headers):
    """415, and the Status is in JSON, since the sender's encoding is not known."""
    found = receiver.say(head("POST", "/v1/traces", {"content-length": "0", **headers}))
    assert (found.status, found.headers["content-type"], status_of(found).code) == (415, JSON, 3)


@proves(5)
@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("path", "data", "headers", "expected"),
    [
        ("/v1/traces", b"\xff\xff", {}, (400, 3)),
        ("/v1/none", b"", {}, (404, 5)),
        ("/v1/traces", bytes(200_001), {}, (413, 8)),
        ("/v1/traces", b"x", {"content_encoding": "br"}, (415, 3)),
    ],
)
def test_05_every_refusal_is_a_status(receiver, kind, path, data, headers, expected):
    """Also for 404, 413 and 415, in the encoding of the request."""
    found = receiver.post(path, data, content_type=kind, **headers)
    assert (found.status, status_of(found).code) == expected
    assert (found.headers["content-type"], bool(status_of(found).message)) == (kind, True)


@proves(5)
def test_05_a_400_says_what_field(receiver):
    """`BadRequest` is among the details, in protobuf and in JSON."""
    (detail,) = Status.FromString(receiver.post("/v1/traces", b"\xff").body).details
    violation = BadRequest()
    assert detail.Unpack(violation)
    assert violation.field_violations[0].field == "body"
    (said,) = json.loads(receiver.post("/v1/traces", b"{", content_type=JSON).body)["details"]
    assert said["@type"] == "type.googleapis.com/google.rpc.BadRequest"
    assert said["fieldViolations"][0]["field"] == "body"


@proves(5)
def test_05_what_is_no_http_is_a_status_too(receiver):
    """The answer to garbage is 400 with a Status in JSON."""
    found = receiver.say(b"garbage\r\n\r\n")
    assert (found.status, status_of(found).code, found.headers["connection"]) == (400, 3, "close")


@proves(6)
@pytest.mark.parametrize(
    ("encoding", "squeeze"),
    [
        ("gzip", gzip.compress),
        ("GZIP", lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
        ("deflate", zlib.compress),
        ("zlib", zlib.compress),
        ("zstd", zstandard.compress),
        ("zstd", lambda data: zstandard.compress(data[:9]) + zstandard.compress(data[9:])),
        ("identity", bytes),
    ],
)
def test_06_compressions(receiver, kept, encoding, squeeze):
    """Several members or frames of one encoding are one body."""
    assert receiver.post("/v1/traces", squeeze(body()), content_encoding=encoding).status == 200
    assert len(kept()) == 1


@proves(6)
@pytest.mark.parametrize(
    ("encoding", "data", "expected"),
    [
        ("snappy", b"x", 415),
        ("gzip, gzip", gzip.compress(gzip.compress(b"x")), 415),
        ("gzip", b"not gzip", 400),
        ("gzip", gzip.compress(b"x" * 100)[:-4], 400),
        ("zstd", zstandard.compress(b"x" * 100)[:-2], 400),
    ],
)
def test_06_what_cannot_be_unpacked(receiver, encoding, data, expected):
    """An unknown or stacked encoding is 415; damaged or cut data are 400."""
    assert receiver.post("/v1/traces", data, content_encoding=encoding).status == expected


@proves(7, 17)
def test_07_a_body_over_the_limit(receiver):
    """413, before it is read, and the connection is closed."""
    found = receiver.post("/v1/traces", bytes(200_001))
    assert (found.status, found.headers["connection"]) == (413, "close")
    assert "retry-after" not in found.headers


@proves(8)
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd"])
def test_08_a_body_that_grows(receiver, encoding):
    """A few bytes that would unpack to 50 MB stop at the limit."""
    squeeze = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.compress}[encoding]
    small = squeeze(bytes(50_000_000))
    assert len(small) < 100_000
    assert receiver.post("/v1/traces", small, content_encoding=encoding).status == 413


@proves(8)
@pytest.mark.parametrize(
    ("encoding", "empty"),
    [
        ("deflate", zlib.compress(b"")),
        ("zstd", zstandard.compress(b"")),
        ("zstd", b"\x50\x2a\x4d\x18\0\0\0\0"),
    ],
    ids=["zlib", "zstd", "zstd, skipped"],
)
def test_08_a_body_of_nothing_again_and_again(receiver, encoding, empty):
    """Ten thousand empty streams are a body, of one more nothing is unpacked: each costs time and holds nothing."""
    assert receiver.post("/v1/traces", empty * 10_000, content_encoding=encoding).status == 200
    found = receiver.post("/v1/traces", empty * 10_001, content_encoding=encoding)
    assert (found.status, b"more than 10000 streams" in found.body) == (400, True)


@proves(8, 17)
def test_08_a_chunked_body_is_measured_as_it_comes(receiver):
    """Without a length, what has come is counted."""
    chunk = b"4e20\r\n" + bytes(20_000) + b"\r\n"
    top = head("POST", "/v1/traces", {"content-type": PROTOBUF, "transfer-encoding": "chunked"})
    assert receiver.say(top + chunk * 11).status == 413


@proves(9, 15)
def test_09_one_budget(fresh):
    """What is in flight over all connections is bounded; one more is pushed back, and taken when there is room again."""
    with fresh(budget_bytes=300_000) as receiver, receiver.connect() as first:
        first.sendall(
            head("POST", "/v1/traces", {"content-type": PROTOBUF, "content-length": "190000"})
            + bytes(189_000)
        )
        eventually(lambda: receiver.acceptor.budget.used >= 189_000)
        pushed = receiver.post("/v1/traces", bytes(150_000))
        assert (pushed.status, pushed.headers["retry-after"]) == (503, "1")
        first.close()
        eventually(lambda: receiver.acceptor.budget.used == 0)
        assert receiver.post("/v1/traces", body()).status == 200


@proves(10)
def test_10_long_messages_are_cut(receiver):
    """However much is wrong, the answer is short."""
    spans = [{"traceId": "x" * 10_000, "spanId": "y"}] * 15
    found = receiver.post("/v1/traces", json_of(spans), content_type=JSON)
    assert found.status == 200
    assert len(found.body) < 4096
    assert len(receiver.post("/v1/" + "x" * 9000, b"").body) < 4096


@proves(11, 12)
@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        (PROTOBUF, b"", b""),
        (PROTOBUF, b"\x0a\x00", b""),
        (JSON, b"{}", b"{}"),
        (JSON, b'{"resourceSpans": [{"scopeSpans": []}]}', b"{}"),
    ],
)
def test_11_nothing_in_it(receiver, kept, kind, data, expected):
    """No bytes, or envelopes without spans: a full success, and nothing is stored."""
    found = receiver.post("/v1/traces", data, content_type=kind)
    assert (found.status, found.body, kept()) == (200, expected, [])


@proves(12)
def test_12_full_success_is_an_empty_message(receiver):
    """No bytes at all in protobuf, `{}` in JSON."""
    assert receiver.post("/v1/traces", body()).body == b""
    assert receiver.post("/v1/traces", json_body(), content_type=JSON).body == b"{}"


@proves(13, 14)
def test_13_a_bad_span_is_refused_alone(receiver, kept):
    """The good one is kept; the sender is told how many were not, and why."""
    data = body(a_span(), a_span(b"short"), a_span(trace_id=bytes(16)))
    partial = ExportTraceServiceResponse.FromString(receiver.post("/v1/traces", data).body).partial_success
    assert (partial.rejected_spans, len(kept())) == (2, 1)
    assert "1 with a bad span id" in partial.error_message
    assert "1 with a bad trace id" in partial.error_message


@proves(13)
def test_13_a_warning_without_a_rejection(receiver):
    """A body that holds nothing we know is a success with a message: names in snake_case are told so."""
    found = receiver.post("/v1/traces", b'{"resource_spans": [{}]}', content_type=JSON)
    assert (found.status, "no resourceSpans" in json.loads(found.body)["partialSuccess"]["errorMessage"]) == (
        200,
        True,
    )
    assert "rejectedSpans" not in json.loads(found.body)["partialSuccess"]


@proves(14)
def test_14_one_json_span_that_cannot_be_read(receiver, kept):
    """It is refused alone, with the field named; when it is the only one, the request is 400."""
    found = receiver.post("/v1/traces", json_body(beside=True, kind="SPAN_KIND_CLIENT"), content_type=JSON)
    partial = json.loads(found.body)["partialSuccess"]
    assert (found.status, partial["rejectedSpans"], len(kept())) == (200, "1", 1)
    assert "kind" in partial["errorMessage"]
    assert receiver.post("/v1/traces", json_body(kind="SPAN_KIND_CLIENT"), content_type=JSON).status == 400


@proves(14)
def test_14_one_protobuf_span_that_is_none(receiver, kept):
    """Bytes that are no span, where a span should be, take no other with them."""
    from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans

    good = body()
    scope = ScopeSpans(spans=[a_span()]).SerializeToString() + b"\x12\x03\xff\xff\xff"
    group = b"\x12" + bytes([len(scope)]) + scope
    found = receiver.post("/v1/traces", good + b"\x0a" + bytes([len(group)]) + group)
    partial = ExportTraceServiceResponse.FromString(found.body).partial_success
    assert (found.status, partial.rejected_spans, len(kept())) == (200, 1, 2)


@proves(15)
def test_15_a_mistake_of_ours_is_503(receiver, monkeypatch, caplog):
    """A fault is never 500, which senders take for "throw it away"."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(receiver.acceptor, "accept", broken)
    found = receiver.post("/v1/traces", body())
    assert (found.status, found.headers["retry-after"], status_of(found).code) == (503, "1", 14)
    (detail,) = Status.FromString(found.body).details
    retry = RetryInfo()
    assert detail.Unpack(retry)
    assert retry.retry_delay.seconds == 1


@proves(15)
def test_15_a_journal_that_cannot_be_written_is_503(receiver, monkeypatch):
    """Nothing is accepted that is not durable: here its share of the disk is used up."""
    monkeypatch.setattr(receiver.journal._budget, "most", 0)
    found = receiver.post("/v1/traces", body())
    assert (found.status, found.headers["retry-after"]) == (503, "1")
    assert receiver.metrics.value("redfirst_rejected_total", reason="full") >= 1


@proves(17)
def test_17_one_connection_for_many_requests(receiver, kept):
    """One after the other, and several sent before the first answer came; the answers come in order."""
    with receiver.connect() as connection:
        for _ in range(3):
            assert receiver.post("/v1/traces", body(), connection=connection).status == 200
        data = body()
        top = head("POST", "/v1/traces", {"content-type": PROTOBUF, "content-length": str(len(data))})
        wrong = head("POST", "/v1/none", {"content-type": PROTOBUF, "content-length": "0"})
        connection.sendall(top + data + wrong)
        assert [answer(connection).status] == [200]
        assert [answer(connection).status] == [404]
    assert len(kept()) == 4


@proves(17)
def test_17_expect_100_continue(receiver):
    """The sender is told to go on before it sends its body."""
    data = body()
    with receiver.connect() as connection:
        headers = {"content-type": PROTOBUF, "content-length": str(len(data)), "expect": "100-continue"}
        connection.sendall(head("POST", "/v1/traces", headers))
        assert connection.recv(4096).startswith(b"HTTP/1.1 100 ")
        connection.sendall(data)
        assert answer(connection).status == 200


@proves(17)
def test_17_chunked(receiver, kept):
    """A body in pieces of any size."""
    data = body()
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(data[at : at + 7]), data[at : at + 7]) for at in range(0, len(data), 7)
    )
    top = head("POST", "/v1/traces", {"content-type": PROTOBUF, "transfer-encoding": "chunked"})
    assert receiver.say(top + chunks + b"0\r\n\r\n").status == 200
    assert len(kept()) == 1


@proves(20)
def test_20_stalled_senders_hold_nobody_up(fresh):
    """With 200 sockets in the middle of a head or a body a healthy sender is served; then they are let go."""
    with fresh(http=HttpOptions(body_seconds=1.0), header_seconds=1.0) as receiver:
        top = head("POST", "/v1/traces", {"content-type": PROTOBUF, "content-length": "1000"})
        stalled: list[socket.socket] = []
        for n in range(200):
            stalled.append(receiver.connect())
            stalled[-1].sendall(top + b"x" if n % 2 else top[:20])
        assert receiver.post("/v1/traces", body()).status == 200
        assert {answer(connection).status for connection in stalled} == {408}
        assert receiver.acceptor.budget.used == 0
        for connection in stalled:
            connection.close()


@proves(20)
def test_20_a_slow_body_that_comes_along_is_waited_for(fresh):
    """The time for a body grows with what has come of it."""
    data = body(*(a_span(name="x" * 1000) for _ in range(180)))
    with fresh(http=HttpOptions(body_seconds=0.5)) as receiver, receiver.connect() as connection:
        top = head("POST", "/v1/traces", {"content-type": PROTOBUF, "content-length": str(len(data))})
        connection.sendall(top + data[:150_000])
        threading.Event().wait(0.8)
        connection.sendall(data[150_000:])
        assert answer(connection).status == 200


@proves(26)
def test_26_metrics_are_refused_point_by_point(receiver):
    """200 with the number of data points, so that no sender tries again; with `metrics_endpoint: absent`, 404."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

    found = receiver.post("/v1/metrics", metrics())
    assert found.status == 200
    assert ExportMetricsServiceResponse.FromString(found.body).partial_success.rejected_data_points == 2


@proves(26)
def test_26_metrics_can_be_absent(fresh):
    """A 404 instead, for senders that then stop."""
    with fresh(http=HttpOptions(metrics="absent")) as receiver:
        assert receiver.post("/v1/metrics", metrics()).status == 404


@proves(27)
def test_27_logs_posted_as_traces(receiver, kept):
    """They parse as spans without ids: each is refused, and the message asks whether they are another signal's."""
    found = receiver.post("/v1/traces", logs({"time_unix_nano": 1, "severity_number": 9}))
    partial = ExportTraceServiceResponse.FromString(found.body).partial_success
    assert (found.status, partial.rejected_spans, kept()) == (200, 1, [])
    assert "another signal" in partial.error_message

"""What is wrong is refused by the protocol's own means, and costs nothing but itself."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from urllib.parse import urlsplit

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


def a_json_span(
    trace_id: str = "5b8efff798038103d269b633813fc60c", span_id: str = "eee19b7ec3c1b174"
) -> bytes:
    span = {"traceId": trace_id, "spanId": span_id, "name": "chat", "kind": 1, "endTimeUnixNano": "1"}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


@pytest.mark.parametrize(
    ("body", "content"),
    [(b"\xff\xff\xff", PROTOBUF), (b"{", JSON), (b"[]", JSON), (b'{"resourceSpans": 7}', JSON)],
)
def test_an_undecodable_body_is_400_with_a_status_in_its_encoding(shared, body, content):
    """The sender is told by google.rpc.Status, in the encoding it spoke, and never tries again."""
    status, headers, answer = shared.post("/v1/traces", body, content_type=content)

    assert status == 400
    assert headers["content-type"] == content
    assert "retry-after" not in headers
    found = Status.FromString(answer) if content == PROTOBUF else json.loads(answer)
    assert (found.code if content == PROTOBUF else found["code"]) == 3
    assert found.message if content == PROTOBUF else found["message"]


def test_a_body_over_the_limit_is_413(shared):
    """A body that says that it is too large is refused before it is read."""
    status, headers, answer = shared.post("/v1/traces", bytes(300_000), content_type=PROTOBUF)

    assert status == 413
    assert headers["content-type"] == PROTOBUF
    assert Status.FromString(answer).code == 8


@pytest.mark.parametrize(("encoding", "squeeze"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_a_body_that_unpacks_beyond_the_limit_is_413(shared, encoding, squeeze):
    """A few bytes that would grow to many are stopped at the limit."""
    body = squeeze(bytes(50_000_000))
    assert len(body) < 200_000

    status, _, _ = shared.post("/v1/traces", body, content_type=PROTOBUF, content_encoding=encoding)

    assert status == 413


def test_a_chunked_body_is_measured_as_it_comes(shared):
    """A body that does not say how long it is is refused when it has become too long."""
    connection = http.client.HTTPConnection(urlsplit(shared.http).netloc, timeout=10)
    connection.request(
        "POST",
        "/v1/traces",
        body=(bytes(10_000) for _ in range(50)),
        headers={"content-type": PROTOBUF},
        encode_chunked=True,
    )
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/v1/traces", {"content_type": "text/plain"}, 415),
        ("/v1/traces", {"content_type": PROTOBUF, "content_encoding": "snappy"}, 415),
        ("/v1/traces", {"content_type": PROTOBUF, "content_encoding": "gzip"}, 400),
        ("/v1/nothing", {"content_type": PROTOBUF}, 404),
    ],
)
def test_what_is_not_spoken_here_has_its_status(shared, path, headers, expected):
    """An unknown type, encoding or path, and data that are not in the encoding they claim."""
    status, answered, body = shared.post(path, b"not gzip", **headers)

    assert status == expected
    assert (
        Status.FromString(body).message
        if answered["content-type"] == PROTOBUF
        else json.loads(body)["message"]
    )


def test_another_method_is_405_and_says_which(shared):
    """GET on the traces path is refused with the method that is allowed."""
    connection = http.client.HTTPConnection(urlsplit(shared.http).netloc, timeout=10)
    connection.request("GET", "/v1/traces", headers={"content-type": JSON})
    answer = connection.getresponse()

    assert (answer.status, answer.headers["allow"]) == (405, "POST")
    assert json.loads(answer.read())["message"]
    connection.close()


def test_a_span_with_bad_ids_is_refused_alone(shared, tools):
    """The good span of the same request is kept; the bad ones are counted for the sender."""
    request = tools.parsed(tools.body_of([*tools.a_run(spans=2), *tools.a_run(spans=2)]))
    spans = request.resource_spans[0].scope_spans[0].spans
    kept = spans[0].trace_id.hex()
    spans[2].trace_id = b"short"
    spans[3].span_id = bytes(8)

    status, _, answer = shared.post("/v1/traces", request.SerializeToString(), content_type=PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (status, partial.rejected_spans) == (200, 2)
    assert "bad trace id" in partial.error_message
    assert (
        tools.eventually(lambda: [run for run in shared.runs() if run["trace_id"] == kept])[0]["spans"] == 2
    )


def test_a_json_id_that_is_no_hex_is_refused_alone(shared):
    """Ids in base64 are not guessed at."""
    status, _, answer = shared.post("/v1/traces", a_json_span("W47/95gDgQPSabYzgT/GDA=="), content_type=JSON)

    partial = json.loads(answer)["partialSuccess"]
    assert (status, partial["rejectedSpans"]) == (200, "1")


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans": []}'])
def test_an_empty_request_is_a_full_success(shared, body):
    """Nothing in it, nothing wrong with it."""
    assert shared.post("/v1/traces", body, content_type=JSON)[::2] == (200, b"{}")


def test_success_is_an_empty_message(shared, tools):
    """A protobuf response without partial success has no bytes at all."""
    body = tools.body_of(tools.a_run())

    assert shared.post("/v1/traces", gzip.compress(body), content_type=PROTOBUF, content_encoding="gzip")[
        ::2
    ] == (
        200,
        b"",
    )


def test_snake_case_is_not_otlp_and_the_sender_is_told(shared):
    """Unknown names are ignored as the protocol demands, but a body of nothing else is not silently dropped."""
    status, _, answer = shared.post(
        "/v1/traces", b'{"resource_spans": [{"scope_spans": []}]}', content_type=JSON
    )

    assert status == 200
    assert "no resourceSpans" in json.loads(answer)["partialSuccess"]["errorMessage"]


def test_metrics_are_refused_in_the_protocols_own_way(shared):
    """Each data point is counted as rejected, with 200, so that no sender retries."""
    request = ExportMetricsServiceRequest()
    metric = request.resource_metrics.add().scope_metrics.add().metrics.add(name="m")
    metric.gauge.data_points.add(as_int=1)

    status, _, answer = shared.post("/v1/metrics", request.SerializeToString(), content_type=PROTOBUF)

    assert status == 200
    assert ExportMetricsServiceResponse.FromString(answer).partial_success.rejected_data_points == 1


def test_log_records_of_another_shape_are_told_apart(shared):
    """Logs posted as traces are refused record by record, with a hint."""
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(time_unix_nano=1, severity_number=9)

    status, _, answer = shared.post("/v1/traces", request.SerializeToString(), content_type=PROTOBUF)

    partial = ExportTraceServiceResponse.FromString(answer).partial_success
    assert (status, partial.rejected_spans) == (200, 1)
    assert "another signal" in partial.error_message


def test_grpc_says_the_same(shared, tools):
    """Undecodable is INVALID_ARGUMENT, too large RESOURCE_EXHAUSTED without a time to retry."""
    import grpc

    before = shared.metrics().get('redfirst_rejected_total{reason="too_large"}', 0)
    with grpc.insecure_channel(shared.grpc) as channel:
        export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
        with pytest.raises(grpc.RpcError) as undecodable:
            export(b"\xff\xff\xff", timeout=10)
        with pytest.raises(grpc.RpcError) as large:
            export(bytes(300_000), timeout=10)
        assert export(tools.body_of(tools.a_run()), timeout=10) == b""

    assert undecodable.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    details = dict(undecodable.value.trailing_metadata())["grpc-status-details-bin"]
    assert Status.FromString(details).code == 3
    assert large.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in dict(large.value.trailing_metadata())
    assert "200000 bytes (max_body_bytes)" in large.value.details()
    assert shared.metrics()['redfirst_rejected_total{reason="too_large"}'] == before + 1


def test_push_back_is_what_every_client_retries(stopped, tools):
    """With no space left, HTTP answers 503 with a short Retry-After and gRPC UNAVAILABLE with RetryInfo."""
    import grpc

    stopped.start(REDFIRST_MIN_FREE_BYTES=str(1 << 62))
    body = tools.body_of(tools.a_run())

    status, headers, answer = stopped.post("/v1/traces", body, content_type=PROTOBUF)
    with grpc.insecure_channel(stopped.grpc) as channel, pytest.raises(grpc.RpcError) as pushed:
        channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(body, timeout=10)

    assert (status, headers["retry-after"]) == (503, "1")
    assert Status.FromString(answer).code == 14
    assert pushed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert {"grpc-status-details-bin", "google.rpc.retryinfo-bin"} <= set(
        dict(pushed.value.trailing_metadata())
    )
    assert stopped.metrics()['redfirst_rejected_total{reason="full"}'] == 2

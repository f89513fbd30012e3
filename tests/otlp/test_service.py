"""What only the whole service has: its ports, its health, its end, and runs out of what was sent."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
import trustme
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.sdk.trace.export import SpanExportResult

from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.receiving.grpc_health import MOST_WATCHERS
from redfirst.collector_processor.receiving.over_grpc import GrpcOptions
from redfirst.collector_processor.settings import ServeSettings
from redfirst.evaluators.otlp import decode_traces
from tests.otlp.bodies import PROTOBUF, TRACES, a_span, body, logs
from tests.otlp.items import proves
from tests.service.conftest import QUICK, Served, a_run, body_of, eventually, exporter_over, new_id

CAPTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
LEGACY = "openai-raw__otel-openai-v2-legacy__tool_error"
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory):
    """One for all tests that do not end it; it sends and reads for one tenant."""
    home = tmp_path_factory.mktemp("service") / "home"
    tokens = json.dumps([{"tenant": "north", "token": "env:NORTH"}])
    made = Served(home, {**QUICK, "REDFIRST_TOKENS": tokens, "NORTH": "n-1", "REDFIRST_LOG": "json"}).start()
    yield made
    if made.process is not None:
        made.kill()


@pytest.fixture
def other(tmp_path):
    """One for this test alone, not started."""
    made = Served(tmp_path / "home", QUICK)
    yield made
    if made.process is not None:
        made.kill()


def sent(service: Served, path: str, data: bytes) -> int:
    kind = "application/json" if data.startswith(b"{") else PROTOBUF
    return service.post(path, data, content_type=kind, authorization="Bearer n-1")[0]


def health(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        return HealthStub(channel).Check(HealthCheckRequest(), timeout=10).status


def got(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code


@proves(1)
def test_01_ports(service):
    """4317 and 4318, on loopback, unless told; the addresses that are printed are where it listens."""
    defaults = ServeSettings()
    assert (defaults.host, defaults.grpc_port, defaults.http_port) == ("127.0.0.1", 4317, 4318)
    for address in (service.grpc, service.http.removeprefix("http://")):
        host, _, port = address.rpartition(":")
        socket.create_connection((host, int(port)), timeout=10).close()
        assert host == "127.0.0.1"


@proves(21, 25)
@pytest.mark.parametrize("first", ["logs", "spans"])
@pytest.mark.parametrize("vocabulary", ["one event a message", "one event a call"])
def test_25_what_was_said_stands_in_log_records(service, vocabulary, first):
    """Joined to their span, whichever came first: both kinds of GenAI events. The run is its tenant's."""
    trace_id, span_id = new_id(16).to_bytes(16, "big"), new_id(8).to_bytes(8, "big")
    spans = ("/v1/traces", body(_chat(trace_id, span_id)))
    said = (
        "/v1/logs",
        logs({"trace_id": trace_id, "span_id": span_id, "time_unix_nano": 1, **_event(vocabulary)}),
    )
    for path, data in (said, spans) if first == "logs" else (spans, said):
        assert sent(service, path, data) == 200
    assert record_of(service, trace_id.hex())["request"] == "Where is A-1?"
    assert service.stored()[trace_id.hex()].tenant == "north"


@proves(25)
def test_25_recorded_events(service):
    """A recorded program whose messages stand in log records alone: request and answer are read."""
    for path in sorted(CAPTURES.glob(f"{LEGACY}.*.otlp.json")):
        where = "/v1/logs" if ".logs." in path.name else "/v1/traces"
        assert sent(service, where, path.read_bytes()) == 200
    (capture,) = CAPTURES.glob(f"{LEGACY}.002.otlp.json")
    record = record_of(service, decode_traces(capture.read_bytes())[0].trace_id)
    assert record["request"]
    assert record["answer"]


@proves(23)
def test_23_health(service):
    """The health service, without a token, says what `/readyz` says; an unknown service is NOT_FOUND."""
    assert (got(f"{service.page}/healthz"), got(f"{service.page}/readyz")) == (200, 200)
    assert health(service.grpc) == SERVING
    with grpc.insecure_channel(service.grpc) as channel, pytest.raises(grpc.RpcError) as unknown:
        HealthStub(channel).Check(HealthCheckRequest(service="no.such"), timeout=10)
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND


@proves(23)
def test_23_whoever_watches_is_told(fresh):
    """Once at the beginning and at every change."""
    ready = threading.Event()
    ready.set()
    with (
        fresh(grpc=GrpcOptions(ready=ready.is_set)) as receiver,
        grpc.insecure_channel(receiver.grpc) as channel,
    ):
        watching = HealthStub(channel).Watch(HealthCheckRequest(), timeout=30)
        assert next(watching).status == SERVING
        ready.clear()
        assert next(watching).status == NOT_SERVING
        ready.set()
        assert next(watching).status == SERVING
        watching.cancel()


@proves(23)
def test_23_only_so_many_watch(fresh):
    """A watch beyond 64 is UNAVAILABLE with its reason counted; one that ends makes room, and Check is answered anyhow."""
    with fresh() as receiver, grpc.insecure_channel(receiver.grpc) as channel:
        stub = HealthStub(channel)
        watches = [stub.Watch(HealthCheckRequest(), timeout=60) for _ in range(MOST_WATCHERS)]
        assert {next(watch).status for watch in watches} == {SERVING}
        with pytest.raises(grpc.RpcError) as refused:
            next(stub.Watch(HealthCheckRequest(), timeout=60))
        assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
        assert receiver.metrics.value("redfirst_rejected_total", reason="too_many_watchers") == 1
        assert stub.Check(HealthCheckRequest(), timeout=10).status == SERVING
        watches.pop().cancel()

        def watched() -> bool:
            try:
                return next(stub.Watch(HealthCheckRequest(), timeout=60)).status == SERVING
            except grpc.RpcError:
                return False

        assert eventually(watched)
        for watch in watches:
            watch.cancel()


@proves(15, 16, 23)
def test_15_a_disk_that_is_full(other):
    """Both protocols push back, with when to come again, and health says it; nothing is acknowledged."""
    other.start(REDFIRST_MIN_FREE_BYTES=str(1 << 62))
    status, headers, _ = other.post("/v1/traces", body(), content_type=PROTOBUF)
    assert (status, headers["retry-after"]) == (503, "1")
    with grpc.insecure_channel(other.grpc) as channel, pytest.raises(grpc.RpcError) as pushed:
        channel.unary_unary(TRACES)(body(), timeout=10)
    assert pushed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert {"grpc-status-details-bin", "google.rpc.retryinfo-bin"} <= {
        item.key for item in pushed.value.trailing_metadata()
    }
    assert (got(f"{other.page}/readyz"), health(other.grpc)) == (503, NOT_SERVING)
    assert other.metrics()['redfirst_rejected_total{reason="full"}'] == 2
    assert "redfirst_spans_accepted_total" not in other.metrics()


@proves(21)
def test_21_exporters_over_tls(other, tmp_path, monkeypatch):
    """`serve: tls:` is in force on both ports: Python's exporters deliver when they trust the certificate's authority."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # requests would take them before what it is given
        monkeypatch.delenv(name, raising=False)
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    issued = authority.issue_cert("localhost", "127.0.0.1", key_type=trustme.KeyType.ECDSA)
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    other.start(REDFIRST_TLS=json.dumps({"certificate": "cert.pem", "key": "key.pem"}))
    assert other.http.startswith("https://127.0.0.1:")
    trusted = grpc.ssl_channel_credentials((tmp_path / "ca.pem").read_bytes())
    for exporter in (
        HttpExporter(f"{other.http}/v1/traces", certificate_file=str(tmp_path / "ca.pem"), timeout=20),
        GrpcExporter(other.grpc, credentials=trusted, timeout=20),
    ):
        assert exporter.export(a_run(spans=2)) is SpanExportResult.SUCCESS
        exporter.shutdown()
    eventually(lambda: len(other.stored()) == 2)


@proves(24)
def test_24_sigterm_under_load(other):
    """Whatever was acknowledged is in the journal; the service ends with 0."""
    other.start()
    acknowledged: set[str] = set()
    ended = threading.Event()

    def send(protocol: str) -> None:
        exporter = exporter_over(protocol, other)
        while not ended.is_set():
            run = a_run(spans=3)
            if exporter.export(run) is SpanExportResult.SUCCESS:
                acknowledged.update(f"{span.context.span_id:016x}" for span in run)
        exporter.shutdown()

    senders = [threading.Thread(target=send, args=(protocol,)) for protocol in ("http", "http", "grpc")]
    for sender in senders:
        sender.start()
    eventually(lambda: len(acknowledged) >= 150, within=60)
    assert other.process is not None
    other.process.terminate()
    ended.set()
    assert other.stop() == 0
    for sender in senders:
        sender.join(60)
    files = JournalFiles(other.home / "journal")
    kept = {
        span.span_id
        for placed in files.scan(START)
        for span in decode_traces(placed.record.body, content="protobuf")
    }
    files.close()
    assert acknowledged <= kept


def test_what_was_refused_is_one_line_of_json(other):
    """Structured logs on standard error: what began, one line for all refusals by reason, what ended."""
    other.start(REDFIRST_LOG="json")
    for _ in range(3):
        other.post("/v1/traces", b"\xff", content_type=PROTOBUF)
    other.post("/v1/traces", body_of(a_run()), content_type=PROTOBUF)
    shown = other.metrics()
    assert shown["redfirst_receive_budget_bytes"] == 256 << 20
    assert shown["redfirst_receiving_bytes"] == 0
    assert shown['redfirst_received_bytes_total{protocol="http"}'] > 3
    process = other.process
    assert process is not None
    process.terminate()
    _, told = process.communicate(timeout=60)
    other.process = None
    lines = [json.loads(line) for line in told.splitlines()]
    assert [line["message"] for line in lines] == ["ready", "stopping", "requests were refused", "stopped"]
    assert lines[2]["undecodable"] == 3
    assert {"time", "level"} <= set(lines[0])


def _chat(trace_id: bytes, span_id: bytes):
    span = a_span(span_id, trace_id=trace_id, kind=3)
    for key, value in {
        "gen_ai.operation.name": "chat",
        "gen_ai.system": "openai",
        "gen_ai.request.model": "m",
    }.items():
        span.attributes.add(key=key).value.string_value = value
    return span


def _event(vocabulary: str) -> dict[str, Any]:
    if vocabulary == "one event a message":
        content = AnyValue()
        content.kvlist_value.values.add(key="content").value.string_value = "Where is A-1?"
        return {"event_name": "gen_ai.user.message", "body": content}
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Where is A-1?"}]}]
    attribute = KeyValue(key="gen_ai.input.messages", value=AnyValue(string_value=json.dumps(messages)))
    return {"event_name": "gen_ai.client.inference.operation.details", "attributes": [attribute]}


def record_of(service: Served, run_id: str) -> dict[str, Any]:
    """What a run was read as, when it has been judged."""
    eventually(lambda: run_id in service.stored())
    record: dict[str, Any] = service.get(f"/api/runs/{run_id}")["record"]
    return record

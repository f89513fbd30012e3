"""OTLP/gRPC, by raw messages."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from redfirst.collector_processor.receiving.over_grpc import GrpcOptions
from tests.otlp.bodies import LOGS, METRICS, SPAN, TRACES, a_span, body, logs, metrics
from tests.otlp.items import proves
from tests.service.conftest import eventually


@pytest.fixture
def refused(call):
    """The error that a call ends with, and the Status in its trailers."""

    def refused(method, data, **options):
        with pytest.raises(grpc.RpcError) as found:
            call(method, data, **options)
        return found.value, trailers(found.value)

    return refused


def trailers(error):
    return {item.key: item.value for item in error.trailing_metadata()}


@proves(2, 12)
def test_02_the_services(call, kept):
    """Traces and logs are taken, with an empty answer; what there is no service for is UNIMPLEMENTED."""
    assert call(TRACES, body()) == b""
    assert call(LOGS, logs({"time_unix_nano": 1})) == b""
    assert len(kept()) == 1
    with pytest.raises(grpc.RpcError) as unknown:
        call("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export", b"")
    assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED


@proves(6)
@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_06_compressions(call, kept, compression):
    """What the protocol's libraries compress with."""
    assert call(TRACES, body(), compression=compression) == b""
    assert len(kept()) == 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def opening(path: bytes) -> bytes:
    """What begins a connection and a call of this path."""
    named = {b":method": b"POST", b":scheme": b"http", b":path": path, b":authority": b"x"}
    named |= {b"content-type": b"application/grpc", b"te": b"trailers"}
    head = b"".join(bytes((0, len(n))) + n + bytes((len(v),)) + v for n, v in named.items())
    return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, head)


@proves(14)
def test_14_a_path_that_is_no_text(fresh):
    """Over it the library's server ends. The port is served again at once, what was acknowledged is kept, and it is
    counted; again and again."""
    with fresh() as receiver:
        for times in (1, 2, 3):
            host, _, port = receiver.grpc.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=10) as odd:
                odd.sendall(opening(b"/x/\xff\xfe") + frame(0, 1, 1, b"\0\0\0\0\0"))
                eventually(
                    lambda times=times: receiver.metrics.value("redfirst_grpc_restarts_total") == times
                )
            with grpc.insecure_channel(receiver.grpc) as channel:
                answer = channel.unary_unary(TRACES)(body(), timeout=20, wait_for_ready=True)
            assert (answer, len(receiver.spans())) == (b"", times)


@proves(5, 14)
def test_14_undecodable(refused):
    """INVALID_ARGUMENT with a Status that says so, and `BadRequest` in it."""
    error, said = refused(TRACES, b"\xff\xff\xff")
    status = Status.FromString(said["grpc-status-details-bin"])
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (status.code, status.message) == (3, error.details())
    assert status.details[0].Unpack(BadRequest())


@proves(7)
@pytest.mark.parametrize("size", [200_001, 500_000])
@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_07_too_large(receiver, refused, size, compression):
    """RESOURCE_EXHAUSTED without `RetryInfo`, which no sender tries again; counted, whoever refused it."""
    before = receiver.metrics.value("redfirst_requests_total", protocol="grpc", result="refused")
    error, said = refused(TRACES, bytes(size), compression=compression)
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "google.rpc.retryinfo-bin" not in said
    eventually(
        lambda: receiver.metrics.value("redfirst_requests_total", protocol="grpc", result="refused") > before
    )


@proves(9, 15, 16)
def test_16_push_back_says_when_in_both_places(fresh):
    """The budget is one for both protocols: what HTTP takes of it gRPC lacks. UNAVAILABLE with `RetryInfo`, twice."""
    with fresh(budget_bytes=200_000) as receiver, receiver.acceptor.share() as take:
        take(150_000)
        with grpc.insecure_channel(receiver.grpc) as channel, pytest.raises(grpc.RpcError) as pushed:
            channel.unary_unary(TRACES)(bytes(60_000), timeout=20)
        said = trailers(pushed.value)
    assert pushed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert RetryInfo.FromString(said["google.rpc.retryinfo-bin"]).retry_delay.seconds == 1
    retry = RetryInfo()
    assert Status.FromString(said["grpc-status-details-bin"]).details[0].Unpack(retry)
    assert retry.retry_delay.seconds == 1


@proves(11)
def test_11_nothing_in_it(call, kept):
    """A success that stores nothing."""
    assert (call(TRACES, b""), call(TRACES, b"\x0a\x00"), kept()) == (b"", b"", [])


@proves(13)
def test_13_a_bad_span_is_refused_alone(call, kept):
    """OK, with how many were left out."""
    found = ExportTraceServiceResponse.FromString(call(TRACES, body(a_span(), a_span(b"bad"))))
    assert (found.partial_success.rejected_spans, len(kept())) == (1, 1)


@proves(15)
def test_15_a_mistake_of_ours_is_unavailable(receiver, refused, monkeypatch, caplog):
    """Never INTERNAL or UNKNOWN, which senders take for "throw it away"."""

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(receiver.acceptor, "accept", broken)
    error, said = refused(TRACES, body())
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "google.rpc.retryinfo-bin" in said


@proves(18)
def test_18_many_calls_on_one_connection(receiver, kept):
    """A hundred at once are all answered; there are fewer places than that to read a message in."""

    async def main():
        async with grpc.aio.insecure_channel(receiver.grpc) as channel:
            export = channel.unary_unary(TRACES)
            spans = [body(a_span(n.to_bytes(8, "big"))) for n in range(1, 101)]
            return await asyncio.gather(*(export(data, timeout=30) for data in spans))

    assert asyncio.run(main()) == [b""] * 100
    assert {int.from_bytes(span.span_id, "big") for span in kept()} == set(range(1, 101))


@proves(18, 20)
def test_20_stalled_calls_give_their_places_up(fresh):
    """Calls that never send their message hold all places; a healthy sender that tries again, as exporters do, gets one."""

    async def main(receiver):
        async with grpc.aio.insecure_channel(receiver.grpc) as channel:
            stalled = [channel.stream_unary(TRACES)() for _ in range(200)]
            for one in stalled:
                await one.wait_for_connection()
            codes: set[grpc.StatusCode] = set()
            for _ in range(10):
                try:
                    await channel.unary_unary(TRACES)(body(), timeout=20)
                except grpc.RpcError as problem:
                    codes.add(problem.code())
                    await asyncio.sleep(0.5)
                else:
                    break
            for one in stalled:
                one.cancel()
            assert codes == {grpc.StatusCode.UNAVAILABLE}

    with fresh(budget_bytes=800_000) as receiver:
        asyncio.run(main(receiver))
        assert [span.span_id for span in receiver.spans()] == [SPAN]


@proves(20)
def test_20_a_message_that_never_comes(fresh):
    """It is given up after its time, with DEADLINE_EXCEEDED."""
    with (
        fresh(grpc=GrpcOptions(message_seconds=0.3)) as receiver,
        grpc.insecure_channel(receiver.grpc) as channel,
    ):

        def never():
            time.sleep(10)
            yield b""

        with pytest.raises(grpc.RpcError) as late:
            channel.stream_unary(TRACES)(never(), timeout=20)
        assert late.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert receiver.metrics.value("redfirst_rejected_total", reason="too_slow") == 1


@proves(19)
def test_19_connections_are_ended_in_peace(fresh):
    """When one has reached its age it is closed between calls: the sender connects again and loses nothing."""
    with fresh(grpc=GrpcOptions(connection_seconds=0.3)) as receiver:
        connected = threading.Event()
        ended = threading.Event()

        def seen(state: grpc.ChannelConnectivity) -> None:
            if state is grpc.ChannelConnectivity.READY:
                connected.set()
            elif connected.is_set():
                ended.set()

        with grpc.insecure_channel(receiver.grpc) as channel:
            channel.subscribe(seen)
            export = channel.unary_unary(TRACES)
            calls = 0
            while not ended.is_set() and calls < 400:
                assert export(body(), timeout=10) == b""
                calls += 1
                time.sleep(0.05)
            assert ended.is_set()
            assert export(body(), timeout=10) == b""
        assert len(receiver.spans()) == calls + 1


@proves(26)
def test_26_metrics(call, fresh):
    """Refused point by point with OK; UNIMPLEMENTED when they are to be absent."""
    found = ExportMetricsServiceResponse.FromString(call(METRICS, metrics()))
    assert found.partial_success.rejected_data_points == 2
    with (
        fresh(grpc=GrpcOptions(metrics="absent")) as receiver,
        grpc.insecure_channel(receiver.grpc) as channel,
    ):
        with pytest.raises(grpc.RpcError) as absent:
            channel.unary_unary(METRICS)(metrics(), timeout=10)
        assert absent.value.code() is grpc.StatusCode.UNIMPLEMENTED

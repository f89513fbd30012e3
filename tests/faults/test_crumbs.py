"""Bodies that are small to send and large to read: what one costs is bounded, and nobody waits for it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import grpc
import pytest

from tests.service.conftest import QUICK, Served, a_run, body_of, eventually

from .conftest import journalled, names_of
from .hostile import JSON, PROTOBUF, part
from .test_senders import peak_rss

MIB = 1 << 20
GOOD = part(2, part(1, b"A" * 16) + part(2, b"B" * 8))
"""A span of nothing but its ids, as it lies in its scope."""


def spans(*raw: bytes) -> bytes:
    return part(1, part(2, b"".join(raw)))


def values(what: bytes, size: int) -> bytes:
    """OTLP/JSON with so many bytes of this where spans are expected."""
    many = b",".join([what] * (size // (len(what) + 1)))
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + many + b"]}]}]}"


BODIES: dict[str, tuple[Callable[[], bytes], dict[str, str], int, bytes]] = {
    "empty groups": (lambda: b"\x0a\x00" * (16 * MIB), PROTOBUF, 400, b"less than 12 bytes each"),
    "empty spans": (lambda: spans(b"\x12\x00" * (16 * MIB)), PROTOBUF, 400, b"less than 12 bytes each"),
    "broken spans": (lambda: spans(b"\x12\x0c" + b"\x0f" * 12) * 20_000, PROTOBUF, 400, b"cannot be read"),
    "broken spans beside empty attributes": (
        lambda: spans(part(2, b"\x2a\x01\xff" + b"\x4a\x00" * (8 * MIB))),
        PROTOBUF,
        400,
        b"more than 1000000 fields",
    ),
    "bad spans before good ones": (
        lambda: spans(b"\x12\x00" * 250_000, GOOD * 17_000),
        PROTOBUF,
        200,
        b"250000 with a bad trace id",
    ),
    "numbers for spans": (lambda: values(b"0", MIB - 100), JSON, 400, b"more than 10000 of its records"),
    "lists for spans": (lambda: values(b"[]", 48 * MIB), JSON, 400, b"values; send smaller batches"),
    "one string without an end": (
        lambda: b'{"resourceSpans":"' + b'\\"' * (8 * MIB),
        JSON,
        400,
        b"The body is not JSON",
    ),
    "brackets without an end": (lambda: b"[" * (32 * MIB), JSON, 400, b"values; send smaller batches"),
    "a number without an end": (
        lambda: values(b'{"startTimeUnixNano":' + b"9" * (4 * MIB) + b"}", 4 * MIB + 30),
        JSON,
        400,
        b"The body is not JSON",
    ),
}


@pytest.fixture(scope="module")
def service(tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("crumbs") / "home", QUICK).start()
    yield made
    made.kill()


@pytest.mark.parametrize("name", BODIES)
def test_what_is_small_to_send_and_large_to_read_has_its_answer_and_takes_little_memory(
    service: Served, name: str
):
    """No body takes more than 400 MiB beyond itself; the process is the one that was started, and a run is judged."""
    make, kind, expected, said = BODIES[name]
    body = make()
    before = peak_rss(service)
    status, _, answer = service.post("/v1/traces", body, **kind)
    assert (status, said in answer) == (expected, True), answer[:200]
    assert peak_rss(service) - before < len(body) * 3 + 400 * MIB
    healthy(service)


def healthy(service: Served) -> None:
    run = a_run()
    assert service.post("/v1/traces", body_of(run), **PROTOBUF)[0] == 200
    assert names_of(run) <= journalled(service.home)
    name = f"{run[0].context.trace_id:032x}"
    eventually(lambda: name in service.stored())


@pytest.mark.parametrize("what", ["protobuf", "json"])
def test_nobody_waits_for_a_body_that_is_being_mended(service: Served, what: str):
    """Small and large requests over both protocols, and health, are answered before it is."""
    if what == "protobuf":
        damaged = spans(
            *(part(2, part(1, b"A" * 16) + part(2, b"B" * 8) + part(5, b"\xff" * 40)) for _ in range(60_000))
        )
    else:
        damaged = values(b'{"traceId":"' + b"5b" * 16 + b'","spanId":"' + b"5c" * 8 + b'"}', 12 * MIB)
    where = urlsplit(service.http)
    with socket.create_connection((where.hostname, where.port), 60) as slow:
        kind = "application/x-protobuf" if what == "protobuf" else "application/json"
        head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\ncontent-length: {len(damaged)}\r\n\r\n"
        slow.sendall(head.encode() + damaged)
        for count in (3, 600):
            body = body_of(a_run(spans=count))
            assert service.post("/v1/traces", body, **PROTOBUF)[0] == 200
            with grpc.insecure_channel(service.grpc) as channel:
                export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
                assert channel.unary_unary(export)(body, timeout=30) == b""
        assert service.ask("/healthz") == b"ok\n"
        slow.setblocking(False)
        with pytest.raises(BlockingIOError):
            slow.recv(1)  # it is not answered yet: nobody had to wait for it
        slow.settimeout(60)
        assert slow.recv(12) == b"HTTP/1.1 200"

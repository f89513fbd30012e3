"""Mutated requests on a running service's ports, and mutated HTTP itself: only answers that the protocol knows."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import random
import socket
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.service.conftest import Served, a_run, body_of, eventually

from .mutating import Body, Mutator, corpus

DOCUMENTED = {200, 400, 404, 405, 408, 413, 415, 431, 503}
"""Statuses of the OTLP/HTTP port, as ``docs/service.md`` has them; there is no 500 among them."""
GRPC_DOCUMENTED = {"OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE"}
_EVERY = 50
"""One request in so many is a run that must be judged."""


@dataclass
class SocketFigures:
    """What was answered."""

    requests: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    judged: int = 0
    """Runs sent in between, each acknowledged and judged."""
    rss_mib: float = 0.0
    grown_mib: float = 0.0


def run(served: Served, count: int, seed: int) -> SocketFigures:
    """Send so many requests, a tenth each over gRPC and as damaged HTTP."""
    import grpc

    mutated, chance = Mutator(seed, corpus()), random.Random(seed)
    figures = SocketFigures()
    wanted: set[str] = set()
    http_client = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    before = 0.0
    with grpc.insecure_channel(served.grpc) as channel:
        for number in range(count):
            if number % _EVERY == 0:
                wanted.add(_acknowledged(served))
            if number == count // 10:
                before = _rss_mib(served)
            body, way = mutated(), number % 10
            if way == 0:
                figures.answers[f"gRPC {_over_grpc(channel, body)}"] += 1
            elif way == 1:
                figures.answers[f"damaged HTTP {_damaged_http(served, body, chance)}"] += 1
            else:
                figures.answers[f"HTTP {_over_http(http_client, body, chance)}"] += 1
    http_client.close()
    eventually(lambda: wanted <= set(served.stored()), within=120)
    assert served.process is not None
    assert served.process.poll() is None
    figures.requests, figures.judged = count, len(wanted)
    figures.rss_mib = _rss_mib(served)
    figures.grown_mib = figures.rss_mib - before
    return figures


def _acknowledged(served: Served) -> str:
    run = a_run()
    status, _, _ = served.post("/v1/traces", body_of(run), content_type="application/x-protobuf")
    assert status == 200
    return f"{run[0].context.trace_id:032x}"


def _over_http(client: http.client.HTTPConnection, body: Body, chance: random.Random) -> int:
    headers = {"content-type": "application/json" if body.is_json else "application/x-protobuf"}
    data = body.data
    if chance.random() < 0.2:
        headers["content-encoding"] = "gzip"
        packed = bytearray(gzip.compress(data, 1))
        if chance.random() < 0.5:
            packed[chance.randrange(len(packed))] ^= 1 << chance.randrange(8)
        data = bytes(packed)
    client.request("POST", f"/v1/{body.signal}", data, headers)
    answer = client.getresponse()
    answer.read()
    assert answer.status in DOCUMENTED, (answer.status, data.hex())
    return answer.status


def _over_grpc(channel: object, body: Body) -> str:
    import grpc

    service = {"traces": "trace.v1.TraceService", "logs": "logs.v1.LogsService"}[body.signal]
    export = channel.unary_unary(f"/opentelemetry.proto.collector.{service}/Export")  # type: ignore[attr-defined]
    try:
        export(body.data, timeout=30)
    except grpc.RpcError as problem:
        code = problem.code().name  # type: ignore[attr-defined]
        assert code in GRPC_DOCUMENTED, (code, body.data.hex())
        return str(code)
    return "OK"


def _damaged_http(served: Served, body: Body, chance: random.Random) -> str:
    """A request of which a byte of the head was changed, or that ends early: an answer that is documented, or none."""
    kind = b"application/json" if body.is_json else b"application/x-protobuf"
    head = bytearray(
        b"POST /v1/%s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
        % (body.signal.encode(), kind, len(body.data))
    )
    for _ in range(chance.randint(1, 3)):
        head[chance.randrange(len(head))] = chance.randrange(256)
    host, _, port = urlsplit(served.http).netloc.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        # a server may have answered and closed before all was sent
        with contextlib.suppress(OSError):
            connection.sendall(head + body.data)
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(OSError):
            while len(answer) < 12 and (block := connection.recv(4096)):
                answer += block
    if not answer:
        return "closed"
    status = int(answer.split(b" ", 2)[1])
    assert status in DOCUMENTED | {100}, (answer[:200], bytes(head), body.data.hex())
    return str(status)


def _rss_mib(served: Served) -> float:
    assert served.process is not None
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS"))

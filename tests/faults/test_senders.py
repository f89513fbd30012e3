"""Faults 20 and 21: bodies beyond the limit, and senders that stall, dawdle or go away."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.service.conftest import Served, eventually

from .conftest import journalled
from .hostile import PROTOBUF, Ledger

MIB = 1 << 20
STALLED = 500 if os.environ.get("REDFIRST_FAULTS") == "full" else 200


@pytest.fixture(scope="module")
def ledger(tools, tmp_path_factory):
    home = tmp_path_factory.mktemp("senders") / "home"
    ports = {f"REDFIRST_{name}_PORT": "0" for name in ("GRPC", "HTTP", "PAGE")}
    made = Served(home, {**ports, "REDFIRST_SETTLE_SECONDS": "0.3"}).start()
    yield Ledger(made)
    made.kill()


def peak_rss(served: Served) -> int:
    """The most resident bytes that the service had."""
    assert served.process is not None
    text = Path(f"/proc/{served.process.pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("VmHWM"))


def zeros(size: int) -> Iterator[bytes]:
    for _ in range(0, size, MIB):
        yield bytes(MIB)


def bomb(encoding: str) -> bytes:
    """A gigabyte of zeros in gzip (sixteen members), a quarter of one in deflate."""
    if encoding == "gzip":
        return gzip.compress(bytes(64 * MIB), 1) * 16
    packer = zlib.compressobj(1)
    return b"".join(packer.compress(block) for block in zeros(256 * MIB)) + packer.flush()


@pytest.mark.parametrize("how", ["announced", "chunked", "gzip", "deflate", "nested gzip"])
def test_a_body_beyond_the_limit_is_413_and_memory_stays_bounded(ledger, how):
    """A hundred megabytes plain or chunked, a bomb of a gigabyte: refused, with no more memory than one body may take."""
    before = peak_rss(ledger.served)
    if how in ("announced", "chunked"):
        connection = http.client.HTTPConnection(urlsplit(ledger.served.http).netloc, timeout=60)
        headers = {"content-type": "application/x-protobuf"}
        if how == "announced":
            headers["content-length"] = str(100 * MIB)
        connection.request("POST", "/v1/traces", zeros(100 * MIB), headers, encode_chunked=how == "chunked")
        status = connection.getresponse().status
        connection.close()
    else:
        encoding = how.split()[-1]
        body = bomb(encoding)
        body = gzip.compress(body) if how == "nested gzip" else body
        status = ledger.post(body, **PROTOBUF, content_encoding=encoding)
    assert status == (400 if how == "nested gzip" else 413)
    assert peak_rss(ledger.served) - before < 2.5 * 64 * MIB
    ledger.healthy()


@contextmanager
def stalled(url: str, count: int) -> Iterator[list[socket.socket]]:
    """Connections that have begun a request and say no more: half with half a head, half with half a body."""
    host, _, port = urlsplit(url).netloc.rpartition(":")
    with ExitStack() as stack:
        found = []
        for number in range(count):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
            whole = b"Content-Length: 100000\r\n\r\n" + bytes(1000)
            connection.sendall(head + (whole if number % 2 else b"Content-Le"))
            found.append(connection)
        yield found


def test_stalled_senders_keep_nobody_waiting(ledger):
    """Hundreds of connections that have begun a request and stopped: a normal sender is answered every time."""
    with stalled(ledger.served.http, STALLED):
        for _ in range(20):
            ledger.healthy()


def test_senders_that_go_away_leave_nothing(ledger):
    """Connections reset in the middle of a body: no request is kept, no memory is held for it, the next is answered."""
    before = ledger.served.metrics()
    with stalled(ledger.served.http, STALLED // 2) as connections:
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ledger.healthy()

    accepted = 'redfirst_requests_total{protocol="http",result="accepted"}'
    assert ledger.served.metrics()[accepted] == before[accepted] + 1
    gone = 'redfirst_rejected_total{reason="sender_gone"}'
    eventually(lambda: ledger.served.metrics().get(gone, 0) >= before.get(gone, 0) + STALLED // 4)


def test_everything_that_was_acknowledged_is_there(ledger):
    """Spans in the journal, runs in the store, and nothing else in either."""
    assert ledger.served.process.poll() is None
    names = {trace_id for trace_id, _ in ledger.acknowledged}

    assert journalled(ledger.served.home) == ledger.acknowledged
    assert names
    eventually(lambda: set(ledger.served.stored()) == names, within=60)

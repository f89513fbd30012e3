"""The parts of ``ingest.py`` about many senders and large requests, and about the accept path beside rotel's.

rotel is a receiver in Rust (PyPI ``rotel``); ``ROTEL`` names its binary ``rotel-agent`` where it is not installed beside us.
Its receiver drops what it takes (exporter ``blackhole``); ours makes it durable first.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ingest_runs import RUNS_A_REQUEST, SPANS, request, templates
from ingest_service import Client, Served, cpu, quantile, served

MIB = 1 << 20
LARGE = 63 * MIB
STREAMS = 100


def peak_rss(service: Served) -> float:
    """The most resident mebibytes that the service had."""
    text = Path(f"/proc/{service.process.pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmHWM"))


def large_body(folder: Path) -> dict[str, float]:
    """Peak memory while one request of 63 MiB is accepted, over HTTP and then over gRPC."""
    import grpc

    parts = templates()
    one = request(parts, 1)[1]
    runs = LARGE // len(one)
    body = request(parts, runs)[1]
    with served(folder / "large", settle_seconds=3600, idle_seconds=3600) as service:
        Client(service.http).post(one)
        before = peak_rss(service)
        seconds = Client(service.http).post(body)
        over_http = peak_rss(service)
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(service.grpc, options=options) as channel:
            channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(
                body, timeout=120
            )
        over_grpc = peak_rss(service)
        service.process.kill()
    return {
        "large_body_mib": len(body) / MIB,
        "large_body_ack_ms": seconds * 1000,
        "large_body_peak_mib_before": before,
        "large_body_peak_mib_http": over_http,
        "large_body_peak_mib_grpc": over_grpc,
    }


def stalled_senders(folder: Path, count: int, requests: int = 200) -> dict[str, float]:
    """What a normal sender waits with and without hundreds of connections that have begun a request and stopped."""
    parts = templates()
    bodies = [request(parts, 1)[1] for _ in range(requests)]
    with served(folder / "stalled", settle_seconds=3600, idle_seconds=3600) as service:
        client = Client(service.http)
        client.post(bodies[0])
        alone = [client.post(body) for body in bodies]
        with _stalled(service.http, count):
            beside = [client.post(body) for body in bodies]
        service.process.kill()
    return {
        "stalled_sockets": count,
        "ack_alone_p50_ms": quantile(alone, 50) * 1000,
        "ack_alone_p99_ms": quantile(alone, 99) * 1000,
        "ack_beside_stalled_p50_ms": quantile(beside, 50) * 1000,
        "ack_beside_stalled_p99_ms": quantile(beside, 99) * 1000,
    }


@contextmanager
def _stalled(url: str, count: int) -> Iterator[None]:
    host, _, port = urlsplit(url).netloc.rpartition(":")
    head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
    with ExitStack() as stack:
        for number in range(count):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            connection.sendall(
                head + (b"Content-Length: 100000\r\n\r\n" + bytes(1000) if number % 2 else b"Content-Le")
            )
        yield


def streams(folder: Path, rounds: int = 10) -> dict[str, float]:
    """A hundred concurrent calls on one gRPC connection, again and again."""
    import grpc

    parts = templates()
    bodies = [request(parts, 1)[1] for _ in range(STREAMS * rounds)]
    with served(folder / "streams", settle_seconds=3600, idle_seconds=3600) as service:
        waited: list[float] = []
        with grpc.insecure_channel(service.grpc) as channel:
            export = channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")
            export(request(parts, 1)[1], timeout=60)
            started = time.perf_counter()
            for number in range(rounds):
                begun = time.perf_counter()
                calls = [
                    export.future(body, timeout=60)
                    for body in bodies[number * STREAMS : (number + 1) * STREAMS]
                ]
                for call in calls:
                    call.result()
                    waited.append(time.perf_counter() - begun)
            wall = time.perf_counter() - started
        service.process.kill()
    return {
        "streams": STREAMS,
        "streams_ack_p50_ms": quantile(waited, 50) * 1000,
        "streams_ack_p99_ms": quantile(waited, 99) * 1000,
        "streams_spans_per_second": len(bodies) * SPANS / wall,
    }


@dataclass
class _Receiver:
    pid: int
    client: Client

    def cpu_us_per_span(self, bodies: list[bytes]) -> float:
        before = cpu(self.pid)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.client.post, bodies))
        time.sleep(0.3)  # what it does after its answers is its cost too
        return (cpu(self.pid) - before) / (len(bodies) * RUNS_A_REQUEST * SPANS) * 1e6


def beside_rotel(folder: Path, rounds: int, spans: int) -> list[dict[str, float]]:
    """CPU of receiving and grouping, in alternating rounds; nothing where rotel is not installed."""
    binary = rotel_binary()
    if binary is None:
        print("rotel is not installed (pip install rotel, or ROTEL=…/rotel-agent): not compared")
        return []
    parts = templates()
    count = spans // (RUNS_A_REQUEST * SPANS)
    figures: dict[str, list[float]] = {"redfirst": [], "rotel": []}
    with (
        served(folder / "accept", settle_seconds=3600, idle_seconds=3600) as ours,
        _rotel(binary) as (rotel_pid, rotel_url),
    ):
        receivers = {
            "redfirst": _Receiver(ours.process.pid, Client(ours.http)),
            "rotel": _Receiver(rotel_pid, Client(rotel_url)),
        }
        for number in range(rounds + 1):
            for name, receiver in receivers.items():
                bodies = [request(parts, RUNS_A_REQUEST)[1] for _ in range(count)]
                found = receiver.cpu_us_per_span(bodies)
                if number:  # the first round warms both up
                    figures[name].append(found)
        ours.process.kill()
    ratios = [own / theirs for own, theirs in zip(figures["redfirst"], figures["rotel"], strict=True)]
    return [
        {
            "accept_durable_cpu_us_per_span": statistics.median(figures["redfirst"]),
            "rotel_blackhole_cpu_us_per_span": statistics.median(figures["rotel"]),
            "accept_to_rotel_ratio": statistics.median(ratios),
            "accept_to_rotel_ratio_min": min(ratios),
            "accept_to_rotel_ratio_max": max(ratios),
            "rotel_rounds": rounds,
        }
    ]


def rotel_binary() -> str | None:
    """Where rotel's program is; None when it is not installed."""
    if os.environ.get("ROTEL"):
        return os.environ["ROTEL"]
    found = importlib.util.find_spec("rotel")
    if found is None or not found.submodule_search_locations:
        return None
    return str(Path(found.submodule_search_locations[0]) / "rotel-agent")


@contextmanager
def _rotel(binary: str) -> Iterator[tuple[int, str]]:
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    endpoints = [f"127.0.0.1:{port}" for port in ports]
    command = [binary, "start", "--exporter", "blackhole"]
    command += ["--otlp-grpc-endpoint", endpoints[0], "--otlp-http-endpoint", endpoints[1]]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603 - named by us
    try:
        _await(endpoints[1])
        yield process.pid, f"http://{endpoints[1]}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await(endpoint: str) -> None:
    host, _, port = endpoint.rpartition(":")
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            threading.Event().wait(0.1)
        else:
            return

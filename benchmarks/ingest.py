"""What the online loop costs: ``python benchmarks/ingest.py``.

Starts ``redfirst serve`` on a temporary home and measures, with runs of 20 spans of about 2.2 kB:
acknowledgement (p50, p99) and root end to stored verdict at a steady rate; spans per CPU second of the whole process
tree with everything on (durable, assembled, judged, stored); resident memory with runs open; then (``ingest_limits.py``)
memory under a request of 63 MiB, a sender beside 500 stalled ones, a hundred streams of one connection, and the accept
path beside rotel's. Prints a table, and the figures as JSON on the last line. CPU is read from ``/proc``: Linux only.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from redfirst.collector_processor.scoring.slices import Slice, joined
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState

SPANS = 20
SETTLE = 0.5
RUNS_A_REQUEST = 5


@dataclass(frozen=True, slots=True)
class Template:
    """One span of the run without its ids."""

    rest: bytes
    is_root: bool

    def made(self, trace_id: bytes, root: bytes) -> bytes:
        """The span with these ids."""
        own = root if self.is_root else secrets.token_bytes(8)
        ids = b"\x0a\x10" + trace_id + b"\x12\x08" + own
        return ids + (b"" if self.is_root else b"\x22\x08" + root) + self.rest


def templates() -> list[Template]:
    """An agent span, nine model calls and ten tool calls, each with what an instrumentor writes."""
    found = []
    for n in range(SPANS):
        kind = "AGENT" if n == 0 else "LLM" if n % 2 else "TOOL"
        begun = 10**18 + n * 10**6
        ended = begun + (SPANS * 10**6 if n == 0 else 500_000)
        span = Span(name=kind.lower(), kind=1, start_time_unix_nano=begun, end_time_unix_nano=ended)
        for key, value in attributes(kind, n).items():
            pair = span.attributes.add(key=key)
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
        found.append(Template(span.SerializeToString(), n == 0))
    return found


def attributes(kind: str, n: int) -> dict[str, str | int]:
    """About two kilobytes of OpenInference."""
    text = f"The order {n} was looked at and the customer is told about it. " * 12
    common: dict[str, str | int] = {
        "openinference.span.kind": kind,
        "session.id": "s-1",
        "input.value": json.dumps({"text": text}),
    }
    if kind == "LLM":
        return {
            **common,
            "llm.model_name": "m-1",
            "llm.token_count.prompt": 800 + n,
            "llm.token_count.completion": 40,
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": text,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.tool_calls.0.tool_call.id": f"call-{n}",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "get_order",
            "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": json.dumps(
                {"order": n}
            ),
        }
    if kind == "TOOL":
        return {
            **common,
            "tool.name": "get_order",
            "input.value": json.dumps({"order": n - 1}),
            "output.value": json.dumps({"order": n, "text": text * 2}),
        }
    return {**common, "agent.name": "bench", "output.value": text}


def request(parts: list[Template], runs: int, *, roots: bool = True) -> tuple[list[str], bytes]:
    """A request with whole runs, and their trace ids."""
    names, items = [], []
    for _ in range(runs):
        trace_id, root = secrets.token_bytes(16), secrets.token_bytes(8)
        names.append(trace_id.hex())
        chosen = [*parts[1:], parts[0]] if roots else parts[1:] + parts[1:2]
        items += [Slice(b"", b"", "", "", part.made(trace_id, root)) for part in chosen]
    return names, joined(items)


@dataclass
class Served:
    """The service under measurement."""

    process: subprocess.Popen[str]
    home: Path
    grpc: str
    http: str
    page: str

    def cpu(self) -> tuple[float, float]:
        """CPU seconds so far: of the service itself, and of its scorer."""
        return _cpu(self.process.pid), sum(_cpu(pid) for pid in children(self.process.pid))

    def rss(self) -> int:
        """Resident bytes of the service itself, without its scorer."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def served(home: Path, **settings: object) -> Iterator[Served]:
    """A service on free ports."""
    names = {"grpc_port": 0, "http_port": 0, "page_port": 0, **settings}
    environment = {**os.environ, **{f"REDFIRST_{name.upper()}": str(value) for name, value in names.items()}}
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", "serve", "--home", str(home)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.PIPE, text=True, cwd=home.parent
    )
    addresses = {}
    for line in process.stdout or ():
        if line.strip() == "ready":
            break
        name, _, address = line.strip().rpartition(" ")
        addresses[name.strip()] = address
    try:
        yield Served(process, home, addresses["OTLP/gRPC"], addresses["OTLP/HTTP"], addresses["page"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=90)


def children(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client(threading.local):
    """A kept-alive connection per thread."""

    def __init__(self, url: str) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)

    def post(self, body: bytes) -> float:
        """Seconds to the acknowledgement."""
        begun = time.perf_counter()
        self.connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
        answer = self.connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise RuntimeError(f"answered {answer.status}")
        return time.perf_counter() - begun


def latency(folder: Path, seconds: float, rate: int) -> dict[str, float]:
    """Acknowledgement and verdict at a steady rate of spans a second."""
    parts = templates()
    with served(folder / "latency", settle_seconds=SETTLE) as service:
        client = Client(service.http)
        request_count = int(seconds * rate / (SPANS * RUNS_A_REQUEST))
        bodies = [request(parts, RUNS_A_REQUEST) for _ in range(request_count)]
        sent: dict[str, float] = {}
        seen: dict[str, float] = {}
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(service.home, seen, over))
        watcher.start()
        begun = time.perf_counter()

        def one(number: int) -> float:
            due = begun + number * SPANS * RUNS_A_REQUEST / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            names, body = bodies[number]
            sent.update(dict.fromkeys(names, time.time()))
            return client.post(body)

        with ThreadPoolExecutor(8) as pool:
            acks = list(pool.map(one, range(request_count)))
        deadline = time.monotonic() + 60
        while len(seen) < len(sent) and time.monotonic() < deadline:
            time.sleep(0.05)
        over.set()
        watcher.join()
    verdicts = [seen[name] - at for name, at in sent.items() if name in seen]
    if len(verdicts) < len(sent):
        raise RuntimeError(f"{len(sent) - len(verdicts)} runs got no verdict")
    return {
        "ack_p50_ms": quantile(acks, 50) * 1000,
        "ack_p99_ms": quantile(acks, 99) * 1000,
        "verdict_p50_ms": quantile(verdicts, 50) * 1000,
        "verdict_p99_ms": quantile(verdicts, 99) * 1000,
        "settle_ms": SETTLE * 1000,
        "rate": rate,
    }


def _watch(home: Path, seen: dict[str, float], over: threading.Event) -> None:
    """When each verdict can be read by another process, to within the pause."""
    reader = SqliteReader(home / "store.sqlite3")
    newest = 0
    while not over.is_set():
        now = time.time()
        for run in reader.runs(Query(limit=500, states=tuple(RunState))):
            if run.judged_ns <= newest and run.run_id in seen:
                break
            seen.setdefault(run.run_id, now)
            newest = max(newest, run.judged_ns)
        time.sleep(0.01)
    reader.close()


def throughput(folder: Path, spans: int) -> dict[str, float]:
    """Spans per CPU second, from the first request to the last verdict."""
    parts = templates()
    bodies = [request(parts, RUNS_A_REQUEST)[1] for _ in range(spans // (SPANS * RUNS_A_REQUEST))]
    runs = len(bodies) * RUNS_A_REQUEST
    with served(folder / "throughput", settle_seconds=SETTLE) as service:
        client = Client(service.http)
        client.post(bodies.pop())
        _landed(service, RUNS_A_REQUEST)
        before, begun = service.cpu(), time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(client.post, bodies))
        accepted = time.perf_counter() - begun
        _landed(service, runs)
        wall = time.perf_counter() - begun
        own, scorer = (now - then for now, then in zip(service.cpu(), before, strict=True))
    count = len(bodies) * SPANS * RUNS_A_REQUEST
    return {
        "spans": count,
        "bytes_per_span": sum(map(len, bodies)) / count,
        "spans_per_cpu_second": count / (own + scorer),
        "service_cpu_us_per_span": own / count * 1e6,
        "scorer_cpu_us_per_span": scorer / count * 1e6,
        "spans_per_second_accepted": count / accepted,
        "spans_per_second_to_verdict": count / wall,
    }


def _landed(service: Served, runs: int) -> None:
    reader = SqliteReader(service.home / "store.sqlite3")
    deadline = time.monotonic() + 300
    while len(reader.runs(Query(states=tuple(RunState)))) < runs:
        if time.monotonic() > deadline:
            raise RuntimeError("not every run got its verdict")
        time.sleep(0.25)
    reader.close()


def memory(folder: Path, runs: int) -> dict[str, float]:
    """Resident memory that open runs take, beyond what the service takes without them."""
    parts = templates()
    with served(folder / "memory", settle_seconds=3600, idle_seconds=3600) as service:
        client = Client(service.http)
        for _ in range(20):
            client.post(request(parts, RUNS_A_REQUEST)[1])
        before = service.rss()
        for _ in range(runs // RUNS_A_REQUEST):
            client.post(request(parts, RUNS_A_REQUEST, roots=False)[1])
        after = service.rss()
        service.process.kill()
    return {
        "open_runs": runs,
        "rss_mib": after / 2**20,
        "rss_before_mib": before / 2**20,
        "mib_per_1000_open_runs": (after - before) / 2**20 / runs * 1000,
    }


def quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else values[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10, help="of steady load")
    parser.add_argument("--rate", type=int, default=2000, help="spans a second of steady load")
    parser.add_argument("--spans", type=int, default=40_000, help="of full load")
    parser.add_argument("--open", type=int, default=10_000, help="runs held open")
    parser.add_argument(
        "--stalled", type=int, default=500, help="connections that have begun a request and stopped"
    )
    parser.add_argument("--rounds", type=int, default=7, help="beside rotel")
    parser.add_argument("--only", choices=("loop", "limits", "rotel"), help="one part of it")
    options = parser.parse_args()
    from ingest_limits import beside_rotel, large_body, stalled_senders, streams

    def wanted(part: str) -> bool:
        return options.only in (None, part)

    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="redfirst-ingest-") as folder:
        at = Path(folder)
        if wanted("loop"):
            figures |= latency(at, options.seconds, options.rate)
            figures |= throughput(at, options.spans)
            figures |= memory(at, options.open)
        if wanted("limits"):
            figures |= large_body(at)
            figures |= stalled_senders(at, options.stalled)
            figures |= streams(at)
        if wanted("rotel"):
            figures |= beside_rotel(at, options.rounds, options.spans // 4)
    for name, value in figures.items():
        print(f"{name:36}{value:>14,.2f}")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


if __name__ == "__main__":
    main()

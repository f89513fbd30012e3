"""A real ``redfirst serve`` in its own process, and senders that speak to it as applications do."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags

from redfirst.collector_processor.home import Home, OwnApi
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, StoredRun

SERVE = [sys.executable, "-m", "redfirst.collector_processor.cli", "serve"]
QUICK = {
    "REDFIRST_GRPC_PORT": "0",
    "REDFIRST_HTTP_PORT": "0",
    "REDFIRST_PAGE_PORT": "0",
    "REDFIRST_SETTLE_SECONDS": "0.3",
    "REDFIRST_IDLE_SECONDS": "1.5",
    "REDFIRST_GRACE_SECONDS": "0",
}


def needs(what: str, there: bool) -> None:
    """Skip without it; where services are required, fail."""
    if not there and os.environ.get("REDFIRST_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{what} is required here and is not installed")
    if not there:
        pytest.skip(f"{what} is not installed")


@dataclass
class Served:
    """One service on one home, which can be killed and started again."""

    home: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[str] | None = None
    addresses: dict[str, str] = field(default_factory=dict)

    def start(self, *, command: Sequence[str] = (), **more: str) -> Served:
        """Start it and wait until it says that it is ready; ``command`` is what runs it."""
        if self.starts(command=command, **more):
            return self
        assert self.process is not None
        pytest.fail(f"serve ended with {self.process.wait()}: {self.process.stderr.read()}")  # type: ignore[union-attr]

    def starts(self, *, command: Sequence[str] = (), **more: str) -> bool:
        """Start it and wait until it says that it is ready; False when it ended before."""
        self.process = self.spawn_as(command, **more)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            word, _, address = line.strip().rpartition(" ")
            if line.strip() == "ready":
                return True
            self.addresses[word.strip()] = address
        return False

    def spawn(self, **more: str) -> subprocess.Popen[str]:
        """Start it and do not wait."""
        return self.spawn_as((), **more)

    def spawn_as(self, command: Sequence[str], **more: str) -> subprocess.Popen[str]:
        """The same, run by a command."""
        return subprocess.Popen(
            [*command, *SERVE, "--home", str(self.home)],
            env={**os.environ, **self.environment, **more},
            cwd=self.home.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def http(self) -> str:
        return self.addresses["OTLP/HTTP"]

    @property
    def grpc(self) -> str:
        return self.addresses["OTLP/gRPC"]

    @property
    def page(self) -> str:
        return self.addresses["page"]

    def kill(self) -> None:
        """``kill -9``."""
        assert self.process is not None
        self.process.kill()
        self._reap()

    def stop(self) -> int:
        """SIGTERM; gives the exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def _reap(self) -> int:
        assert self.process is not None
        process, self.process = self.process, None
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail("serve did not end within 30 s")
        return process.returncode

    def ask(self, path: str) -> bytes:
        """What the API answers to the commands of this machine, whatever senders need."""
        # a home in a mount namespace of its own is not seen from here
        own = OwnApi.of(Home(self.home).service()) or OwnApi(self.page, token="")
        request = urllib.request.Request(f"{own.url}{path}", headers=own.headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return bytes(answer.read())

    def get(self, path: str) -> Any:
        """The JSON that the API answers."""
        return json.loads(self.ask(path))

    def metrics(self) -> dict[str, float]:
        """Every series and its value."""
        lines = [line for line in self.ask("/metrics").decode().split("\n") if line and line[0] != "#"]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def post(self, path: str, body: bytes, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request to the OTLP/HTTP port: status, headers, body."""
        return post(f"{self.http}{path}", body, headers)

    def stored(self) -> dict[str, StoredRun]:
        """Every scored run, read from the store beside the service."""
        reader = SqliteReader(self.home / "store.sqlite3")
        runs = reader.runs(Query())
        reader.close()
        return {run.run_id: run for run in runs}

    def runs(self, state: str = "scored,unscored,not_a_run") -> list[dict[str, Any]]:
        """The stored runs."""
        return list(self.get(f"/api/runs?limit=1000&state={state}")["runs"])


def post(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data=body, headers=named, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, lowered(answer.headers), answer.read()
    except urllib.error.HTTPError as problem:
        with problem:
            return problem.code, lowered(problem.headers), problem.read()


def lowered(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def eventually(what: Callable[[], Any], *, within: float = 15.0) -> Any:
    """The first true answer."""
    deadline = time.monotonic() + within
    while True:
        answer = what()
        if answer:
            return answer
        if time.monotonic() > deadline:
            pytest.fail(f"not within {within:g} s; last answer {answer!r}")
        time.sleep(0.05)


def a_span(
    trace_id: int,
    *,
    span_id: int | None = None,
    parent: int | None = None,
    kind: str = "LLM",
    name: str = "chat",
) -> ReadableSpan:
    """One ended span as an SDK hands it to its exporter."""
    context = SpanContext(trace_id, span_id or new_id(8), is_remote=False, trace_flags=TraceFlags(1))
    above = (
        None if parent is None else SpanContext(trace_id, parent, is_remote=False, trace_flags=TraceFlags(1))
    )
    now = time.time_ns()
    return ReadableSpan(
        name=name,
        context=context,
        parent=above,
        resource=Resource({"service.name": "tested"}),
        attributes={"openinference.span.kind": kind, "llm.model_name": "m", "agent.name": "support"},
        start_time=now - 1_000_000,
        end_time=now,
    )


def a_run(*, spans: int = 3, trace_id: int | None = None) -> list[ReadableSpan]:
    """A run of one agent with model calls, root first."""
    trace_id = trace_id or new_id(16)
    root = a_span(trace_id, kind="AGENT", name="support")
    return [root, *(a_span(trace_id, parent=root.context.span_id) for _ in range(spans - 1))]


def looping(calls: int) -> bytes:
    """The request of a run that calls one tool so many times with the same arguments: more than one is a repeat."""
    run = a_run(spans=1)
    root = run[0].context
    for _ in range(calls):
        span = a_span(root.trace_id, parent=root.span_id, kind="TOOL", name="search")
        attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": "search",
            "input.value": '{"q": "x"}',
            "input.mime_type": "application/json",
            "output.value": '{"hits": []}',
        }
        run.append(
            ReadableSpan(
                name="search",
                context=span.context,
                parent=span.parent,
                resource=span.resource,
                attributes=attributes,
                start_time=span.start_time,
                end_time=span.end_time,
            )
        )
    return body_of(run)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def new_id(size: int) -> int:
    return int.from_bytes(secrets.token_bytes(size), "big") or 1


def body_of(spans: list[ReadableSpan]) -> bytes:
    """The protobuf request that the stock exporter sends."""
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    return encode_spans(spans).SerializeToString()


def parsed(body: bytes) -> ExportTraceServiceRequest:
    return ExportTraceServiceRequest.FromString(body)


class Sender(threading.Thread):
    """A stock exporter under load; remembers which spans were acknowledged."""

    def __init__(self, exporter: SpanExporter) -> None:
        super().__init__(daemon=True)
        self.exporter = exporter
        self.acknowledged: set[tuple[str, str]] = set()
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.is_set():
            spans = [span for _ in range(2) for span in a_run(spans=4)]
            if self.exporter.export(spans) is SpanExportResult.SUCCESS:
                self.acknowledged.update(
                    (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}") for span in spans
                )

    def end(self) -> None:
        """Let it give up."""
        self.ended.set()
        self.exporter.shutdown()
        self.join(timeout=20)
        assert not self.is_alive()


def exporter_over(protocol: str, served: Served) -> SpanExporter:
    """The stock exporter of that protocol."""
    if protocol == "http":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        return OTLPSpanExporter(f"{served.http}/v1/traces", timeout=2)
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

    return Grpc(served.grpc, insecure=True, timeout=2)


@dataclass(frozen=True)
class Tools:
    """The helpers above, for tests that cannot import this file."""

    Sender = Sender
    Served = Served
    a_run = staticmethod(a_run)
    a_span = staticmethod(a_span)
    body_of = staticmethod(body_of)
    eventually = staticmethod(eventually)
    exporter_over = staticmethod(exporter_over)
    needs = staticmethod(needs)
    new_id = staticmethod(new_id)
    parsed = staticmethod(parsed)
    post = staticmethod(post)


@pytest.fixture(scope="session")
def tools() -> Tools:
    for name in ("uvicorn", "httptools", "grpc", "opentelemetry.exporter.otlp.proto.grpc"):
        try:
            there = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            there = False
        needs(name, there)
    return Tools()


def _made(home: Path, **more: str) -> Served:
    return Served(home, {**QUICK, **more})


@pytest.fixture
def served(tools: Tools, tmp_path: Path) -> Iterator[Served]:
    """A service that runs."""
    made = _made(tmp_path / "home").start()
    yield made
    if made.process is not None:
        made.kill()


@pytest.fixture
def stopped(tools: Tools, tmp_path: Path) -> Iterator[Served]:
    """A service that has not been started."""
    made = _made(tmp_path / "home")
    yield made
    if made.process is not None:
        made.kill()


@pytest.fixture(scope="module")
def shared(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests of a file, with small limits."""
    made = _made(
        tmp_path_factory.mktemp("shared") / "home",
        REDFIRST_MAX_BODY_BYTES="200000",
    ).start()
    yield made
    made.kill()

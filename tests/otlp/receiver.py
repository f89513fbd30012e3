"""Both receivers on ports of their own, over a real journal, in this process: quick to make, and open to look into."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.journal.format import START, Record
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.accepting import Acceptor
from redfirst.collector_processor.receiving.certificates import Certificates
from redfirst.collector_processor.receiving.headers import bounded_headers
from redfirst.collector_processor.receiving.over_grpc import GrpcOptions, GrpcReceiver
from redfirst.collector_processor.receiving.over_http import HttpOptions, HttpReceiver
from redfirst.collector_processor.receiving.ports import listen
from redfirst.collector_processor.receiving.tenants import Tenants


@dataclass
class Receiver:
    """What listens, and what it accepted."""

    folder: Path
    acceptor: Acceptor
    loop: asyncio.AbstractEventLoop
    http: str
    """HOST:PORT of OTLP/HTTP."""
    grpc: str
    """HOST:PORT of OTLP/gRPC."""
    journal: Journal
    ready: threading.Event = field(default_factory=threading.Event)

    @property
    def metrics(self) -> Metrics:
        return self.acceptor.metrics

    def records(self) -> list[Record]:
        """Every request that was made durable."""
        files = JournalFiles(self.folder)
        found = [placed.record for placed in files.scan(START)]
        files.close()
        return found

    def spans(self) -> list[Any]:
        """Every durable span, as protobuf."""
        return [
            span
            for record in self.records()
            if record.signal == "traces"
            for group in ExportTraceServiceRequest.FromString(record.body).resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    def logs(self) -> list[Any]:
        """Every durable log record, as protobuf."""
        return [
            log
            for record in self.records()
            if record.signal == "logs"
            for group in ExportLogsServiceRequest.FromString(record.body).resource_logs
            for scope in group.scope_logs
            for log in scope.log_records
        ]

    def post(
        self, path: str, body: bytes, *, connection: socket.socket | None = None, **headers: str
    ) -> Answer:
        """One request of bytes over a socket, as they are."""
        named = {"content-type": "application/x-protobuf", "content-length": str(len(body)), **headers}
        return self.say(head("POST", path, named) + body, connection=connection)

    def say(self, what: bytes, *, connection: socket.socket | None = None) -> Answer:
        """Bytes over a socket, and the answer to them."""
        if connection is not None:
            connection.sendall(what)
            return answer(connection)
        with self.connect() as made:
            with contextlib.suppress(ConnectionError):  # refused before all of it was sent
                made.sendall(what)
            return answer(made)

    def connect(self) -> socket.socket:
        host, _, port = self.http.rpartition(":")
        return socket.create_connection((host, int(port)), timeout=30)

    def run(self, what: Callable[[], Awaitable[Any]]) -> Any:
        """Something on the receivers' event loop."""

        async def run() -> Any:
            return await what()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(30)


@dataclass(frozen=True)
class Answer:
    """One HTTP response."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    """The head of a request."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: localhost",
        *(f"{n.replace('_', '-')}: {v}" for n, v in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def answer(connection: socket.socket) -> Answer:
    """The next response on a connection, and nothing of the one after it."""
    data, body = b"", b""
    while not data.endswith(b"\r\n\r\n"):
        more = connection.recv(1)
        if not more:
            raise ConnectionError(f"closed after {data!r}")
        data += more
    first, *lines = data.decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        more = connection.recv(length - len(body))
        if not more:
            raise ConnectionError("closed within the body")
        body += more
    return Answer(int(first.split()[1]), headers, body)


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.contextmanager
def receiving(
    folder: Path,
    *,
    max_body_bytes: int = 200_000,
    budget_bytes: int | None = None,
    tenants: Tenants | None = None,
    keep_traceless: bool = True,
    http: HttpOptions | None = None,
    grpc: GrpcOptions | None = None,
    certificates: Certificates | None = None,
    header_seconds: float = 10.0,
) -> Iterator[Receiver]:
    """Both receivers, while the block runs."""
    metrics = Metrics()
    journal = Journal(folder, metrics=metrics)
    started = threading.Event()
    made: list[Receiver] = []
    stop: list[Callable[[], None]] = []
    trouble: list[BaseException] = []

    async def main() -> None:
        acceptor = Acceptor(
            lambda: journal, metrics, max_body_bytes=max_body_bytes, budget_bytes=budget_bytes,
            tenants=tenants, keep_traceless=keep_traceless,
        )  # fmt: skip
        port = listen("127.0.0.1", 0, "", "")
        config = uvicorn.Config(
            HttpReceiver(acceptor, http),
            http=bounded_headers(lambda refusal: acceptor.refused(refusal, "http"), seconds=header_seconds),
            ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        if certificates is not None:
            config.load()
            config.ssl = certificates.context()
        server = _Server(config)
        serving = asyncio.create_task(server.serve([port]))
        over_grpc = GrpcReceiver(acceptor, grpc)
        grpc_port = await over_grpc.start("127.0.0.1", 0)
        done = asyncio.Event()
        loop = asyncio.get_running_loop()
        while not server.started:
            await asyncio.sleep(0.01)
        stop.append(lambda: loop.call_soon_threadsafe(done.set))
        made.append(
            Receiver(
                folder,
                acceptor,
                loop,
                f"127.0.0.1:{port.getsockname()[1]}",
                f"127.0.0.1:{grpc_port}",
                journal,
            )
        )
        started.set()
        await done.wait()
        server.should_exit = True
        await over_grpc.stop(0.2)
        await serving
        acceptor.close()

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as problem:
            trouble.append(problem)
            raise
        finally:
            started.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    started.wait(30)
    if trouble:
        raise trouble[0]
    try:
        yield made[0]
    finally:
        stop[0]()
        thread.join(30)
        journal.close()

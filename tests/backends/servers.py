"""Backends in processes of their own, and a gate before one that can be shut or answer for it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.frameworks.conftest import DEV, Started, environment_of, without
from tests.frameworks.mlflow_server import Mlflow
from tests.frameworks.phoenix import Phoenix, free_ports

Json = Any
HERE = Path(__file__).parent
STARTS_WITHIN = 220
"""Seconds: a new database takes half a minute on a quiet machine."""


def ask(
    url: str, method: str = "GET", body: Json | bytes | None = None, headers: Mapping[str, str] | None = None
) -> Json:
    """The JSON that a server answers; None where it answers none."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    kind = "application/x-protobuf" if isinstance(body, bytes) else "application/json"
    request = urllib.request.Request(
        url, data=data, headers={"Content-Type": kind, **(headers or {})}, method=method
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        said = answer.read()
    try:
        return json.loads(said)
    except ValueError:
        return None


def ready(url: str, started: Started, log: Path, *, within: float = STARTS_WITHIN) -> None:
    """Wait until a server answers there."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline and started.process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"{url} is not ready: {log.read_text()[-2000:]}")


Scores = dict[str, list[str]]
"""The labels of every score by name: one label each, unless something was doubled."""


class Backend(Protocol):
    """A backend with scores of its own."""

    url: str

    def take(self, body: bytes) -> None:
        """Give it an export request, as an agent's exporter would."""
        ...

    def scores(self, trace_id: str) -> Scores:
        """What it holds of a trace."""
        ...

    def entry(self, url: str) -> dict[str, Json]:
        """The settings of a sink that tells it, at this address."""
        ...


class PhoenixBackend:
    """Arize Phoenix."""

    def __init__(self, folder: Path, notes: Path) -> None:
        self._server = Phoenix(environment_of("phoenix", "bin/phoenix"), folder, notes)
        self.url = self._server.url

    def start(self) -> None:
        self._server.start(within=STARTS_WITHIN)

    def end(self) -> None:
        self._server.end()

    def take(self, body: bytes) -> None:
        ask(f"{self.url}/v1/traces", "POST", body)

    def scores(self, trace_id: str) -> Scores:
        return self.annotations("trace", trace_id)

    def annotations(self, what: str, target: str) -> Scores:
        """Of a trace, span or session."""
        found: Scores = {}
        try:
            said = ask(f"{self.url}/v1/projects/default/{what}_annotations?{what}_ids={target}&limit=1000")
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code != 404:
                    raise
            return {}
        for one in said["data"]:
            found.setdefault(one["name"], []).append(one["result"]["label"])
        return found

    def spans(self, trace_id: str) -> list[dict[str, Json]]:
        """The spans of a trace."""
        return list(ask(f"{self.url}/v1/projects/default/spans?trace_id={trace_id}&limit=100")["data"])

    def entry(self, url: str) -> dict[str, Json]:
        return {"name": "phoenix", "kind": "phoenix", "endpoint": url}


class MlflowBackend:
    """MLflow's tracking server, without its job workers."""

    def __init__(self, folder: Path, notes: Path) -> None:
        self._server = Mlflow(environment_of("mlflow", "bin/python"), folder, notes)
        self.url = self._server.url

    def start(self) -> None:
        self._server.start(within=STARTS_WITHIN)

    def end(self) -> None:
        self._server.end()

    def take(self, body: bytes) -> None:
        ask(f"{self.url}/v1/traces", "POST", body, {"x-mlflow-experiment-id": "0"})

    def scores(self, trace_id: str) -> Scores:
        found: Scores = {}
        try:
            said = ask(f"{self.url}/api/3.0/mlflow/traces/tr-{trace_id}")
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code != 404:
                    raise
            return {}
        for one in said["trace"]["trace_info"].get("assessments", ()):
            found.setdefault(one["assessment_name"], []).append(one["feedback"]["value"])
        return found

    def entry(self, url: str) -> dict[str, Json]:
        return {"name": "mlflow", "kind": "mlflow", "endpoint": url, "project": "0"}


def go_program(name: str) -> Path:
    """A program that ``deploy/dev/backends.sh`` builds; without Go there is none."""
    found = DEV / name
    if not found.exists():
        why = "" if shutil.which("go") else "; there is no Go on this machine"
        without(f"{found} is not there{why}; run: deploy/dev/backends.sh {DEV}")
    return found


class Jaeger:
    """Jaeger's all-in-one, spans in memory."""

    def __init__(self, folder: Path) -> None:
        self._program = go_program("jaeger/jaeger")
        ports = free_ports(12)
        self.url = f"http://127.0.0.1:{ports[0]}"
        """Of its API and page."""
        self.otlp = f"http://127.0.0.1:{ports[1]}"
        self._log = folder / "jaeger.log"
        self._folder = folder
        flags = (
            *("query.http-server.host-port", "collector.otlp.http.host-port"),
            *("collector.otlp.grpc.host-port", "query.grpc-server.host-port"),
            *("collector.http-server.host-port", "collector.grpc-server.host-port"),
            *("admin.http.host-port",),
        )
        self._command = [
            self._program,
            *(f"--{flag}=127.0.0.1:{port}" for flag, port in zip(flags, ports, strict=False)),
        ]
        self._started: Started | None = None

    def start(self) -> None:
        self._started = Started.of(
            self._command,
            cwd=self._folder,
            env={"PATH": "/usr/bin:/bin", "SPAN_STORAGE_TYPE": "memory"},
            log=self._log,
            quiet=True,
        )
        ready(f"{self.url}/api/services", self._started, self._log)

    def end(self) -> None:
        if self._started is not None:
            self._started.end()

    def flagged(self, service: str) -> list[dict[str, Json]]:
        """The traces that a search by tag finds."""
        tags = urllib.parse.quote(json.dumps({"redfirst.verdict": "flagged"}))
        return list(
            ask(f"{self.url}/api/traces?service={service}&tags={tags}&limit=20&lookback=87600h")["data"]
        )

    def trace(self, trace_id: str) -> list[dict[str, Json]]:
        """The spans of a trace; empty when it is not there."""
        try:
            found = ask(f"{self.url}/api/traces/{trace_id}")["data"]
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code != 404:
                    raise
            return []
        return list(found[0]["spans"]) if found else []


class Collector:
    """An OpenTelemetry Collector with the configuration that the docs show."""

    def __init__(self, folder: Path, config: str, **variables: str) -> None:
        self._program = go_program("otelcol/otelcol")
        self.config = folder / "collector.yaml"
        self.config.write_text(config, encoding="utf-8")
        self._environment = {"PATH": "/usr/bin:/bin", **variables}
        self._log = folder / "collector.log"
        self._folder = folder
        self._started: Started | None = None

    def validate(self) -> str:
        """What it says of its configuration; empty when that is right."""
        done = subprocess.run(
            [self._program, "validate", "--config", self.config],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stderr if done.returncode else ""

    def start(self) -> None:
        self._started = Started.of(
            [self._program, "--config", self.config],
            cwd=self._folder,
            env=self._environment,
            log=self._log,
            quiet=True,
        )
        deadline = time.monotonic() + 60
        while "Everything is ready" not in self._log.read_text():
            if time.monotonic() > deadline or self._started.process.poll() is not None:
                pytest.fail(self._log.read_text()[-2000:])
            time.sleep(0.1)

    def end(self) -> None:
        if self._started is not None:
            self._started.end()


class Gate:
    """Stands before a backend: passes requests on, answers for it while it is told to, or is shut."""

    def __init__(self) -> None:
        (self._port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self.passed: list[str] = []
        self.answered: list[int] = []
        self._backend = ""
        self._answers: list[tuple[int, dict[str, str]]] = []
        self._server: ThreadingHTTPServer | None = None

    def before(self, backend: str) -> None:
        """Stand before this one."""
        self._backend = backend

    def answer(self, *answers: tuple[int, dict[str, str]]) -> None:
        """Answer the next requests so."""
        self._answers += answers

    def open(self) -> None:
        """Listen."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def shut(self) -> None:
        """Refuse connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if outer._answers:
                    status, headers = outer._answers.pop(0)
                    outer.answered.append(status)
                    self._give(status, headers, b"")
                    return
                request = urllib.request.Request(
                    outer._backend + self.path, data=body or None, method=self.command
                )
                for name in ("content-type", "x-mlflow-experiment-id"):
                    if self.headers.get(name):
                        request.add_header(name, self.headers[name])
                outer.passed.append(f"{self.command} {self.path}")
                try:
                    with urllib.request.urlopen(request, timeout=20) as answer:
                        self._give(answer.status, {}, answer.read())
                except urllib.error.HTTPError as problem:
                    with problem:
                        self._give(problem.code, {}, problem.read())

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - the names of http.server

            def _give(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Connection", "close")
                    if status != 204:
                        self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler

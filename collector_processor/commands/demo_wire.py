"""The processor beside the demonstration: a process of its own on free ports, and a receiver for its alerts."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query
from redfirst.evaluators import RedfirstError

Json = Any

_START_SECONDS = 60.0
SERVE = """\
serve:
  settle_seconds: 0.5            # the demonstration has no time for the default of 10
  alerts:
    min_runs: 30
    threshold: 0.1
    z: 1.96
"""
WEBHOOKS = """\
    webhooks:
      - {{name: demo, url: "http://127.0.0.1:{port}/alerts", allow_loopback: true}}
"""


def can_serve() -> bool:
    """Whether the extra that ``redfirst serve`` needs is installed."""
    return all(
        importlib.util.find_spec(name) is not None for name in ("uvicorn", "httptools", "grpc", "zstandard")
    )


class Wire:
    """``redfirst serve`` and a webhook receiver, from ``start`` to the end of the ``with`` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._alerts: queue.Queue[Mapping[str, Json]] = queue.Queue()
        self._receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._process: subprocess.Popen[str] | None = None
        self.endpoint = ""
        """Base URL of the OTLP/HTTP receiver."""

    @property
    def configuration(self) -> str:
        """What ``redfirst.yaml`` needs for it while it runs."""
        return SERVE + WEBHOOKS.format(port=self._receiver.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._receiver.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
        self._receiver.shutdown()
        self._receiver.server_close()

    def start(self) -> None:
        """Start the processor in the folder and wait until it is ready.

        Raises:
            RedfirstError: it ended instead.
        """
        free = {f"REDFIRST_{name}_PORT": "0" for name in ("GRPC", "HTTP", "PAGE")}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and command
            [
                sys.executable,
                "-m",
                "redfirst.collector_processor.cli",
                "serve",
                "--home",
                str(self.home.folder),
            ],
            cwd=self._folder,
            env=dict(os.environ) | free,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        said: list[str] = []
        too_late = threading.Timer(_START_SECONDS, self._process.kill)
        too_late.start()
        try:
            for line in self._process.stdout or ():
                said.append(line.strip())
                if line.startswith("OTLP/HTTP"):
                    self.endpoint = line.split()[-1]
                if line.strip() == "ready":
                    return
        finally:
            too_late.cancel()
        raise RedfirstError(f"the processor did not start: {' '.join(said)[-300:]}")

    @property
    def home(self) -> Home:
        """Where the processor keeps its files."""
        return Home(self._folder / ".redfirst")

    def judged(self, runs: int, *, within: float) -> list[str]:
        """The ids of the judged runs, as soon as there are so many.

        Raises:
            RedfirstError: they were not there in time (``within`` is in seconds).
        """
        ends = time.monotonic() + within
        found: list[str] = []
        while time.monotonic() < ends:
            if self.home.store.exists():
                reader = SqliteReader(self.home.store)
                try:
                    found = [run.run_id for run in reader.runs(Query())]
                finally:
                    reader.close()
                if len(found) >= runs:
                    return found
            time.sleep(0.1)
        raise RedfirstError(f"the processor judged {len(found)} of {runs} runs within {within:g} s")

    def alert(self, *, within: float) -> Mapping[str, Json] | None:
        """The first alert that arrived, waiting so many seconds; ``None`` when none did."""
        try:
            return self._alerts.get(timeout=within)
        except queue.Empty:
            return None

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        alerts = self._alerts

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                alerts.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing: the demonstration prints what arrived."""

        return Handler

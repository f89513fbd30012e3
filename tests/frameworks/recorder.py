"""An OTLP/HTTP endpoint on loopback that takes everything and keeps it."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Recorder:
    """Answers every request with success, and holds its body."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """As they came, in order of arrival."""
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def received(self, count: int, *, within: float = 20) -> list[bytes]:
        """Every body, once there are so many, or when the time is over."""
        deadline = time.monotonic() + within
        while len(self.bodies) < count and time.monotonic() < deadline:
            time.sleep(0.02)
        return list(self.bodies)

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                outer.bodies.append(self.rfile.read(int(self.headers["content-length"])))
                outer.paths.append(self.path)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler

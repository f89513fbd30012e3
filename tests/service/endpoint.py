"""An OTLP/HTTP endpoint of another backend, as forwarding finds it."""

from __future__ import annotations

import gzip
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard

Respond = Callable[[bytes, int], tuple[int, dict[str, str], bytes]]
OK = (200, {}, b"")


class Endpoint:
    """An OTLP/HTTP endpoint that remembers what it was sent; ``respond`` gets the body and how many came before."""

    def __init__(
        self,
        respond: Respond = lambda _body, _count: OK,
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.respond = respond
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.times: list[float] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    self.close_connection = True  # the sender was killed
                    return
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if self.headers.get("content-encoding") == "zstd":
                    body = zstandard.decompress(body)
                outer.times.append(time.monotonic())
                status, headers, answer = outer.respond(body, len(outer.got))
                outer.got.append(
                    (
                        self.path,
                        {k.lower(): v for k, v in self.headers.items()} | {"status": str(status)},
                        body,
                    )
                )
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(answer))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False

            def handle_error(self, *_: Any) -> None:
                """A sender that was killed is no news."""

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
            self.url = f"https://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def bodies(self) -> list[bytes]:
        """Bodies of the requests that were answered with success."""
        return [body for _, headers, body in self.got if headers["status"] == "200"]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

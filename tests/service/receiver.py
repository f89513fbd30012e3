"""Who is told of alerts in these tests: an HTTP server that keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Receiver:
    """A webhook receiver on loopback; ``respond`` gets how many posts came before."""

    def __init__(
        self, respond: Callable[[int], tuple[int, dict[str, str]]] = lambda _: (200, {}), *, port: int = 0
    ) -> None:
        self.respond = respond
        self.got: list[tuple[dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status, headers = outer.respond(len(outer.got))
                outer.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0"}.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook?token=t0ken"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

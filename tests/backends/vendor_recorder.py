"""A vendor's server on loopback that answers as little as its SDK needs, and keeps what it was asked."""

from __future__ import annotations

import gzip
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any


@dataclass(frozen=True)
class Asked:
    """One request."""

    method: str
    path: str
    body: Json
    headers: dict[str, str]


class VendorRecorder:
    """Takes everything."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def to(self, method: str, part: str) -> Json:
        """The body of the one request with this method whose path has this part."""
        (found,) = [one for one in self.asked if one.method == method and part in one.path]
        return found.body

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, asked: Asked) -> Json:
        if asked.path.endswith("/apikey/login"):
            org = {"id": "o", "name": "o", "api_url": self.url, "proxy_url": self.url}
            return {"org_info": [org]}
        if asked.path.startswith("/v1/project/"):
            name = asked.path.rpartition("/")[2]
            return {"id": name, "name": name, "org_id": "o"}
        if asked.path.startswith("/feedback") and asked.method == "POST":
            return {**asked.body, "created_at": "2026-01-01T00:00:00Z", "modified_at": "2026-01-01T00:00:00Z"}
        return {}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                try:
                    value = json.loads(body) if body else None
                except ValueError:
                    value = body
                headers = {name.lower(): text for name, text in self.headers.items()}
                asked = Asked(self.command, self.path.partition("?")[0], value, headers)
                outer.asked.append(asked)
                said = json.dumps(outer._answer(asked)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _any  # noqa: N815 - the names of http.server

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        return Handler

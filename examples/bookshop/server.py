"""The scripted model behind an OpenAI-compatible endpoint: ``python -m bookshop.server --port 0``."""

from __future__ import annotations

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from .habits import DEFECTS
from .model import ScriptedModel

PATH = "/v1/chat/completions"
LONGEST_BODY = 1 << 20


class ModelServer(ThreadingHTTPServer):
    """Answers ``POST /v1/chat/completions``. A request's ``seed`` beats the server's."""

    daemon_threads = True

    def __init__(self, port: int = 0, *, seed: int = 0, defect: str | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Endpoint)
        self.seed = seed
        self.defect = defect

    @property
    def base_url(self) -> str:
        """What a client is pointed at."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Endpoint(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if self.path != PATH or length > LONGEST_BODY:
            self._reply(
                404 if self.path != PATH else 413, {"error": {"message": f"POST up to 1 MiB to {PATH}"}}
            )
            return
        try:
            asked = json.loads(self.rfile.read(length))
            chat = ScriptedModel(int(asked.get("seed", self.server.seed)), self.server.defect)
            completion = chat(asked["messages"], asked.get("tools", []), str(asked["model"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self._reply(400, {"error": {"message": f"not a chat completion request: {error!r}"}})
            return
        self._reply(200, completion)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Say nothing: the conversation is on the spans."""

    def _reply(self, status: int, body: dict[str, Any]) -> None:
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m bookshop.server", description=__doc__)
    parser.add_argument("--port", type=int, default=8090, help="0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, default=0, help="for requests without a seed (default: %(default)s)"
    )
    parser.add_argument("--defect", choices=sorted(DEFECTS), help="a bad habit of the model")
    arguments = parser.parse_args()
    with ModelServer(arguments.port, seed=arguments.seed, defect=arguments.defect) as server:
        print(f"export BOOKSHOP_BASE_URL={server.base_url}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()

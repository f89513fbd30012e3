"""What a backend's answer means for a score, and that nothing secret is said of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from redfirst.collector_processor.sinks.sending import Sending
from redfirst.collector_processor.sinks.sink import NotTaken


class Answering:
    """A server that gives one answer to everything."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, b"{}", {}
        self.got: list[tuple[str, str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                named = {name.lower(): value for name, value in self.headers.items()}
                outer.got.append((self.command, self.path, named, body))
                self.send_response(outer.status)
                for name, value in {**outer.headers, "Content-Length": str(len(outer.body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(outer.body)

            do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 - the names of http.server

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.parametrize(
    ("status", "reason", "again", "whole"),
    [
        (404, "not_there", True, False),
        (429, "status_429", True, True),
        (503, "status_503", True, True),
        (401, "status_401", True, True),
        (403, "status_403", True, True),
        (500, "status_500", True, False),
        (409, "status_409", True, False),
        (400, "status_400", False, False),
        (422, "status_422", False, False),
        (302, "redirect", True, True),
    ],
)
def test_each_answer_has_its_consequence(
    server: Answering, status: int, reason: str, again: bool, whole: bool
) -> None:
    """Busy and locked out concern the backend, an error or an absence this run, a refusal of what was said is final."""
    server.status = status
    sending = Sending(server.url, {}, timeout=5)
    with pytest.raises(NotTaken) as refused:
        sending("POST", "/x", {})
    sending.close()

    assert (refused.value.reason, refused.value.again, refused.value.whole) == (reason, again, whole)


def test_no_server_is_a_backend_that_cannot_be_had() -> None:
    """A refused connection is tried again, for all runs together."""
    sending = Sending("http://127.0.0.1:9", {}, timeout=2)
    with pytest.raises(NotTaken) as refused:
        sending("GET", "/x")

    assert (refused.value.reason, refused.value.again, refused.value.whole) == ("connection", True, True)


def test_a_request_has_the_path_of_the_endpoint_before_its_own_and_the_headers_asked_for(
    server: Answering,
) -> None:
    """A backend below a path is reached; JSON and protobuf are called what they are, and nothing has no content."""
    server.body = b'{"a": 1}'
    sending = Sending(f"{server.url}/base", {"x-key": "k3y"}, timeout=5)

    assert sending("PATCH", "/x?y=1", {"b": 2}) == {"a": 1}
    assert sending("POST", "/v1/traces", b"\x0a\x00") is None
    assert sending("DELETE", "/x") == {"a": 1}
    sending.close()
    kinds = [(how, path, headers.get("content-type"), body) for how, path, headers, body in server.got]
    assert kinds == [
        ("PATCH", "/base/x?y=1", "application/json", b'{"b":2}'),
        ("POST", "/base/v1/traces", "application/x-protobuf", b"\x0a\x00"),
        ("DELETE", "/base/x", None, b""),
    ]
    assert {headers["x-key"] for _, _, headers, _ in server.got} == {"k3y"}


def test_a_wish_to_wait_is_read_and_a_key_is_never_repeated(server: Answering) -> None:
    """An answer that quotes our key is told without it."""
    server.status, server.headers = 429, {"Retry-After": "7"}
    server.body = b"slow down, owner of s3cr3t"
    sending = Sending(server.url, {"authorization": "Bearer s3cr3t"}, timeout=5)
    with pytest.raises(NotTaken) as refused:
        sending("POST", "/x", {})
    sending.close()

    assert refused.value.after == 7
    assert str(refused.value) == "status_429: slow down, owner of …"

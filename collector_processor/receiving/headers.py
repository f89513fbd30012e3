"""Bounds on a request's head: a sender that is slow with it, or endless, is told so and holds no connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from redfirst.collector_processor.receiving.refusals import Refusal, Refused

HEADER_SECONDS = 10.0
HEADER_BYTES = 64 << 10


def bounded_headers(
    refused: Callable[[Refusal], None], *, seconds: float = HEADER_SECONDS, most: int = HEADER_BYTES
) -> type[asyncio.Protocol]:
    """uvicorn's HTTP protocol, with ``seconds`` and ``most`` bytes from a head's beginning to its end."""

    class BoundedHeaders(HttpToolsProtocol):
        _timer: asyncio.TimerHandle | None = None
        _in_head = True
        """Between requests, too: the next thing that comes is a head."""
        _size = 0

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, self._too_slow)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._size += len(data)
                if self._timer is None:
                    self._timer = self.loop.call_later(seconds, self._too_slow)
            super().data_received(data)
            if self._in_head and self._size > most:
                self._end(Refusal.LARGE_HEADERS, f"The request's head is larger than {most} bytes.")

        def on_headers_complete(self) -> None:
            self._in_head = False
            self._stop()
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._in_head, self._size = True, 0
            super().on_message_complete()

        def _too_slow(self) -> None:
            self._timer = None
            if self._size:
                self._end(Refusal.TOO_SLOW, f"The request's head did not end within {seconds:g} s.")
            else:
                self.transport.close()  # connected and said nothing, as load balancers do

        def send_400_response(self, msg: str) -> None:
            self._end(Refusal.BAD_HTTP, msg)

        def _end(self, refusal: Refusal, what: str) -> None:
            self._stop()
            if self.transport.is_closing():
                return
            refused(refusal)
            body = Refused(refusal, what).status_json()  # of an unknown type, as its content type is
            head = (
                f"HTTP/1.1 {refusal.http} {HTTPStatus(refusal.http).phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
            self.transport.close()

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return BoundedHeaders

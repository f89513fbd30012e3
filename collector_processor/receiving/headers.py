"""Bounds on a request's head: a sender that is slow with it, or endless, is told so and holds no connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from redfirst.collector_processor.receiving.accepting import Refusal

HEADER_SECONDS = 15.0
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
                self._end(Refusal.LARGE_HEADERS, "431 Request Header Fields Too Large")

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
                self._end(Refusal.TOO_SLOW, "408 Request Timeout")
            else:
                self.transport.close()  # connected and said nothing, as load balancers do

        def _end(self, refusal: Refusal, status: str) -> None:
            self._stop()
            if self.transport.is_closing():
                return
            refused(refusal)
            self.transport.write(
                f"HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
            )
            self.transport.close()

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return BoundedHeaders

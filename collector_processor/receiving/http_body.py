"""A request's body, read as it comes: never beyond its limit, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from redfirst.collector_processor.receiving.inflating import ENCODINGS, Limited
from redfirst.collector_processor.receiving.refusals import Refusal, Refused, too_large

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]

BODY_SECONDS = 30.0
_SLOWEST = 64 << 10
"""Bytes a second that give a body more time than that."""
_LINGER_BYTES = 1 << 30
_LINGER_SECONDS = 10.0


class Body:
    """The body of one request."""

    def __init__(self, receive: Receive, *, seconds: float = BODY_SECONDS) -> None:
        self._receive = receive
        self._seconds = seconds
        self.done = False

    async def read(
        self, headers: Mapping[bytes, str], encoding: str | None, limit: int, take: Callable[[int], None]
    ) -> bytes:
        """All of it, unpacked. ``take`` is asked for room before more is kept.

        Raises:
            Refused: it is too large, too slow, damaged, or its sender went away.
        """
        announced = headers.get(b"content-length", "")
        if announced.isdigit() and int(announced) > limit:
            raise too_large(limit)
        inflater = None if encoding is None else Limited(ENCODINGS[encoding](), limit)
        parts: list[bytes] = []
        packed = size = 0
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(self._seconds) as timeout:
                while not self.done:
                    chunk = await self.chunk()
                    packed += len(chunk)
                    timeout.reschedule(begun + self._seconds + packed / _SLOWEST)
                    if packed > limit:
                        raise too_large(limit)
                    for piece in (chunk,) if inflater is None else inflater.pieces(chunk):
                        size += len(piece)
                        take(len(piece))
                        parts.append(piece)
                        if inflater is not None:
                            await asyncio.sleep(0)  # others go on while much is unpacked
        except TimeoutError as problem:
            raise Refused(
                Refusal.TOO_SLOW,
                f"Only {packed} bytes of the body came within {self._seconds:g} s.",
            ) from problem
        if inflater is not None and not inflater.whole:
            raise Refused(Refusal.BAD_ENCODING, f"The {encoding} data end too early.")
        return b"".join(parts)

    async def chunk(self) -> bytes:
        """The next piece.

        Raises:
            Refused: the sender has gone.
        """
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.done = True
            raise Refused(Refusal.SENDER_GONE, "The sender went away before its request was whole.")
        self.done = not message.get("more_body", False)
        return bytes(message.get("body", b""))

    async def discard(self) -> None:
        """Read on for a while, so that a sender still sending can read the answer before the connection ends."""
        left = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER_SECONDS):
                while not self.done and left > 0:
                    left -= len(await self.chunk())
        except (TimeoutError, Refused):
            return  # it was told what was wrong, and has stopped listening

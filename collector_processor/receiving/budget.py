"""One budget of bytes for the requests in flight, over all connections of both protocols."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager

from redfirst.collector_processor.receiving.refusals import Refusal, Refused, busy

READ_SECONDS = 30.0
"""What a gRPC message may take to arrive."""
_PATIENCE = 1.0
"""Seconds that a call waits for a place; then its sender is asked to come again."""
_UNMOVED = 2.0
"""Age from which a message that is still arriving gives its place to a call that waits."""


class Budget:
    """Bytes that may be received at once. Used from one event loop."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @contextmanager
    def share(self) -> Iterator[Callable[[int], None]]:
        """Take bytes as they come, and give them all back at the end. Taking raises ``Refused`` when none are left."""
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if self.used + count > self.limit:
                raise busy()
            taken += count
            self.used += count

        try:
            yield take
        finally:
            self.used -= taken


class Places:
    """Places for messages that arrive whole or not at all, as gRPC's do, so that their size is known too late.

    While none is free, the message that has been arriving for longest gives its place up: senders that stall hold
    up no others. Used from one event loop.
    """

    def __init__(self, count: int, *, patience: float = _PATIENCE, unmoved: float = _UNMOVED) -> None:
        self._free = asyncio.Semaphore(count)
        self._patience = patience
        self._unmoved = unmoved
        self._arriving: dict[asyncio.Timeout, float] = {}
        """When each message began to arrive, oldest first."""

    @contextlib.asynccontextmanager
    async def one(self, seconds: float = READ_SECONDS) -> AsyncIterator[None]:
        """A place for one message.

        Raises:
            Refused: there is none, or the message did not arrive in time.
        """
        await self._wait()
        evicted = asyncio.timeout(seconds)
        try:
            async with evicted:
                self._arriving[evicted] = time.monotonic()
                yield
        except TimeoutError as problem:
            if time.monotonic() - self._arriving[evicted] < seconds:
                raise busy() from problem
            raise Refused(Refusal.TOO_SLOW, f"The message did not arrive within {seconds:g} s.") from problem
        finally:
            self._arriving.pop(evicted, None)
            self._free.release()

    async def _wait(self) -> None:
        if self._free.locked():
            self._make_room()
        try:
            async with asyncio.timeout(self._patience):
                await self._free.acquire()
        except TimeoutError as problem:
            raise busy() from problem

    def _make_room(self) -> None:
        for timeout, begun in self._arriving.items():
            if time.monotonic() - begun < self._unmoved:
                return  # the others are younger still
            if not timeout.expired() and timeout.when() != 0:
                timeout.reschedule(0)
                return

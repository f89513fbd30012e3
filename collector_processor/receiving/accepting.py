"""What both receivers do with a request: check it, make it durable, and only then say that it was accepted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from redfirst.collector_processor.journal.format import Record, Signal
from redfirst.collector_processor.journal.writing import Journal, JournalUnavailable
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.request import Checked, check
from redfirst.evaluators.errors import UnreadableInput

RETRY_SECONDS = 1
"""What pushed-back senders are told to wait: a Python exporter drops at once what it should hold for longer."""
_BIG = 1 << 20
"""Bodies beyond this are read off the event loop."""
_LONGEST_MESSAGE = 2000
_ROOM = 256 << 20
"""Bytes that may be received at once, unless one request may be larger."""


class Refusal(Enum):
    """Why a request is refused: a name for the counter, the HTTP status and the gRPC code."""

    UNDECODABLE = ("undecodable", 400, 3)
    TOO_LARGE = ("too_large", 413, 8)
    BAD_ENCODING = ("bad_encoding", 400, 3)
    UNKNOWN_TYPE = ("unknown_content_type", 415, 3)
    UNKNOWN_ENCODING = ("unknown_content_encoding", 415, 3)
    UNKNOWN_PATH = ("unknown_path", 404, 5)
    WRONG_METHOD = ("wrong_method", 405, 12)
    LARGE_HEADERS = ("headers_too_large", 431, 8)
    TOO_SLOW = ("too_slow", 408, 4)
    SENDER_GONE = ("sender_gone", 400, 1)
    DISK = ("disk", 503, 14)
    FULL = ("full", 503, 14)
    BUSY = ("busy", 503, 14)
    STOPPING = ("stopping", 503, 14)

    def __init__(self, reason: str, http: int, grpc: int) -> None:
        self.reason = reason
        self.http = http
        self.grpc = grpc

    @property
    def again(self) -> bool:
        """Whether the sender should try again."""
        return self.http == 503


class Refused(Exception):
    """A request of which nothing was accepted."""

    def __init__(self, refusal: Refusal, what: str) -> None:
        super().__init__(what[:_LONGEST_MESSAGE])
        self.refusal = refusal

    def status(self) -> Any:
        """The ``google.rpc.Status`` that the sender is told."""
        from google.protobuf.duration_pb2 import Duration
        from google.rpc.error_details_pb2 import (  # type: ignore[import-untyped]
            BadRequest,
            RetryInfo,
        )
        from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

        status = Status(code=self.refusal.grpc, message=str(self))
        if self.refusal.again:
            status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS)))
        elif self.refusal is Refusal.UNDECODABLE:
            violation = BadRequest.FieldViolation(field="body", description=str(self))
            status.details.add().Pack(BadRequest(field_violations=[violation]))
        return status


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The answer to a request that was accepted, wholly or in part."""

    rejected: int = 0
    message: str = ""


@dataclass(slots=True)
class Room:
    """Bytes of requests that are being received, over all connections."""

    limit: int
    held: int = field(default=0, init=False)


class Acceptor:
    """Checks requests and journals them. Used from one event loop."""

    def __init__(
        self,
        journal: Callable[[], Journal],
        metrics: Metrics,
        *,
        max_body_bytes: int,
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self.metrics = metrics
        self.stopping = False
        self._journal = journal
        self._room = Room(max(_ROOM, 2 * max_body_bytes))

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """Take bytes of the room for requests in flight, and give them all back at the end."""
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            if self._room.held + count > self._room.limit:
                raise Refused(Refusal.BUSY, "Too many bytes are being received at once; try again soon.")
            taken += count
            self._room.held += count

        try:
            yield take
        finally:
            self._room.held -= taken

    async def accept(self, body: bytes, signal: Signal, *, is_json: bool, protocol: str) -> Accepted:
        """Answer once the request is durable.

        Raises:
            Refused: nothing of it was accepted.
        """
        if self.stopping:
            raise Refused(Refusal.STOPPING, "The service is stopping; try again soon.")
        try:
            if len(body) > _BIG:
                checked = await asyncio.to_thread(check, body, signal, is_json=is_json)
            else:
                checked = check(body, signal, is_json=is_json)
        except UnreadableInput as problem:
            raise Refused(Refusal.UNDECODABLE, str(problem)) from problem
        self.refuse_larger(len(checked.body))
        if checked.accepted:
            await self._keep(checked)
        self._count(checked, protocol)
        return Accepted(rejected=sum(checked.rejected.values()), message=checked.message[:_LONGEST_MESSAGE])

    def refuse_larger(self, size: int) -> None:
        """Refuse a request of more bytes than one may have.

        Raises:
            Refused: it has.
        """
        if size > self.max_body_bytes:
            raise Refused(
                Refusal.TOO_LARGE,
                f"The request is larger than {self.max_body_bytes} bytes (max_body_bytes); send smaller batches.",
            )

    def refused(self, refusal: Refusal, protocol: str) -> None:
        """Count a refusal."""
        self.metrics.add("redfirst_rejected_total", reason=refusal.reason)
        self.metrics.add("redfirst_requests_total", protocol=protocol, result="refused")

    async def _keep(self, checked: Checked) -> None:
        record = Record(signal=checked.signal, tenant="default", arrival_ns=time.time_ns(), body=checked.body)
        try:
            await asyncio.wrap_future(self._journal().append(record, checked.heads))
        except JournalUnavailable as problem:
            raise Refused(_PUSH_BACK[problem.reason], f"{problem}; try again soon.") from problem

    def _count(self, checked: Checked, protocol: str) -> None:
        name = "spans" if checked.signal == "traces" else "logs"
        self.metrics.add(f"redfirst_{name}_accepted_total", checked.accepted)
        self.metrics.add("redfirst_requests_total", protocol=protocol, result="accepted")
        for reason, count in checked.rejected.items():
            self.metrics.add("redfirst_rejected_total", count, reason=reason)


_PUSH_BACK: Mapping[str, Refusal] = {
    "disk": Refusal.DISK,
    "full": Refusal.FULL,
    "busy": Refusal.BUSY,
    "stopping": Refusal.STOPPING,
}

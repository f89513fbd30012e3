"""OTLP over HTTP: protobuf and JSON, plain and gzipped, with the protocol's own answers to what is wrong."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Literal

import orjson

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.accepting import (
    RETRY_SECONDS,
    Accepted,
    Acceptor,
    Refusal,
    Refused,
)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Content = Literal["protobuf", "json"]

_SIGNALS: Mapping[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_METRICS = "/v1/metrics"
_TYPES: Mapping[str, Content] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_CONTENT_TYPES: Mapping[Content, bytes] = {"protobuf": b"application/x-protobuf", "json": b"application/json"}
_WINDOW = {"gzip": 31, "deflate": 15}
_BODY_SECONDS = 30.0
_LINGER_BYTES = 1 << 30
_LINGER_SECONDS = 10.0


class HttpReceiver:
    """The ASGI application on the OTLP/HTTP port."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        content = _content(headers)
        answer = _Answer(send, content or "json")
        body = _Body(receive)
        try:
            await self._answer(scope, headers, content, body, answer)
        except Refused as problem:
            self._acceptor.refused(problem.refusal, "http")
            await answer.refuse(problem, body)

    async def _answer(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, str],
        content: Content | None,
        body: _Body,
        answer: _Answer,
    ) -> None:
        path = scope["path"]
        if path not in _SIGNALS and path != _METRICS:
            known = ", ".join((*_SIGNALS, _METRICS))
            raise Refused(Refusal.UNKNOWN_PATH, f"There is no {path}; this is OTLP/HTTP with {known}.")
        if scope["method"] != "POST":
            raise Refused(Refusal.WRONG_METHOD, f"{path} takes POST only.")
        if content is None:
            found = headers.get(b"content-type") or "none"
            raise Refused(
                Refusal.UNKNOWN_TYPE,
                f"Content type {found}: send application/x-protobuf or application/json.",
            )
        encoding = headers.get(b"content-encoding", "identity").strip().lower() or "identity"
        if encoding != "identity" and encoding not in _WINDOW:
            raise Refused(
                Refusal.UNKNOWN_ENCODING, f"Content encoding {encoding}: send gzip, deflate or nothing."
            )
        with self._acceptor.room() as take:
            data = await body.read(headers, encoding, self._acceptor.max_body_bytes, take)
            if path == _METRICS:
                await answer.metrics(data, content, self._acceptor)
                return
            accepted = await self._acceptor.accept(
                data, _SIGNALS[path], is_json=content == "json", protocol="http"
            )
        await answer.accept(accepted, _SIGNALS[path])


class _Body:
    """The request's body, read as it comes and never beyond its limit."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.done = False

    async def read(
        self, headers: Mapping[bytes, str], encoding: str, limit: int, take: Callable[[int], None]
    ) -> bytes:
        announced = headers.get(b"content-length", "")
        if announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        inflate = None if encoding == "identity" else _Inflater(_WINDOW[encoding], limit)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while not self.done:
                    chunk = await self.chunk()
                    if inflate is not None:
                        chunk = inflate(chunk)
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
                    take(len(chunk))
                    parts.append(chunk)
        except TimeoutError as problem:
            raise Refused(Refusal.TOO_SLOW, f"The body did not come within {_BODY_SECONDS:g} s.") from problem
        if inflate is not None and not inflate.whole:
            raise Refused(Refusal.BAD_ENCODING, f"The {encoding} data end too early.")
        return b"".join(parts)

    async def chunk(self) -> bytes:
        """The next piece; empty at the end and when the sender has gone."""
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


class _Inflater:
    """Inflates piece by piece and stops at the limit, whatever the data would grow to."""

    def __init__(self, window: int, limit: int) -> None:
        self._window = window
        self._left = limit
        self._limit = limit
        self._stream = zlib.decompressobj(window)
        self._begun = False

    @property
    def whole(self) -> bool:
        """Whether the data ended where a stream ends."""
        return self._stream.eof or not self._begun

    def __call__(self, data: bytes) -> bytes:
        parts: list[bytes] = []
        while data:
            self._begun = True
            if self._stream.eof:  # gzip files may be several, one after the other
                self._stream = zlib.decompressobj(self._window)
            try:
                part = self._stream.decompress(data, self._left + 1)
            except zlib.error as problem:
                raise Refused(
                    Refusal.BAD_ENCODING, f"The compressed data are damaged: {problem}."
                ) from problem
            self._left -= len(part)
            if self._left < 0:
                raise _too_large(self._limit)
            parts.append(part)
            data = self._stream.unused_data or self._stream.unconsumed_tail
        return b"".join(parts)


class _Answer:
    """Sends one response in the encoding of its request."""

    def __init__(self, send: Send, content: Content) -> None:
        self._send = send
        self._content = content

    async def accept(self, accepted: Accepted, signal: Signal) -> None:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

        if not accepted.rejected and not accepted.message:
            await self._respond(200, b"{}" if self._content == "json" else b"")
            return
        count = "rejected_spans" if signal == "traces" else "rejected_log_records"
        if self._content == "json":
            name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
            partial: dict[str, Any] = {"errorMessage": accepted.message}
            if accepted.rejected:
                partial[name] = str(accepted.rejected)
            await self._respond(200, orjson.dumps({"partialSuccess": partial}))
            return
        response: Any = ExportTraceServiceResponse() if signal == "traces" else ExportLogsServiceResponse()
        setattr(response.partial_success, count, accepted.rejected)
        response.partial_success.error_message = accepted.message
        await self._respond(200, response.SerializeToString())

    async def metrics(self, data: bytes, content: Content, acceptor: Acceptor) -> None:
        """Metrics are counted and not kept: said in the protocol's own way, so that no sender retries."""
        from redfirst.collector_processor.receiving.metric_points import refuse_points

        body, count = refuse_points(data, is_json=content == "json")
        acceptor.metrics.add("redfirst_rejected_total", count, reason="metrics_not_stored")
        await self._respond(200, body)

    async def refuse(self, problem: Refused, body: _Body) -> None:
        status = problem.status()
        if self._content == "json":
            text = orjson.dumps({"code": status.code, "message": status.message})
        else:
            text = status.SerializeToString()
        extra: list[tuple[bytes, bytes]] = []
        if problem.refusal.again:
            extra.append((b"retry-after", str(RETRY_SECONDS).encode()))
        if problem.refusal is Refusal.WRONG_METHOD:
            extra.append((b"allow", b"POST"))
        if body.done:
            await self._respond(problem.refusal.http, text, extra)
            return
        extra.append((b"connection", b"close"))
        await self._respond(problem.refusal.http, text, extra, more=True)
        await body.discard()
        await self._send({"type": "http.response.body", "body": b""})

    async def _respond(
        self, status: int, body: bytes, extra: list[tuple[bytes, bytes]] | None = None, *, more: bool = False
    ) -> None:
        headers = [
            (b"content-type", _CONTENT_TYPES[self._content]),
            (b"content-length", str(len(body)).encode()),
            *(extra or ()),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


def _content(headers: Mapping[bytes, str]) -> Content | None:
    return _TYPES.get(headers.get(b"content-type", "").partition(";")[0].strip().lower())


def _too_large(limit: int) -> Refused:
    return Refused(
        Refusal.TOO_LARGE, f"The body is larger than {limit} bytes (max_body_bytes); send smaller batches."
    )

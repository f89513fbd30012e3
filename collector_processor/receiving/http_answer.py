"""One response of the OTLP/HTTP port, in the encoding of its request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Literal

import orjson

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.accepting import Accepted
from redfirst.collector_processor.receiving.http_body import Body
from redfirst.collector_processor.receiving.partial import partial
from redfirst.collector_processor.receiving.refusals import RETRY_SECONDS, Refusal, Refused

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Content = Literal["protobuf", "json"]
Headers = Sequence[tuple[bytes, bytes]]

_CONTENT_TYPES: Mapping[Content, bytes] = {"protobuf": b"application/x-protobuf", "json": b"application/json"}
_JSON_NAMES: Mapping[Signal, str] = {"traces": "rejectedSpans", "logs": "rejectedLogRecords"}


class Answer:
    """Sends one response."""

    def __init__(self, send: Send, content: Content, always: Headers = ()) -> None:
        """``always`` are headers that every answer carries."""
        self._send = send
        self._content = content
        self._always = always
        self.begun = False

    async def accept(self, accepted: Accepted, signal: Signal) -> None:
        """Say that a request was accepted, and what of it was not."""
        if self._content != "json":
            await self.respond(200, partial(accepted, signal))
            return
        said: dict[str, Any] = {}
        if accepted.rejected or accepted.message:
            said["partialSuccess"] = {"errorMessage": accepted.message}
        if accepted.rejected:
            said["partialSuccess"][_JSON_NAMES[signal]] = str(accepted.rejected)
        await self.respond(200, orjson.dumps(said))

    async def refuse(self, problem: Refused, body: Body) -> None:
        """Say that a request was refused. The connection ends when the rest of the request is not wanted."""
        text = problem.status_json() if self._content == "json" else problem.status().SerializeToString()
        extra: list[tuple[bytes, bytes]] = []
        if problem.refusal.again:
            extra.append((b"retry-after", str(RETRY_SECONDS).encode()))
        if problem.refusal is Refusal.WRONG_METHOD:
            extra.append((b"allow", b"POST"))
        if problem.refusal is Refusal.NO_TOKEN:
            extra.append((b"www-authenticate", b"Bearer"))
        if not body.done or problem.refusal is Refusal.TOO_LARGE:
            extra.append((b"connection", b"close"))
        if body.done:
            await self.respond(problem.refusal.http, text, extra)
            return
        await self.respond(problem.refusal.http, text, extra, more=True)
        await body.discard()
        await self._send({"type": "http.response.body", "body": b""})

    async def respond(self, status: int, body: bytes, extra: Headers = (), *, more: bool = False) -> None:
        """Send a response; with ``more``, the last of it is still to come."""
        self.begun = True
        about = [(b"content-type", _CONTENT_TYPES[self._content])] if status != 204 else []
        headers = [*about, (b"content-length", str(len(body)).encode()), *(extra or ())]
        known = {name for name, _ in headers}
        headers += [(name, value) for name, value in self._always if name not in known]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

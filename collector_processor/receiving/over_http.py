"""OTLP over HTTP: protobuf and JSON, plain and compressed, with the protocol's own answers to what is wrong."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.accepting import Acceptor
from redfirst.collector_processor.receiving.http_answer import Answer, Content, Send
from redfirst.collector_processor.receiving.http_body import BODY_SECONDS, Body, Receive
from redfirst.collector_processor.receiving.inflating import ENCODINGS
from redfirst.collector_processor.receiving.metric_points import refuse_points
from redfirst.collector_processor.receiving.origins import Origins
from redfirst.collector_processor.receiving.refusals import Refusal, Refused

_SIGNALS: Mapping[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_METRICS = "/v1/metrics"
_TYPES: Mapping[str, Content] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpOptions:
    """How the OTLP/HTTP port differs from its defaults."""

    prefix: str = ""
    """Before ``/v1/traces`` and the others."""
    metrics: Literal["refuse", "absent"] = "refuse"
    """Whether ``/v1/metrics`` refuses every data point, or is not there."""
    origins: Origins = field(default_factory=Origins)
    body_seconds: float = BODY_SECONDS


class HttpReceiver:
    """The ASGI application on the OTLP/HTTP port."""

    def __init__(self, acceptor: Acceptor, options: HttpOptions | None = None) -> None:
        self._acceptor = acceptor
        self._options = options or HttpOptions()
        paths = (*_SIGNALS, *((_METRICS,) if self._options.metrics == "refuse" else ()))
        self._paths: dict[str, str] = {f"{self._options.prefix}{path}": path for path in paths}

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        content = _content(headers)
        origins = self._options.origins
        answer = Answer(send, content or "json", origins.headers(headers))
        body = Body(receive, seconds=self._options.body_seconds)
        try:
            preflight = origins.preflight(scope["method"], headers)
            if preflight is not None and scope["path"] in self._paths:
                await answer.respond(204, b"", preflight)
                return
            await self._answer(scope, headers, content, body, answer)
        except Refused as problem:
            await self._refuse(problem, answer, body)
        except Exception:
            # whatever it is: without this the server answers 500, and exporters drop what they should send again
            _log.exception("a request over HTTP could not be answered")
            if answer.begun:
                raise
            what = "The service made a mistake with this request; try again."
            await self._refuse(Refused(Refusal.FAULT, what), answer, body)

    async def _refuse(self, problem: Refused, answer: Answer, body: Body) -> None:
        self._acceptor.refused(problem.refusal, "http")
        await answer.refuse(problem, body)

    async def _answer(
        self,
        scope: Mapping[str, Any],
        headers: Mapping[bytes, str],
        content: Content | None,
        body: Body,
        answer: Answer,
    ) -> None:
        path = self._path(scope)
        tenant = self._acceptor.tenants.of({name.decode("latin-1"): text for name, text in headers.items()})
        if content is None:
            found = headers.get(b"content-type") or "none"
            raise Refused(
                Refusal.UNKNOWN_TYPE,
                f"Content type {found}: send application/x-protobuf or application/json.",
            )
        with self._acceptor.share() as take:
            data = await body.read(headers, _encoding(headers), self._acceptor.max_body_bytes, take)
            if path == _METRICS:
                # counted and not kept: said in the protocol's own way, so that no sender retries
                response, count = await self._acceptor.aside(
                    len(data), lambda: refuse_points(data, is_json=content == "json"), slow=True
                )
                self._acceptor.metrics.add("redfirst_rejected_total", count, reason="metrics_not_stored")
                await answer.respond(200, response)
                return
            accepted = await self._acceptor.accept(
                data, _SIGNALS[path], is_json=content == "json", protocol="http", tenant=tenant
            )
        await answer.accept(accepted, _SIGNALS[path])

    def _path(self, scope: Mapping[str, Any]) -> str:
        asked: str = scope["path"]
        if asked not in self._paths:
            known = ", ".join(self._paths)
            raise Refused(Refusal.UNKNOWN_PATH, f"There is no {asked}; this is OTLP/HTTP with {known}.")
        if scope["method"] != "POST":
            raise Refused(Refusal.WRONG_METHOD, f"{asked} takes POST only.")
        return self._paths[asked]


def _content(headers: Mapping[bytes, str]) -> Content | None:
    return _TYPES.get(headers.get(b"content-type", "").partition(";")[0].strip().lower())


def _encoding(headers: Mapping[bytes, str]) -> str | None:
    encoding = headers.get(b"content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return None
    if encoding not in ENCODINGS:
        raise Refused(
            Refusal.UNKNOWN_ENCODING,
            f"Content encoding {encoding}: send one of {', '.join(ENCODINGS)}, or none.",
        )
    return encoding

"""What a web application does for its callers: goes on with their trace, and tells them its id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.propagation import extract

HEADER = "x-trace-id"
CALLER = otel_context.create_key("redfirst-caller")
"""Under this key of the context waits whoever answers a request."""

Message = MutableMapping[str, Any]


class _Caller:
    """Hears of the first trace that begins for a request."""

    def __init__(self) -> None:
        self.trace_id: str | None = None

    def known(self) -> str | None:
        context = trace.get_current_span().get_span_context()
        return self.trace_id or (trace.format_trace_id(context.trace_id) if context.is_valid else None)


def tell_caller(context: Context, span: trace.Span) -> None:
    """A span has begun: whoever answers the request may want its trace id."""
    caller = context.get(CALLER)
    if isinstance(caller, _Caller) and caller.trace_id is None:
        found = span.get_span_context()
        caller.trace_id = trace.format_trace_id(found.trace_id) if found.is_valid else None


def trace_header() -> dict[str, str]:
    """The header with the trace id of the current run, for a response that is made by hand; empty outside of a trace."""
    context = trace.get_current_span().get_span_context()
    return {HEADER: trace.format_trace_id(context.trace_id)} if context.is_valid else {}


class TraceASGI:
    """ASGI middleware: continues the trace of ``traceparent`` and answers with ``x-trace-id``.

    The id is that of the first span that began before the response did.
    """

    def __init__(self, app: Callable[..., Awaitable[Any]], header: str = HEADER) -> None:
        self._app, self._header = app, header.lower().encode("ascii")

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Message], Awaitable[None]]) -> None:
        """See the ASGI specification."""
        if scope.get("type") != "http":
            await self._app(scope, receive, send)
            return
        caller = _Caller()

        async def told(message: Message) -> None:
            if message.get("type") == "http.response.start":
                with guarded("tell a caller the trace id"):
                    known = caller.known()
                    if known is not None:
                        added = (self._header, known.encode("ascii"))
                        message = {**message, "headers": [*message.get("headers", ()), added]}
            await send(message)

        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope.get("headers", ())}
        with extract(headers):
            token = otel_context.attach(otel_context.set_value(CALLER, caller))
            try:
                await self._app(scope, receive, told)
            finally:
                otel_context.detach(token)


class TraceWSGI:
    """WSGI middleware: continues the trace of ``traceparent`` and answers with ``x-trace-id``."""

    def __init__(self, app: Callable[..., Iterable[bytes]], header: str = HEADER) -> None:
        self._app, self._header = app, header

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """See PEP 3333."""
        caller = _Caller()

        def told(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            with guarded("tell a caller the trace id"):
                known = caller.known()
                if known is not None:
                    headers = [*headers, (self._header, known)]
            return start_response(status, headers, *more)

        given = {
            key[5:].replace("_", "-"): value for key, value in environ.items() if key.startswith("HTTP_")
        }
        with extract(given):
            token = otel_context.attach(otel_context.set_value(CALLER, caller))
            try:
                return self._app(environ, told)
            finally:
                otel_context.detach(token)

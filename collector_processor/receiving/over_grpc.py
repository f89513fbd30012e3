"""OTLP over gRPC: trace, log and metric services on one port, with raw bytes in and out.

The methods are unary to their senders. Here they read their one message themselves, so that it is read only when
there is a place for it: the library's own bound on calls does not hold for what has already arrived.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.log_lines import fields
from redfirst.collector_processor.receiving.accepting import Acceptor
from redfirst.collector_processor.receiving.budget import READ_SECONDS
from redfirst.collector_processor.receiving.certificates import Certificates
from redfirst.collector_processor.receiving.grpc_health import health_service
from redfirst.collector_processor.receiving.metric_points import refuse_points
from redfirst.collector_processor.receiving.partial import partial
from redfirst.collector_processor.receiving.ports import refuse_taken
from redfirst.collector_processor.receiving.refusals import RETRY_SECONDS, Refusal, Refused

_PACKAGE = "opentelemetry.proto.collector"
_CODES = {code.value[0]: code for code in grpc.StatusCode}
_OURS = 1 << 20
"""How far beyond the limit a message may be for its refusal to be ours; beyond that it is the library's."""
_LOOK = 0.1
"""Seconds between two looks at whether the library's server still runs."""
_AGAIN = 0.2
"""Seconds before a port that could not be had is tried again."""
_log = logging.getLogger(__name__)

Handle = Callable[[bytes, str], Awaitable[bytes]]
"""A message and the tenant it is of, into the response."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcOptions:
    """How the OTLP/gRPC port differs from its defaults."""

    metrics: Literal["refuse", "absent"] = "refuse"
    certificates: Certificates | None = None
    ready: Callable[[], bool] = lambda: True
    """What the health service says."""
    message_seconds: float = READ_SECONDS
    connection_seconds: float = 30 * 60.0
    """Age at which connections are ended in peace, give or take a tenth, so that senders spread over new servers."""


class GrpcReceiver:
    """The server on the OTLP/gRPC port."""

    def __init__(self, acceptor: Acceptor, options: GrpcOptions | None = None) -> None:
        self._acceptor = acceptor
        self._options = options or GrpcOptions()
        self._server: Any = None
        self._stopping = False
        self._watching: asyncio.Task[None] | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and give the port.

        Raises:
            PortTaken: another process has it.
        """
        refuse_taken(host, port, "REDFIRST_GRPC_PORT", "grpc_port")
        bound = await self._begin(host, port)
        self._watching = asyncio.create_task(self._serve_on(host, bound))
        return bound

    @property
    def alive(self) -> bool:
        """Whether the port is served, or will be in a moment."""
        return self._stopping or self._watching is None or not self._watching.done()

    async def _serve_on(self, host: str, port: int) -> None:
        """Begin anew when the library's server ends by itself: it does so over a path that is no UTF-8."""
        while not self._stopping:
            try:
                # it tells why it ended to those alone who ask now and then
                while await self._server.wait_for_termination(timeout=_LOOK):
                    pass
            except Exception as problem:  # noqa: BLE001 - whatever ended it, senders must find the port served
                _log.warning("the server on the gRPC port ended", extra=fields(because=str(problem)))
            if self._stopping:
                return
            self._acceptor.metrics.add("redfirst_grpc_restarts_total")
            await self._server.stop(None)
            while not self._stopping:
                try:
                    await self._begin(host, port)
                    break
                except (RuntimeError, OSError) as problem:  # the port is not free yet
                    _log.warning("the gRPC port cannot be served", extra=fields(because=str(problem)))
                    await asyncio.sleep(_AGAIN)

    async def _begin(self, host: str, port: int) -> int:
        most = self._acceptor.max_body_bytes
        server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", most + min(most, _OURS)),
                ("grpc.so_reuseport", 0),
                ("grpc.max_connection_age_ms", int(self._options.connection_seconds * 1000)),
                ("grpc.max_connection_age_grace_ms", 30 * 1000),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        services = [
            self._service("trace.v1.TraceService", self._export("traces")),
            self._service("logs.v1.LogsService", self._export("logs")),
            health_service(self._options.ready, lambda refusal: self._acceptor.refused(refusal, "grpc")),
        ]
        if self._options.metrics == "refuse":
            services.append(self._service("metrics.v1.MetricsService", self._metrics))
        server.add_generic_rpc_handlers(tuple(services))
        shown = f"{f'[{host}]' if ':' in host else host}:{port}"
        certificates = self._options.certificates
        bound: int = (
            server.add_insecure_port(shown)
            if certificates is None
            else server.add_secure_port(shown, certificates.credentials())
        )
        await server.start()
        self._server = server
        return bound

    async def stop(self, grace: float) -> None:
        """Take no more calls and let those under way end."""
        self._stopping = True
        if self._server is not None:
            await self._server.stop(grace)
        if self._watching is not None:
            await self._watching
            await self._server.stop(None)  # it may have been begun anew meanwhile

    def _service(self, name: str, handle: Handle) -> Any:
        async def call(_messages: Any, context: Any) -> bytes:
            try:
                return await self._answer(handle, context)
            except Refused as problem:
                refused = problem
            except Exception:  # noqa: BLE001 - told to the sender as ours, and logged
                _log.exception("a request over gRPC could not be answered")
                refused = Refused(Refusal.FAULT, "The service made a mistake with this request; try again.")
            self._acceptor.refused(refused.refusal, "grpc")
            return await _abort(context, refused)

        method = grpc.stream_unary_rpc_method_handler(call)
        return grpc.method_handlers_generic_handler(f"{_PACKAGE}.{name}", {"Export": method})

    async def _answer(self, handle: Handle, context: Any) -> bytes:
        metadata = {
            key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)
        }
        tenant = self._acceptor.tenants.of(metadata)
        with self._acceptor.share() as take:
            async with self._acceptor.places.one(self._options.message_seconds):
                body = await context.read()
            if body is grpc.aio.EOF:
                limit = self._acceptor.max_body_bytes
                raise Refused(
                    Refusal.NO_MESSAGE,
                    f"No message came: none was sent, or one of more than {limit} bytes (max_body_bytes).",
                )
            self._acceptor.refuse_larger(len(body))
            take(len(body))
            return await handle(body, tenant)

    def _export(self, signal: Signal) -> Handle:
        async def export(body: bytes, tenant: str) -> bytes:
            accepted = await self._acceptor.accept(
                body, signal, is_json=False, protocol="grpc", tenant=tenant
            )
            return partial(accepted, signal)

        return export

    async def _metrics(self, body: bytes, _tenant: str) -> bytes:
        response, count = await self._acceptor.aside(
            len(body), lambda: refuse_points(body, is_json=False), slow=True
        )
        self._acceptor.metrics.add("redfirst_rejected_total", count, reason="metrics_not_stored")
        return response


async def _abort(context: Any, problem: Refused) -> bytes:
    """End the call. The time to wait is in both places that senders look for it in."""
    status = problem.status()
    trailers: list[tuple[str, bytes]] = [("grpc-status-details-bin", status.SerializeToString())]
    if problem.refusal.again:
        from google.protobuf.duration_pb2 import Duration
        from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]

        retry = RetryInfo(retry_delay=Duration(seconds=RETRY_SECONDS))
        trailers.append(("google.rpc.retryinfo-bin", retry.SerializeToString()))
    await context.abort(_CODES[problem.refusal.grpc], status.message, tuple(trailers))
    return b""

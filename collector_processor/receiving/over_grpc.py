"""OTLP over gRPC: trace, log and metric services on one port, with raw bytes in and out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc  # type: ignore[import-untyped]
import grpc.aio  # type: ignore[import-untyped]

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.accepting import RETRY_SECONDS, Acceptor, Refused
from redfirst.collector_processor.receiving.metric_points import refuse_points
from redfirst.collector_processor.receiving.ports import refuse_taken

_PACKAGE = "opentelemetry.proto.collector"
_CODES = {code.value[0]: code for code in grpc.StatusCode}

Handler = Callable[[bytes, Any], Awaitable[bytes]]


class GrpcReceiver:
    """The server on the OTLP/gRPC port."""

    def __init__(self, acceptor: Acceptor) -> None:
        self._acceptor = acceptor
        self._server: Any = None

    async def start(self, host: str, port: int) -> int:
        """Listen, and give the port.

        Raises:
            PortTaken: another process has it.
        """
        refuse_taken(host, port, "REDFIRST_GRPC_PORT", "grpc_port")
        server = grpc.aio.server(
            options=[
                # up to twice the limit the refusal is ours, and counted; beyond that the library drops the call unseen
                ("grpc.max_receive_message_length", 2 * self._acceptor.max_body_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.max_connection_age_ms", 30 * 60 * 1000),
                ("grpc.max_connection_age_grace_ms", 30 * 1000),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
            ]
        )
        server.add_generic_rpc_handlers(
            (
                _service("trace.v1.TraceService", self._export("traces")),
                _service("logs.v1.LogsService", self._export("logs")),
                _service("metrics.v1.MetricsService", self._metrics),
            )
        )
        shown = f"[{host}]" if ":" in host else host
        bound: int = server.add_insecure_port(f"{shown}:{port}")
        await server.start()
        self._server = server
        return bound

    async def stop(self, grace: float) -> None:
        """Take no more calls and let those under way end."""
        if self._server is not None:
            await self._server.stop(grace)

    def _export(self, signal: Signal) -> Handler:
        async def export(body: bytes, context: Any) -> bytes:
            try:
                self._acceptor.refuse_larger(len(body))
                with self._acceptor.room() as take:
                    take(len(body))
                    accepted = await self._acceptor.accept(body, signal, is_json=False, protocol="grpc")
            except Refused as problem:
                self._acceptor.refused(problem.refusal, "grpc")
                return await _abort(context, problem)
            if not accepted.rejected and not accepted.message:
                return b""
            return _partial(signal, accepted.rejected, accepted.message)

        return export

    async def _metrics(self, body: bytes, context: Any) -> bytes:
        try:
            self._acceptor.refuse_larger(len(body))
            response, count = refuse_points(body, is_json=False)
        except Refused as problem:
            self._acceptor.refused(problem.refusal, "grpc")
            return await _abort(context, problem)
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


def _partial(signal: Signal, rejected: int, what: str) -> bytes:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    response: Any = ExportTraceServiceResponse() if signal == "traces" else ExportLogsServiceResponse()
    name = "rejected_spans" if signal == "traces" else "rejected_log_records"
    setattr(response.partial_success, name, rejected)
    response.partial_success.error_message = what
    return bytes(response.SerializeToString())


def _service(name: str, export: Handler) -> Any:
    method = grpc.unary_unary_rpc_method_handler(export)
    return grpc.method_handlers_generic_handler(f"{_PACKAGE}.{name}", {"Export": method})

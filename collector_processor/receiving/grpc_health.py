"""``grpc.health.v1.Health``: whether requests would be served well now, for whoever balances load over servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from enum import IntEnum
from typing import Any

import grpc  # type: ignore[import-untyped]

from redfirst.collector_processor.receiving.refusals import Refusal

_NAME = "grpc.health.v1.Health"
_LOOK = 0.5
"""Seconds between two looks for those who watch."""
MOST_WATCHERS = 64
"""Watches at once: each is a stream without end, and whoever reaches the port may begin one."""
_SERVICES = frozenset(
    {
        "",
        "opentelemetry.proto.collector.trace.v1.TraceService",
        "opentelemetry.proto.collector.logs.v1.LogsService",
    }
)


class ServingStatus(IntEnum):
    """``HealthCheckResponse.ServingStatus``."""

    SERVING = 1
    NOT_SERVING = 2
    SERVICE_UNKNOWN = 3


def health_service(
    ready: Callable[[], bool], refused: Callable[[Refusal], None], *, most: int = MOST_WATCHERS
) -> Any:
    """The service. Everybody may ask it, as probes have no tokens; ``most`` may watch it at once."""
    watchers = 0

    def status(service: str) -> ServingStatus:
        if service not in _SERVICES:
            return ServingStatus.SERVICE_UNKNOWN
        return ServingStatus.SERVING if ready() else ServingStatus.NOT_SERVING

    async def check(request: bytes, context: Any) -> bytes:
        found = status(_service_of(request))
        if found is ServingStatus.SERVICE_UNKNOWN:
            await context.abort(grpc.StatusCode.NOT_FOUND, "There is no such service here.")
        return _response(found)

    async def watch(request: bytes, context: Any) -> AsyncIterator[bytes]:
        nonlocal watchers
        if watchers >= most:
            refused(Refusal.WATCHERS)
            await context.abort(
                grpc.StatusCode.UNAVAILABLE, f"{most} watch already; ask with Check, or try again later."
            )
        watchers += 1
        try:
            service, said = _service_of(request), None
            while True:
                found = status(service)
                if found is not said:
                    said = found
                    yield _response(found)
                await asyncio.sleep(_LOOK)
        finally:
            watchers -= 1

    methods = {
        "Check": grpc.unary_unary_rpc_method_handler(check),
        "Watch": grpc.unary_stream_rpc_method_handler(watch),
    }
    return grpc.method_handlers_generic_handler(_NAME, methods)


def _service_of(request: bytes) -> str:
    # HealthCheckRequest is one string in field 1, and so is this
    from google.protobuf.message import DecodeError
    from google.protobuf.wrappers_pb2 import StringValue

    try:
        return StringValue.FromString(request).value
    except DecodeError:
        return "undecodable"


def _response(status: ServingStatus) -> bytes:
    # HealthCheckResponse is one enum in field 1, and so, on the wire, is this
    from google.protobuf.wrappers_pb2 import UInt32Value

    return UInt32Value(value=status).SerializeToString()

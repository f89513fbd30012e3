"""The response to a request of which something was not accepted, or that its sender should know something of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.receiving.accepting import Accepted

_NAMES: Mapping[Signal, str] = {"traces": "rejected_spans", "logs": "rejected_log_records"}


def partial(accepted: Accepted, signal: Signal) -> bytes:
    """The protobuf response; no bytes when all is well."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    if not accepted.rejected and not accepted.message:
        return b""
    response: Any = ExportTraceServiceResponse() if signal == "traces" else ExportLogsServiceResponse()
    setattr(response.partial_success, _NAMES[signal], accepted.rejected)
    response.partial_success.error_message = accepted.message
    return bytes(response.SerializeToString())

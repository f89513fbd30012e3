"""The answer to metrics, which redfirst does not keep."""

from __future__ import annotations

from typing import Any

import orjson

from redfirst.collector_processor.receiving.json_request import LARGE, fill, parse_json
from redfirst.collector_processor.receiving.mending import refuse_crumbs
from redfirst.collector_processor.receiving.refusals import Refusal, Refused
from redfirst.evaluators.errors import UnreadableInput

WHY = "Metrics are not stored here; send traces and logs, and metrics elsewhere."


def refuse_points(body: bytes, *, is_json: bool) -> tuple[bytes, int]:
    """The response with ``partial_success``, and how many data points it refuses.

    Raises:
        Refused: the body is no metrics request.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
        ExportMetricsServiceRequest,
        ExportMetricsServiceResponse,
    )

    try:
        if is_json:
            request = ExportMetricsServiceRequest()
            fill(request, parse_json(body))
        else:
            if len(body) > LARGE:
                refuse_crumbs(body)
            request = ExportMetricsServiceRequest.FromString(body)
    except (DecodeError, UnreadableInput, UnicodeError, RecursionError) as problem:
        raise Refused(Refusal.UNDECODABLE, f"The body is no metrics request: {problem}") from problem
    count = sum(
        _points(metric)
        for group in request.resource_metrics
        for scope in group.scope_metrics
        for metric in scope.metrics
    )
    if is_json:
        partial = {"rejectedDataPoints": str(count), "errorMessage": WHY}
        return (orjson.dumps({"partialSuccess": partial}) if count else b"{}"), count
    response = ExportMetricsServiceResponse()
    if count:
        response.partial_success.rejected_data_points = count
        response.partial_success.error_message = WHY
    return response.SerializeToString(), count


def _points(metric: Any) -> int:
    kind = metric.WhichOneof("data")
    return 0 if kind is None else len(getattr(metric, kind).data_points)

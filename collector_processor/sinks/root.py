"""The span that a verdict belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from redfirst.evaluators import semconv
from redfirst.evaluators.errors import RedfirstError


class NoSpans(RedfirstError):
    """A run has no spans to hang a verdict on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The span that a verdict belongs to, and what was around it."""

    span: Span
    resource: Resource
    resource_schema: str


def root_of(request: bytes) -> Root:
    """The root in an export request of one trace; without one, the earliest span whose parent is not there.

    Raises:
        NoSpans: there is none but our own.
    """
    found: list[Root] = []
    for group in ExportTraceServiceRequest.FromString(request).resource_spans:
        for scope in group.scope_spans:
            if scope.scope.name != semconv.VERDICT_SCOPE:
                found += [
                    Root(span=span, resource=group.resource, resource_schema=group.schema_url)
                    for span in scope.spans
                ]
    ids = {root.span.span_id for root in found}
    tops = [root for root in found if root.span.parent_span_id not in ids]
    if not tops:
        raise NoSpans("The run has no spans to hang its verdict on.")
    return min(tops, key=lambda root: (bool(root.span.parent_span_id), root.span.start_time_unix_nano))

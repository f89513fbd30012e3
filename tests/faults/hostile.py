"""Requests that no exporter sends, and what was acknowledged of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.service.conftest import Served, a_run, body_of

PROTOBUF = {"content_type": "application/x-protobuf"}
JSON = {"content_type": "application/json"}


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def part(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def with_raw_field(body: bytes, raw: bytes) -> bytes:
    """A request of one run, with these bytes behind the fields of its first span."""
    request = ExportTraceServiceRequest.FromString(body)
    first = request.resource_spans[0].scope_spans[0].spans[0].SerializeToString()
    del request.resource_spans[0].scope_spans[0].spans[0]
    return request.SerializeToString() + part(1, part(2, part(2, first + raw)))


def nested(depth: int) -> bytes:
    """An attribute whose value is an array in an array, so many levels deep."""
    value = part(1, b"x")
    for _ in range(depth):
        value = part(5, part(1, value))
    return part(9, part(1, b"deep") + part(2, value))


@dataclass
class Ledger:
    """What a service acknowledged."""

    served: Served
    acknowledged: set[tuple[str, str]] = field(default_factory=set)

    def post(self, body: bytes, **headers: str) -> int:
        """Send one request to the traces path."""
        status, _, _ = self.served.post("/v1/traces", body, **(headers or PROTOBUF))
        return status

    def post_spans(self, request: ExportTraceServiceRequest) -> int:
        """Send one request of which every span can be kept; they are expected when it is acknowledged."""
        status = self.post(request.SerializeToString())
        if status == 200:
            self.acknowledged |= {
                (span.trace_id.hex(), span.span_id.hex())
                for group in request.resource_spans
                for scope in group.scope_spans
                for span in scope.spans
            }
        return status

    def healthy(self) -> str:
        """A normal run is acknowledged; its trace id."""
        run = a_run()
        assert self.post_spans(ExportTraceServiceRequest.FromString(body_of(run))) == 200
        return f"{run[0].context.trace_id:032x}"


def one_run(*, spans: int = 3) -> tuple[str, ExportTraceServiceRequest]:
    """A normal run, to be changed; its trace id."""
    run = a_run(spans=spans)
    return f"{run[0].context.trace_id:032x}", ExportTraceServiceRequest.FromString(body_of(run))


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    return list(request.resource_spans[0].scope_spans[0].spans)

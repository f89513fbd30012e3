"""Requests that libraries do not write: byte by byte, or with everything in them."""

from __future__ import annotations

import base64
import json
import math

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.otlp.bodies import SPAN, TRACE, a_span, request

_MARK = "a?z"


def everything() -> ExportTraceServiceRequest:
    """Every field of the protocol and every kind of value."""
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add(schema_url="https://example.test/1")
    group.resource.attributes.add(key="service.name").value.string_value = "x"
    group.resource.dropped_attributes_count = 3
    entity = group.resource.entity_refs.add(type="service", schema_url="https://example.test/3")
    entity.id_keys.append("service.name")
    scope = group.scope_spans.add(schema_url="https://example.test/2")
    scope.scope.name = "s"
    scope.scope.attributes.add(key="k").value.bool_value = True
    span = scope.spans.add(
        trace_id=TRACE, span_id=SPAN, parent_span_id=TRACE[8:], trace_state="a=b", flags=0xFFFFFF01, name="chät",
        kind=3, start_time_unix_nano=2**63 + 1, end_time_unix_nano=2**63 + 2, dropped_attributes_count=1,
        dropped_events_count=2, dropped_links_count=4,
    )  # fmt: skip
    span.status.code = 2
    span.status.message = "no"
    values = span.attributes
    values.add(key="i").value.int_value = -(2**53) - 1
    values.add(key="d").value.double_value = math.inf
    values.add(key="b").value.bytes_value = b"\x00\xff"
    values.add(key="e").value.SetInParent()
    array = values.add(key="a").value.array_value.values
    array.add().string_value = "one"
    array.add().kvlist_value.values.add(key="n").value.int_value = 1
    event = span.events.add(name="ev", time_unix_nano=5, dropped_attributes_count=6)
    event.attributes.add(key="k").value.string_value = "v"
    span.links.add(trace_id=TRACE, span_id=SPAN, trace_state="c", flags=0x301, dropped_attributes_count=9)
    return made


def as_otlp_json(message: ExportTraceServiceRequest) -> bytes:
    """By the protocol's mapping: protobuf's own, with ids in hex and enums as integers."""

    def hexed(value: object, key: str = "") -> object:
        if isinstance(value, dict):
            return {name: hexed(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [hexed(item) for item in value]
        return base64.b64decode(str(value)).hex() if key in ("traceId", "spanId", "parentSpanId") else value

    return json.dumps(hexed(MessageToDict(message, use_integers_for_enums=True))).encode()


def with_bad_text(where: str) -> bytes:
    """A request of two spans in which one text is not UTF-8."""
    made = request(a_span(), a_span(b"neighbor"))
    group = made.resource_spans[0]
    scope = group.scope_spans[0]
    if where == "name":
        scope.spans[0].name = _MARK
    elif where == "attribute":
        scope.spans[0].attributes.add(key="k").value.kvlist_value.values.add(
            key="n"
        ).value.string_value = _MARK
    elif where == "resource":
        group.resource.attributes[0].value.string_value = _MARK
    elif where == "scope":
        scope.scope.name = _MARK
    else:
        scope.schema_url = _MARK
    return made.SerializeToString().replace(_MARK.encode(), b"a\xffz")


def nested(levels: int, kind: str) -> bytes:
    """A request of two spans, one with a value of so many levels, of which protobuf's libraries would write 47."""
    value = field(1, b"deep")
    for _ in range(levels):
        value = (
            field(5, field(1, value))
            if kind == "array"
            else field(6, field(1, field(1, b"k") + field(2, value)))
        )
    deep = a_span().SerializeToString() + field(9, field(1, b"k") + field(2, value))
    scope = field(2, deep) + field(2, a_span(b"neighbor").SerializeToString())
    return field(1, field(2, scope))


def field(number: int, value: bytes) -> bytes:
    """A field of bytes as it is written."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])

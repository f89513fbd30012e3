"""Spans as the bytes of an OTLP request, at a fraction of what it costs to build protobuf's messages first.

A span of ours on which nothing but attributes of plain types was written is put into bytes here; any other one, and what
spans share, by the exporters' own encoder. What a reader parses is the same: a test compares it field by field.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import struct
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

from redfirst.evaluators import semconv
from redfirst.instrumentation.fast_spans import FastSpan, PlainSpan
from redfirst.instrumentation.guard import guarded

_TIMES = struct.Struct("<BQBQ").pack
_DOUBLE = struct.Struct("<d").pack
_INTERNAL = b"\x30\x01"
_STATUS = {StatusCode.UNSET: b"\x7a\x00", StatusCode.OK: b"\x7a\x02\x18\x01"}
_LOCAL, _REMOTE = b"\x85\x01\x00\x01\x00\x00", b"\x85\x01\x00\x03\x00\x00"
"""The flags of a span: it is known whether its parent is remote; and it is."""
_SHORT = 48
_SMALL = 16384
_MOST_KNOWN = 2048
_VARYING = frozenset(
    {semconv.INPUT_VALUE, semconv.OUTPUT_VALUE, semconv.TOOL_CALL_ARGUMENTS, semconv.TOOL_CALL_RESULT}
)
"""Attributes that are not the same in every call, however short they are."""
_known: dict[tuple[str, str], bytes] = {}
"""Attributes with short texts, which are mostly the same in every call."""
_names: dict[str, bytes] = {}
"""Names of attributes and spans, with their lengths."""

Parts = list[bytes]
_PROBE: dict[str, Any] = {"text": "é" * 100, "same": "", "yes": True, "number": -1, "double": 0.5}


def request(spans: Sequence[ReadableSpan]) -> bytes:
    """An ExportTraceServiceRequest. A span that cannot be encoded is left out and counted, not the batch with it."""
    groups: dict[tuple[int, int], tuple[ReadableSpan, Parts]] = {}
    quick = _as_the_exporters()
    for span in spans:
        with guarded("encode a span"):
            plain = span.plain() if quick and isinstance(span, FastSpan) else None
            parts = None
            if plain is not None:
                with contextlib.suppress(UnicodeEncodeError):  # theirs leaves that attribute out, and says so
                    parts = _fields(plain)
            if parts is None:
                parts = [_by_the_exporters(span)]
            resource, scope = span.resource, span.instrumentation_scope
            place = id(resource), id(scope)
            if place not in groups:  # which holds them: no other one gets their numbers
                bare = ReadableSpan("", span.context, resource=resource, instrumentation_scope=scope)
                groups[place] = bare, []
            written = groups[place][1]
            size = sum(map(len, parts))
            if size < _SMALL:  # a large one is copied once, with all the others
                parts = [b"".join(parts)]
            written += (b"\x12", _varint(size), *parts)
    made: Parts = []
    for bare, written in groups.values():
        (of_resource,) = encode_spans([bare]).resource_spans
        (of_scope,) = of_resource.scope_spans
        inside = [*_field(b"\x0a", of_scope.scope.SerializeToString()), *written]
        inside += _field(b"\x1a", of_scope.schema_url.encode())
        whole = [*_field(b"\x0a", of_resource.resource.SerializeToString()), *_field(b"\x12", *inside)]
        whole += _field(b"\x1a", of_resource.schema_url.encode())
        made += _field(b"\x0a", *whole)
    return b"".join(made)


@functools.cache
def _as_the_exporters() -> bool:
    """Whether spans in our bytes are what this version of the exporters makes of them; looked at once."""
    for parent, code in itertools.product((None, False, True), _STATUS):
        above = None if parent is None else SpanContext(1, 3, is_remote=parent)
        plain = PlainSpan(
            SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)), above, "n", 5, 6, code, _PROBE
        )
        same = ReadableSpan(
            plain.name, plain.context, above, attributes=_PROBE, status=Status(code), start_time=5, end_time=6
        )
        found = _fields(plain)
        if found is None or Span.FromString(b"".join(found)) != Span.FromString(_by_the_exporters(same)):
            return False
    return True


def _by_the_exporters(span: ReadableSpan) -> bytes:
    return bytes(encode_spans([span]).resource_spans[0].scope_spans[0].spans[0].SerializeToString())


def _field(tag: bytes, *parts: bytes) -> Parts:
    return [tag, _varint(sum(map(len, parts))), *parts]


def _fields(span: PlainSpan) -> Parts | None:
    """The fields of a span; ``None`` where an attribute is of no plain type."""
    context, parent, name, start, end, status, attributes = span
    parts = [
        b"\x0a\x10" + context[0].to_bytes(16, "big") + b"\x12\x08" + context[1].to_bytes(8, "big"),
        b"" if parent is None else b"\x22\x08" + parent[1].to_bytes(8, "big"),
        b"\x2a",
        _names.get(name) or _name(name),
        _INTERNAL,
        _TIMES(0x39, start, 0x41, end),
    ]
    before: object = parts  # no attribute's value
    head = tail = b""
    for key, value in attributes.items():
        kind = type(value)
        short = False
        if kind is str:
            short = len(value) <= _SHORT and key not in _VARYING
            if short and (known := _known.get((key, value))) is not None:
                parts.append(known)
                continue
            if value is not before:  # both vocabularies hold the same text
                before, tail = value, value.encode()
                size = _varint(len(tail))
                head = b"\x12" + _varint(1 + len(size) + len(tail)) + b"\x0a" + size
        else:
            found = _scalar(kind, value)
            if found is None:
                return None
            before, tail, head = parts, b"", b"\x12" + _VARINTS[len(found)] + found
        named = _names.get(key) or _name(key)
        written = b"\x4a" + _varint(1 + len(named) + len(head) + len(tail)) + b"\x0a" + named + head
        if short:
            written += tail
            if len(_known) < _MOST_KNOWN:
                _known[key, value] = written
            parts.append(written)
        else:
            parts += (written, tail)
    parts += (_STATUS[status], _LOCAL if parent is None or not parent[2] else _REMOTE)
    return parts


def _scalar(kind: type, value: Any) -> bytes | None:
    if kind is bool:
        return b"\x10\x01" if value else b"\x10\x00"
    if kind is int and -(2**63) <= value < 2**63:
        return b"\x18" + _varint(value & (2**64 - 1))
    return b"\x21" + _DOUBLE(value) if kind is float else None


def _name(name: str) -> bytes:
    encoded = name.encode()
    made = _varint(len(encoded)) + encoded
    if len(_names) < _MOST_KNOWN:
        _names[name] = made
    return made


def _varint(number: int) -> bytes:
    if number < 16384:
        return _VARINTS[number]
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


_VARINTS = [bytes([n]) if n < 128 else bytes([n & 127 | 128, n >> 7]) for n in range(16384)]

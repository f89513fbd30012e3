"""Export requests cut by trace, without decoding the spans: slices stay the bytes that came."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.journal.format import Signal


@dataclass(frozen=True, slots=True)
class Slice:
    """One span or log record as it came, with the resource and scope that were around it."""

    resource: bytes
    scope: bytes
    resource_schema: str
    scope_schema: str
    item: bytes


Slices = Mapping[bytes, tuple[Slice, ...]]
"""By trace id; records without one are left out."""


def cut(body: bytes, signal: Signal) -> Slices:
    """The slices of a request that was accepted before."""
    trace_of = _trace_of_span if signal == "traces" else _trace_of_log
    found: dict[bytes, list[Slice]] = {}
    for group in _request_type().FromString(body).groups:
        for scope in group.scopes:
            for item in scope.items:
                trace_id = trace_of(item)
                if len(trace_id) == 16:
                    piece = Slice(group.resource, scope.scope, group.schema_url, scope.schema_url, item)
                    found.setdefault(trace_id, []).append(piece)
    return {trace_id: tuple(pieces) for trace_id, pieces in found.items()}


def joined(slices: Iterable[Slice]) -> bytes:
    """A request with these slices: each span and log record byte for byte as it came."""
    request = _request_type()()
    groups: dict[tuple[bytes, str], Any] = {}
    scopes: dict[tuple[bytes, str, bytes, str], Any] = {}
    for piece in slices:
        outer = (piece.resource, piece.resource_schema)
        if outer not in groups:
            groups[outer] = request.groups.add(resource=piece.resource, schema_url=piece.resource_schema)
        inner = (*outer, piece.scope, piece.scope_schema)
        if inner not in scopes:
            scopes[inner] = groups[outer].scopes.add(scope=piece.scope, schema_url=piece.scope_schema)
        scopes[inner].items.append(piece.item)
    return bytes(request.SerializeToString())


def _trace_of_span(item: bytes) -> bytes:
    # the whole item is looked at: of a field that is there twice the last counts, for everybody who decodes it
    trace_id: bytes = _span_type().FromString(item).trace_id
    return trace_id


def _trace_of_log(item: bytes) -> bytes:
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

    return LogRecord.FromString(item).trace_id


def _request_type() -> Any:
    """A request of either signal as it lies on the wire, with resource, scope and items as plain bytes."""
    return _types()["Request"]


def _span_type() -> Any:
    """A span of which only the trace id is decoded."""
    return _types()["Span"]


@functools.cache
def _types() -> Mapping[str, Any]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="redfirst/slices.proto", package="redfirst.slices", syntax="proto3"
    )

    def message(name: str, *fields: tuple[str, int, Any, bool, str]) -> None:
        added = file.message_type.add(name=name)
        for label, number, kind, many, of in fields:
            added.field.add(
                name=label,
                number=number,
                type=kind,
                label=field.LABEL_REPEATED if many else field.LABEL_OPTIONAL,
                type_name=of or None,
            )

    message(
        "Scope",
        ("scope", 1, field.TYPE_BYTES, False, ""),
        ("items", 2, field.TYPE_BYTES, True, ""),
        ("schema_url", 3, field.TYPE_STRING, False, ""),
    )
    message(
        "Group",
        ("resource", 1, field.TYPE_BYTES, False, ""),
        ("scopes", 2, field.TYPE_MESSAGE, True, ".redfirst.slices.Scope"),
        ("schema_url", 3, field.TYPE_STRING, False, ""),
    )
    message("Request", ("groups", 1, field.TYPE_MESSAGE, True, ".redfirst.slices.Group"))
    message("Span", ("trace_id", 1, field.TYPE_BYTES, False, ""))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"redfirst.slices.{name}"))
        for name in ("Request", "Span")
    }

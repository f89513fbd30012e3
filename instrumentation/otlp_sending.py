"""The OTLP exporter of the SDK, with our encoding: retries, compression, headers, TLS and time limits are its own."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from opentelemetry.exporter.otlp.proto.http import trace_exporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter

from redfirst.instrumentation.otlp_bytes import request

_ENCODER = "encode_spans"


class _Request:
    """What the exporter takes for protobuf's message."""

    def __init__(self, spans: Sequence[ReadableSpan]) -> None:
        self._spans = spans

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        return request(self._spans)

    SerializePartialToString = SerializeToString


def exporter(endpoint: str | None) -> SpanExporter:
    """One for an endpoint, or for that of the environment; the SDK's as it is, where it encodes in a way unknown here."""
    theirs = trace_exporter.OTLPSpanExporter
    method: Any = theirs.export
    if not isinstance(method, FunctionType) or method.__code__.co_names.count(_ENCODER) != 1:
        return theirs(endpoint=endpoint)
    # their method, which meets our encoder under the name of theirs
    ours = FunctionType(
        method.__code__,
        {**vars(trace_exporter), _ENCODER: _Request},
        method.__name__,
        method.__defaults__,
        method.__closure__,
    )
    made = type(
        theirs.__name__, (theirs,), {"export": ours, "__module__": __name__, "__doc__": theirs.__doc__}
    )
    return made(endpoint=endpoint)  # type: ignore[no-any-return]

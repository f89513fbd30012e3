"""Spans as a file of OTLP/JSON lines, one ExportTraceServiceRequest a line (OTLP file exporter spec).

Our own because the contributed JSON exporter pins a pre-release of the SDK that the OTLP exporters of
the same day refuse; the protobuf encoding itself is the exporters' own.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_IDS = ("traceId", "spanId", "parentSpanId")


class OtlpFileExporter(SpanExporter):
    """Appends every batch to a file as one line, flushed before ``export`` returns."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()  # a batch processor and a caller of export may meet here
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line; a full disk is the exporter's failure, reported to the processor."""
        line = orjson.dumps(to_otlp_json(spans)) + b"\n"
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
            except (OSError, ValueError):
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file; a later batch is a failure."""
        with self._lock:
            self._file.close()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002 - the interface's
        """Every line is flushed as it is written."""
        return True


def to_otlp_json(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """The spans as OTLP/JSON: ids in hex and enums as integers, which protobuf's own JSON is not."""
    message: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in message.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                _hex(span)
                for link in span.get("links", ()):
                    _hex(link)
    return message


def _hex(item: dict[str, Any]) -> None:
    for key in _IDS:
        if key in item:
            item[key] = base64.b64decode(item[key]).hex()

"""Spans as a file of OTLP/JSON lines, one ExportTraceServiceRequest a line (OTLP file exporter spec).

Our own because the contributed JSON exporter pins a pre-release of the SDK that the OTLP exporters of
the same day refuse; the protobuf encoding itself is the exporters' own.
"""

from __future__ import annotations

import base64
import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import orjson
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from redfirst.instrumentation.guard import guarded

try:
    import fcntl
except ImportError:  # Windows: writers of other processes are not kept apart there
    fcntl = None  # type: ignore[assignment]

_IDS = ("traceId", "spanId", "parentSpanId")


class OtlpFileExporter(SpanExporter):
    """Appends every batch to a file as one line, whole or not at all, before ``export`` returns.

    Several exporters, threads and processes may append to one file.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(path)
        self._lock = (
            threading.Lock()
        )  # guards _file: a batch processor and a caller of shutdown may meet here
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file: int | None = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write one line; a full disk is the exporter's failure, reported to the processor."""
        message = _encoded(spans)
        if message is None:
            return SpanExportResult.FAILURE
        line = orjson.dumps(message) + b"\n"
        with self._lock:
            if self._file is None:
                return SpanExportResult.FAILURE
            try:
                with _alone(self._file):
                    _append(self._file, line)
            except OSError:
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file; a later batch is a failure."""
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):
                    os.close(self._file)
            self._file = None

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002 - the interface's
        """Every line is written before ``export`` returns."""
        return True


@contextlib.contextmanager
def _alone(file: int) -> Iterator[None]:
    """Keep the other writers of the file waiting."""
    if fcntl is None:
        yield
        return
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def _append(file: int, line: bytes) -> None:
    """Append the line, or leave the file as it was: half a line would make the whole file unreadable."""
    size = os.fstat(file).st_size
    left = memoryview(line)
    try:
        while left:
            left = left[os.write(file, left) :]
    except OSError:
        if len(left) < len(line):
            with contextlib.suppress(OSError):
                os.ftruncate(file, size)
        raise


def _encoded(spans: Sequence[ReadableSpan]) -> dict[str, Any] | None:
    """The spans as OTLP/JSON. One that cannot be encoded is left out and counted, not the batch with it."""
    try:
        return to_otlp_json(spans)
    except Exception:  # noqa: BLE001 - another instrumentation's span may hold anything
        if len(spans) > 1:
            return _joined([part for span in spans if (part := _encoded([span])) is not None])
    with guarded("encode a span"):
        raise ValueError(f"the span {spans[0].name!r} cannot be written as OTLP")
    return None


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any] | None:
    resources = [resource for part in parts for resource in part["resourceSpans"]]
    return {"resourceSpans": resources} if resources else None


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

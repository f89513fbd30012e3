"""What exporters do with the spans they are given, seen from before their door."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from redfirst.instrumentation.counts import ExporterCounts
from redfirst.instrumentation.exporting import BoundedProcessor


class CountedExport:
    """Stands before the ``export`` of one exporter: passes everything on as it is, and counts what it says."""

    def __init__(self, exporter: SpanExporter, processor: SpanProcessor, offered: int) -> None:
        self.exporter, self.processor = exporter, processor
        self.offered_before = offered - (waiting(processor) or 0)
        """Sampled spans that had ended before this stood here, without those it will still be given."""
        self.closed_at: int | None = None
        """How many had been offered when it was shut down."""
        self._zero()
        self.told: Callable[[], None] | None = None
        self._export = exporter.export
        exporter.export = self  # type: ignore[method-assign]

    def _zero(self) -> None:
        self._lock = threading.Lock()  # guards the numbers: a flush and the worker may export at once
        self.taken = self.exported = self.failed = 0

    def reset(self) -> None:
        """Begin at zero, with a lock that nobody holds."""
        self._zero()
        self.offered_before = 0

    def __call__(self, spans: Sequence[ReadableSpan], *args: Any, **kwargs: Any) -> SpanExportResult:
        size = len(spans)
        with self._lock:
            self.taken += size
        result: SpanExportResult | None = SpanExportResult.FAILURE
        try:
            result = self._export(spans, *args, **kwargs)
        finally:
            with self._lock:
                if result is SpanExportResult.FAILURE:
                    self.failed += size
                else:
                    self.exported += size
            if self.told is not None:
                self.told()
        return result

    def counts(self, offered: Callable[[], int], *, replaced: bool) -> ExporterCounts:
        """The numbers now; ``replaced`` when an exporter was added after this one was shut down."""
        # A batch between the queue and the exporter is in neither for a moment: the smallest of three is right.
        seen = [self._missing(offered) for _ in range(3)]
        late = 0 if self.closed_at is None or replaced else max(0, offered() - self.closed_at)
        with self._lock:
            exported, failed, exporting = self.exported, self.failed, self.taken - self.exported - self.failed
        processor = self.processor
        whole = type(processor).on_end in (
            *(BatchSpanProcessor.on_end, SimpleSpanProcessor.on_end, BoundedProcessor.on_end),
        )
        ours = isinstance(processor, BoundedProcessor)
        too_large = processor.bytes_full if isinstance(processor, BoundedProcessor) else 0
        return ExporterCounts(
            **described(self.exporter),
            exported=exported,
            failed=failed,
            queue_full=max(0, min(seen) - too_large)
            if whole
            else None,  # one that picks among spans drops none
            bytes_full=too_large if ours else None,
            already_shutdown=late,
            exporting=exporting,
            waiting=waiting(self.processor),
            **_of_ours(processor),
        )

    def _missing(self, offered: Callable[[], int]) -> int:
        queued = waiting(self.processor)
        if queued is None:
            return 0
        until = offered() if self.closed_at is None else self.closed_at
        with self._lock:
            return until - self.offered_before - self.taken - queued


def _of_ours(processor: SpanProcessor) -> dict[str, Any]:
    if not isinstance(processor, BoundedProcessor):
        return {}
    last = processor.last_export
    return {
        "last_export_age": None if last is None else max(0.0, time.time() - last),
        "restarts": processor.restarts,
    }


def waiting(processor: Any) -> int | None:
    """How many spans wait in a batch processor (SDK 1.34 moved the queue); ``None`` where there is no queue."""
    queue = getattr(getattr(processor, "_batch_processor", processor), "_queue", None)
    queue = getattr(processor, "queue", None) if queue is None else queue
    return len(queue) if isinstance(queue, deque) else None


def uncounted(processor: Any) -> list[ExporterCounts]:
    """The exporter of a processor, where it shows one, without numbers but for its queue."""
    exporter = getattr(processor, "span_exporter", None)
    return [] if exporter is None else [ExporterCounts(**described(exporter), waiting=waiting(processor))]


def described(exporter: Any) -> dict[str, Any]:
    """What an exporter is and where it goes."""
    endpoint, path = getattr(exporter, "_endpoint", None), getattr(exporter, "path", None)
    return {
        "name": type(exporter).__name__,
        "endpoint": endpoint if isinstance(endpoint, str) else None,
        "protocol": "grpc" if "grpc" in type(exporter).__module__ else "http",
        "file": str(path) if isinstance(path, Path) else None,
    }

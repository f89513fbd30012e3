"""The way from an ended span to its exporter: a queue bounded in spans and bytes, and a worker that is watched over."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter

from redfirst.instrumentation.forking import reset_in_children

_log = logging.getLogger("redfirst.instrumentation")
_SPAN_BYTES = 1500
"""What a span takes beside its attribute values, measured on CPython 3.11."""
_SUPPRESSED = otel_context._SUPPRESS_INSTRUMENTATION_KEY  # noqa: SLF001 - an exporter's own requests are not traced


class BoundedProcessor(SpanProcessor):
    """Hands ended spans to an exporter in batches, from a thread of its own.

    It honours ``OTEL_BSP_*``; beside the number of queued spans ``REDFIRST_MAX_QUEUE_BYTES`` bounds their size (64 MiB).
    What does not fit is dropped and counted by reason. A worker that died is replaced by the next span, and a forked
    child begins with an empty queue and a worker of its own.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        reveal: Callable[[Sequence[ReadableSpan]], Sequence[ReadableSpan]] | None = None,
    ) -> None:
        self.span_exporter = exporter
        self._reveal = reveal
        self._most = _number("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
        self._batch = min(_number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), self._most)
        self._pause = _number("OTEL_BSP_SCHEDULE_DELAY", 5000) / 1000
        self._patience = _number("OTEL_BSP_EXPORT_TIMEOUT", 30000) / 1000
        self._most_bytes = _number("REDFIRST_MAX_QUEUE_BYTES", 64 * 1024 * 1024)
        self._closed = False
        self.restarts = 0
        """How often a worker had died and was replaced."""
        self.last_export: float | None = None
        """When an export last succeeded, by ``time.time``."""
        self._reset()
        reset_in_children(self._reset)

    def _reset(self) -> None:
        self.queue: deque[ReadableSpan] = deque()
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self.bytes_full = 0
        """Spans dropped because the queued ones were too large."""
        self._lock = threading.RLock()
        """Guards the queue, its sizes and the worker. A stream that is collected as garbage while a thread holds it
        ends its span in that thread."""
        self._due = threading.Event()
        self._taken = 0
        self._gone = threading.Condition(threading.Lock())
        self._done = 0
        self._worker: threading.Thread | None = None

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a sampled span."""
        if self._closed or span.context is None or not span.context.trace_flags.sampled:
            return
        data = span.attributes
        size = _SPAN_BYTES + (sum(map(sys.getsizeof, data.values())) if data else 0)
        with self._lock:
            waiting = len(self.queue)
            if waiting >= self._most:
                full = "spans"
            elif self._bytes + size > self._most_bytes and waiting:
                full = "bytes"
                self.bytes_full += 1
            else:
                full = None
                self.queue.append(span)
                self._sizes.append(size)
                self._bytes += size
            worker = self._worker
            if worker is None:
                self._start()
        if full is not None:
            self._say_full(full)
        elif waiting + 1 >= self._batch and not self._due.is_set():
            self._due.set()
            if worker is not None and not worker.is_alive():
                self._worker_died(worker)

    def _start(self) -> None:
        self._worker = threading.Thread(target=self._work, name="redfirst-export", daemon=True)
        self._worker.start()

    def _worker_died(self, worker: threading.Thread) -> None:
        with self._lock:
            if self._worker is worker:
                self.restarts += 1
                self._start()

    def _say_full(self, what: str) -> None:
        if what not in _said:
            _said.add(what)
            with contextlib.suppress(Exception):  # a host's log handler may raise
                _log.warning(
                    "The queue of spans is full (%s): the exporter %s does not keep up; later spans are dropped "
                    "and counted in span_counts()",
                    what,
                    type(self.span_exporter).__name__,
                )

    def _work(self) -> None:
        me = threading.current_thread()
        try:
            while not self._closed:
                self._due.wait(self._pause)
                self._due.clear()
                self._drain()
            self._drain()
        finally:
            with self._lock:
                if self._worker is me and not self._closed:
                    self._worker = None
                    self.restarts += 1

    def _drain(self) -> None:
        while self.queue:
            with self._lock:
                count = min(self._batch, len(self.queue))
                spans = [self.queue.popleft() for _ in range(count)]
                freed = sum([self._sizes.popleft() for _ in range(count)])
                self._bytes -= freed
                self._taken += count
            try:
                self._export(spans)
            finally:
                with self._gone:
                    self._done += count
                    self._gone.notify_all()

    def _export(self, spans: Sequence[ReadableSpan]) -> None:
        token = otel_context.attach(otel_context.set_value(_SUPPRESSED, value=True))
        try:
            if self._reveal is not None:
                spans = self._reveal(spans)
            if spans and self.span_exporter.export(spans).name == "SUCCESS":
                self.last_export = time.time()
        except Exception as problem:  # noqa: BLE001 - an exporter of any make: the next batch is tried all the same
            with contextlib.suppress(Exception):  # a host's log handler may raise
                _log.warning("The exporter %s raised", type(self.span_exporter).__name__, exc_info=problem)
        finally:
            otel_context.detach(token)

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Have everything exported that ended before this call; ``False`` when the time ran out."""
        with self._lock:
            wanted = self._taken + len(self.queue)
            if self.queue and self._worker is None and not self._closed:
                self._start()
        self._due.set()
        with self._gone:
            return self._gone.wait_for(lambda: self._done >= wanted, timeout_millis / 1000)

    def shutdown(self) -> None:
        """Export what is queued, within the time of ``OTEL_BSP_EXPORT_TIMEOUT``, and close the exporter."""
        if self._closed:
            return
        self._closed = True
        self._due.set()
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(self._patience)
        elif worker is None:
            self._drain()
        self.span_exporter.shutdown()


_said: set[str] = set()


def _number(name: str, otherwise: int) -> int:
    """A positive number of the environment; another value is no reason to stop a host."""
    given: Any = os.environ.get(name, "").strip()
    if given.isascii() and given.isdecimal() and 0 < int(given) < 2**53:
        return int(given)
    if given:
        _log.warning("%s=%s is not a positive number; %d is used", name, given[:40], otherwise)
    return otherwise

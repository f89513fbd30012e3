"""Counts spans beside the SDK's own work: as they start and end, at the sampler, and at the exporters."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from redfirst.instrumentation.counted_export import CountedExport, uncounted
from redfirst.instrumentation.counts import ExporterCounts, SpanCounts
from redfirst.instrumentation.forking import reset_in_children
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.provider import settings


class Tally:
    """A number that many threads raise by one without waiting for each other."""

    __slots__ = ("_lock", "_reads", "add")

    def __init__(self) -> None:
        self.add: Callable[[], int] = itertools.count().__next__  # one step of the interpreter: no lock
        self._lock = threading.Lock()
        self._reads = 0

    def read(self) -> int:
        """How often ``add`` was called. Reading advances the count, too, and is taken off again."""
        with self._lock:
            self._reads += 1
            return self.add() - (self._reads - 1)


class SpanCounter(SpanProcessor):
    """Counts what a provider does. ``whole`` reaches into exporters that are not ours, for an examination."""

    def __init__(self, provider: Any, *, made: bool, whole: bool = False) -> None:
        self.provider, self.made, self.whole = provider, made, whole
        self.exports: list[CountedExport] = []
        self.told: Callable[[], None] | None = None
        """Called after each event, where somebody examines the process."""
        self._seen = -1
        self.reset()
        if made:
            provider.sampler = CountedSampler(provider.sampler, self)
        reset_in_children(self.reset)

    def reset(self) -> None:
        """Begin at zero: a forked child has its own spans, and the SDK empties its queues."""
        self.started, self.ended, self.sampled, self.not_sampled = Tally(), Tally(), Tally(), Tally()
        for one in self.exports:
            one.reset()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002
        self.started.add()
        if self.told is not None:
            with guarded("find the exporters"):
                self.adopt()
            self.told()

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.add()
        if span.context is not None and span.context.trace_flags.sampled:
            self.sampled.add()
        if self.told is not None:
            self.told()

    def shutdown(self) -> None:
        for one in self.exports:
            self.closing(one.processor)

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002 - the interface's
        """There is nothing to flush."""
        return True

    def closing(self, processor: SpanProcessor) -> None:
        """This processor takes no spans from now on."""
        for one in self.exports:
            if one.processor is processor and one.closed_at is None:
                one.closed_at = self.sampled.read()

    def watch(self, processor: SpanProcessor, exporter: SpanExporter) -> None:
        """Count what this exporter does; one that takes no attribute stays uncounted."""
        if not hasattr(exporter, "__dict__"):
            return
        counted = CountedExport(exporter, processor, self.sampled.read())
        counted.told = self.told
        self.exports.append(counted)

    def watch_sampling(self, tracer: Any) -> None:
        """Count the decisions for the spans of one tracer; the provider of a host keeps its own sampler."""
        sampler = getattr(tracer, "sampler", None)
        if isinstance(sampler, Sampler) and not isinstance(sampler, CountedSampler):
            tracer.sampler = CountedSampler(sampler, self)

    def adopt(self) -> None:
        """In an examination: count every exporter that has come since the last look."""
        found = processors(self.provider) or ()
        if not self.whole or len(found) == self._seen:
            return
        self._seen = len(found)
        known = {id(one.exporter) for one in self.exports}
        for processor in found:
            exporter = getattr(processor, "span_exporter", None)
            if exporter is not None and id(exporter) not in known:
                self.watch(processor, exporter)

    def counts(self) -> SpanCounts:
        """The numbers now."""
        self.adopt()
        ended, started = (
            self.ended.read(),
            self.started.read(),
        )  # in this order: no span ends before it starts
        return SpanCounts(
            provider=_kind(self.provider),
            sampler=_sampler(self.provider),
            started=started,
            ended=ended,
            not_sampled=self.not_sampled.read(),
            every_sampler=self.made,
            exporters=self._exporters(),
            redaction=None if settings.redactor is None else "keyed" if settings.redactor.keyed else "random",
        )

    def _exporters(self) -> tuple[ExporterCounts, ...] | None:
        found = processors(self.provider)
        if found is None:
            return None
        by_processor = {id(one.processor): one for one in self.exports}
        counted: list[ExporterCounts] = []
        for processor in found:
            one = by_processor.get(id(processor))
            if one is None:
                counted += uncounted(processor)
                continue
            replaced = one.closed_at is not None and self.exports[-1].closed_at is None
            counted.append(one.counts(self.sampled.read, replaced=replaced))
        return tuple(counted)


class CountedSampler(Sampler):
    """Decides as the sampler it stands for, and counts the decisions against."""

    def __init__(self, sampler: Sampler, counter: SpanCounter) -> None:
        self._sampler, self._counter = sampler, counter

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        """See ``Sampler.should_sample``."""
        result = self._sampler.should_sample(*args, **kwargs)
        if result.decision is not Decision.RECORD_AND_SAMPLE:
            self._counter.not_sampled.add()
            if self._counter.told is not None:
                self._counter.told()
        return result

    def get_description(self) -> str:
        """That of the sampler it stands for."""
        return self._sampler.get_description()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)


def looked_at(provider: Any) -> SpanCounts:
    """What shows of a provider that nobody counts."""
    found = processors(provider)
    exporters = None if found is None else tuple(one for processor in found for one in uncounted(processor))
    return SpanCounts(provider=_kind(provider), sampler=_sampler(provider), exporters=exporters)


def processors(provider: Any) -> Sequence[SpanProcessor] | None:
    """The processors of an SDK provider; ``None`` where it is of another make."""
    found = getattr(getattr(provider, "_active_span_processor", None), "_span_processors", None)
    return cast("Sequence[SpanProcessor] | None", found)


def _kind(provider: object) -> str:
    return f"{type(provider).__module__}.{type(provider).__qualname__}"


def _sampler(provider: Any) -> str | None:
    sampler = getattr(provider, "sampler", None)
    return None if sampler is None else str(sampler.get_description())

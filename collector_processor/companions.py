"""The seam for what runs beside the pipeline: forwarders, sinks of verdicts, alerts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from redfirst.collector_processor.journal.reading import JournalCursor
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.storing.store import Store, StoreReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a companion may use. All of it is safe from any thread, except a ``SpanSource``: one per thread."""

    journal: JournalCursor
    store: Store
    reader: StoreReader
    """Reads without waiting for the writer."""
    spans: Callable[[], SpanSource]
    """Makes a reader of runs' spans: ``stored_spans(reader, source, run_id)``."""
    metrics: Metrics


class Companion(Protocol):
    """Works beside the pipeline, in threads of its own, and never holds it up.

    ``start`` is called once, when receivers are about to open; it returns at once. A forwarder reads the journal from
    ``store.cursor(name)`` on and saves its cursor after each delivery: retention keeps what the slowest cursor needs,
    and after a crash some records are delivered again. ``destinations`` are names: for each, every new version of a
    run gets one outbox row in the transaction that stores it. A companion takes its rows with ``outbox_due`` and ends
    each with ``outbox_done`` or ``outbox_later``; a row may be delivered twice, never not at all.

    ``stop`` is called once, after the last verdict is stored and before the store is closed; it returns within the
    seconds it is given, and what was not delivered is delivered after the next start. ``trouble`` is None, or what
    ``/readyz`` should not hide; a far end that is down is no trouble of ours.
    """

    destinations: tuple[str, ...]

    def start(self, parts: Parts) -> None: ...

    def stop(self, timeout: float) -> None: ...

    def trouble(self) -> str | None: ...

"""What became of the spans of this process, in numbers. Needs no SDK: a host that never configures can ask, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

REPORT_VARIABLE = "REDFIRST_SPAN_REPORT"
"""Names the folder that ``redfirst doctor -- COMMAND`` reads counts from; unset, none are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterCounts:
    """Spans by what one exporter and the queue before it did with them.

    The reasons are those of the semantic conventions for ``otel.sdk.processor.span.processed``: ``queue_full`` and
    ``already_shutdown``. ``None`` is a number that cannot be told from outside.
    """

    name: str
    """The exporter's class."""
    endpoint: str | None = field(default=None, repr=False)
    """Where it sends, as it stands there: it may hold a key. ``None``: not an OTLP endpoint."""
    protocol: str = "http"
    """Of an OTLP endpoint: ``grpc`` or ``http``."""
    file: str | None = None
    exported: int | None = None
    """The exporter said that it delivered them."""
    failed: int | None = None
    """The exporter said that it did not, or raised."""
    queue_full: int | None = None
    bytes_full: int | None = None
    """Dropped because the queued ones were too large together."""
    already_shutdown: int | None = None
    exporting: int | None = None
    """In an export that has not returned."""
    waiting: int | None = None
    """In the queue."""
    last_export_age: float | None = None
    """Seconds since an export last succeeded; ``None`` where none has, or where it cannot be told."""
    restarts: int | None = None
    """How often the exporting thread had died and was replaced."""

    @property
    def lost(self) -> int:
        """Spans that are known not to arrive."""
        return sum(n or 0 for n in (self.failed, self.queue_full, self.bytes_full, self.already_shutdown))


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCounts:
    """Spans of one tracer provider, since ``configure`` first saw it; ``None`` where it never did."""

    provider: str
    """The provider's class."""
    sampler: str | None = None
    started: int | None = None
    """Recording spans that began."""
    ended: int | None = None
    not_sampled: int | None = None
    """Spans that the sampler decided against: never recorded, or recorded and never exported."""
    every_sampler: bool = False
    """``not_sampled`` counts each tracer's spans; otherwise those of our decorators alone."""
    exporters: tuple[ExporterCounts, ...] | None = None
    """``None``: the provider does not show them."""
    redaction: str | None = None
    """``keyed`` by ``REDFIRST_REDACTION_KEY``, or ``random``: equal values are equal within the process only."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SpanCounts:
        """The counts that ``dataclasses.asdict`` took apart."""
        exporters = data["exporters"]
        return cls(
            **{
                **data,
                "exporters": None if exporters is None else tuple(ExporterCounts(**one) for one in exporters),
            }
        )

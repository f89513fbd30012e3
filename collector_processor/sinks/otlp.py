"""Any OTLP/HTTP backend: the verdict span, and log events where they are wanted. Neither can be taken back."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.collector_processor.sinks.scores import RunScores
from redfirst.collector_processor.sinks.sink import Send, Told, told_of
from redfirst.collector_processor.sinks.verdict_span import events_request, verdict_request


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSink:
    """Posts to ``/v1/traces`` and ``/v1/logs``."""

    events: bool = False
    mark_error: bool = False

    def told(self, about: RunScores) -> Told:
        """Nothing that could be withdrawn."""
        return told_of(about, names=())

    def tell(self, about: RunScores, before: Told, send: Send) -> None:
        """Send the span of this version; a backend that has it takes it for the same."""
        send("POST", "/v1/traces", verdict_request(about, mark_error=self.mark_error))
        if self.events:
            send("POST", "/v1/logs", events_request(about))

    def withdraw(self, before: Told, send: Send) -> None:
        """OTLP deletes nothing."""

"""Jaeger: ``GET /api/traces/ID``, the API behind its page. It has no credentials of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from redfirst.collector_processor.backends.backend import spans_of
from redfirst.collector_processor.backends.getting import JsonApi, NotThere
from redfirst.collector_processor.importing.jaeger import Jaeger as JaegerTraces
from redfirst.evaluators.span import Span

_TWO_DAYS = 2 * 24 * 3600 * 10**6


class Jaeger:
    """A Jaeger query service; ``project`` is the service whose traces are looked through."""

    name = "jaeger"

    def __init__(self, base: str, project: str | None, environment: Mapping[str, str]) -> None:  # noqa: ARG002
        self._api = JsonApi(base, name=self.name)
        self._service = project
        self.address = self._api.address

    def trace(self, trace_id: str) -> Sequence[Span]:
        spans = spans_of(JaegerTraces(), [self._api.get("api", "traces", trace_id)], trace_id)
        if not spans:
            raise NotThere(f"jaeger: {self.address} holds no trace {trace_id}.")
        return spans

    def newest(self, most: int, like: Sequence[Span] = ()) -> Iterator[str]:
        named = self._service or next(
            (str(span.resource["service.name"]) for span in like if "service.name" in span.resource), None
        )
        if named is None:
            services = self._api.get("api", "services").get("data") or []
            named = str(services[0]) if len(services) == 1 else None
        if named is None:
            return
        answer = self._api.get("api", "traces", service=named, limit=most, **_around(like))
        found = [item for item in answer.get("data") or [] if item.get("spans")]
        found.sort(key=lambda item: -min(span["startTime"] for span in item["spans"]))
        for item in found:
            yield str(item["traceID"]).rjust(32, "0")


def _around(like: Sequence[Span]) -> dict[str, int]:
    """Two days before these spans to two days after them, in microseconds; without any, the last two, as Jaeger has it."""
    if not like:
        return {}
    begin, end = min(span.start_ns for span in like), max(span.end_ns for span in like)
    return {"start": begin // 1000 - _TWO_DAYS, "end": end // 1000 + _TWO_DAYS}

"""What was put on spans."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.instrumentation import configure


class Spans:
    """The finished spans of one test."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> list[ReadableSpan]:
        """All, in the order they ended."""
        return list(self._exporter.get_finished_spans())

    def one(self, name: str | None = None) -> ReadableSpan:
        """The only one, or the only one of that name."""
        (found,) = [span for span in self.all() if name is None or span.name == name]
        return found

    def attributes(self, name: str | None = None) -> Mapping[str, Any]:
        """The attributes of ``one``."""
        return dict(self.one(name).attributes or {})

    def arguments(self, name: str | None = None) -> Any:
        """The recorded arguments of a tool call."""
        return json.loads(self.attributes(name)["gen_ai.tool.call.arguments"])

    def parent_of(self, name: str) -> str | None:
        """The name of the span's parent."""
        parent = self.one(name).parent
        ids = {span.context.span_id: span.name for span in self.all() if span.context}
        return None if parent is None else ids[parent.span_id]

    def parent_of_span(self, span: ReadableSpan) -> str | None:
        """The name of its parent."""
        ids = {one.context.span_id: one.name for one in self.all() if one.context}
        return None if span.parent is None else ids[span.parent.span_id]

    def clear(self) -> None:
        """Forget what was finished so far."""
        self._exporter.clear()


@pytest.fixture
def spans() -> Iterator[Spans]:
    """The spans of this test, through a plain SDK provider that ``configure`` was given."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)
    yield Spans(exporter)
    provider.shutdown()

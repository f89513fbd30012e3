"""A recorder of spans, and what a task changed in the shop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from bookshop.orders import Shop
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.trajectory import Trajectory
from redfirst.instrumentation import configure, shutdown
from redfirst.instrumentation.otlp_file import to_otlp_json

FOLLOWS = ("total", "credit", "payments", "customer_id", "reason")
"""State that follows from other state, which ``Task.changes`` leaves out."""


@pytest.fixture
def record() -> Iterator[Callable[[Callable[[], object]], Trajectory]]:
    """Runs a function and gives the one run that its spans tell."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)

    def run(function: Callable[[], object]) -> Trajectory:
        exporter.clear()
        function()
        (found,) = read_runs(decode_traces(orjson.dumps(to_otlp_json(exporter.get_finished_spans()))))
        return found

    yield run
    shutdown()


def _leaves(value: object, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, f"{path}.{key}".lstrip("."))
    else:
        yield path, str(value)


@pytest.fixture
def changes() -> Callable[[dict[str, Any], Shop], dict[str, str]]:
    """What differs between a snapshot and the shop now, by path."""

    def differences(before: dict[str, Any], shop: Shop) -> dict[str, str]:
        old = dict(_leaves(before))
        return {
            path: value
            for path, value in _leaves(shop.snapshot())
            if old.get(path) != value and path.rpartition(".")[2] not in FOLLOWS
        }

    return differences

"""A fault of our own instrumentation fails the test it happens in, and no test leaves a provider to the next."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from opentelemetry import trace

from redfirst.instrumentation import door, guard, provider

settings.register_profile("no clock", deadline=None)  # a busy machine fails no law
settings.load_profile("no clock")


@pytest.fixture(autouse=True)
def instrumentation(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Raise our faults; begin and end without providers, settings, faults or anybody at the door."""
    for name in os.environ:
        if name.startswith(("OTEL_", "OPENINFERENCE_")):
            monkeypatch.delenv(name)
    before, once = trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE
    trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE = None, type(once)()
    provider.reset()
    guard.forget()
    monkeypatch.setattr(guard, "raise_faults", True)
    yield
    provider.reset()
    guard.forget()
    door.occupy_process(None)
    stop = getattr(trace._TRACER_PROVIDER, "shutdown", None)
    if stop is not None:
        stop()
    trace._TRACER_PROVIDER, trace._TRACER_PROVIDER_SET_ONCE = before, once


@pytest.fixture
def faults_swallowed(instrumentation: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faults are counted and logged, as in production."""
    monkeypatch.setattr(guard, "raise_faults", False)

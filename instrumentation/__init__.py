"""Decorators that put a live agent's runs on OpenTelemetry spans, and the door replay comes through.

Importing this costs the OpenTelemetry API; the SDK is imported by ``configure``.
"""

from redfirst.instrumentation.decorators import agent, model, tool
from redfirst.instrumentation.guard import faults
from redfirst.instrumentation.provider import configure, force_flush, shutdown, span_counts
from redfirst.instrumentation.rule_guard import CallRefused, Guard
from redfirst.instrumentation.run import Run, current_run

__all__ = [
    "CallRefused",
    "Guard",
    "Run",
    "agent",
    "configure",
    "current_run",
    "faults",
    "force_flush",
    "model",
    "shutdown",
    "span_counts",
    "tool",
]

"""Decorators that put a live agent's runs on OpenTelemetry spans, and the door replay comes through.

Importing this costs the OpenTelemetry API; the SDK is imported by ``configure``.
"""

from redfirst.instrumentation.blocks import span
from redfirst.instrumentation.decorators import agent, chain, guardrail, handoff, model, retriever, tool
from redfirst.instrumentation.guard import faults
from redfirst.instrumentation.logs import TraceIds, trace_ids
from redfirst.instrumentation.propagation import environment, extract, in_context, inject, wrap_executor
from redfirst.instrumentation.provider import configure, force_flush, shutdown, span_counts
from redfirst.instrumentation.redaction import Pattern, Redaction
from redfirst.instrumentation.rule_guard import CallRefused, Guard
from redfirst.instrumentation.run import Run, current_run
from redfirst.instrumentation.session import session
from redfirst.instrumentation.web import TraceASGI, TraceWSGI, trace_header

__all__ = [
    "CallRefused",
    "Guard",
    "Pattern",
    "Redaction",
    "Run",
    "TraceASGI",
    "TraceIds",
    "TraceWSGI",
    "agent",
    "chain",
    "configure",
    "current_run",
    "environment",
    "extract",
    "faults",
    "force_flush",
    "guardrail",
    "handoff",
    "in_context",
    "inject",
    "model",
    "retriever",
    "session",
    "shutdown",
    "span",
    "span_counts",
    "tool",
    "trace_header",
    "trace_ids",
    "wrap_executor",
]

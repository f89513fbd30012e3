"""How our spans begin and end on the provider in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.redaction import Redactor

Decision = tuple[Any, int | None, bool]
"""What is known of the sampling of a span before it begins.

The context of its parent, where it has one; below which number the lower half of a sampled trace's id lies (``None``: the
sampler must be asked); whether its attributes need be written, which they need not when it is known not to be recorded.
"""
UNKNOWN: Decision = (None, None, True)


class Tracing:
    """Any provider, by the API alone."""

    def __init__(self, provider: trace.TracerProvider, tracer: trace.Tracer) -> None:
        self.provider, self.tracer = provider, tracer
        self.active = not isinstance(provider, trace.ProxyTracerProvider) and not isinstance(
            tracer, trace.NoOpTracer
        )
        """Whether spans may come of it at all."""
        self.parent: Context | None = None
        """What a span without a parent is begun in, where the process was started in a trace."""

    def current(self) -> bool:
        """Whether nothing has changed that this was made from."""
        return True

    def decide(self, context: Context) -> Decision:  # noqa: ARG002 - faster ones decide by it
        """What is known of the sampling of a span begun in the context."""
        return UNKNOWN

    def start(
        self,
        name: str,
        attributes: dict[str, Any],
        context: Context,
        decision: Decision,  # noqa: ARG002 - as above
        redactor: Redactor | None = None,  # noqa: ARG002 - as above
    ) -> trace.Span:
        """Begin a span."""
        return self.tracer.start_span(name, context, attributes=attributes)

    def inside(self, context: Context, span: trace.Span) -> Context:
        """The context with the span as its current one."""
        return trace.set_span_in_context(span, context)

    def finish(self, span: trace.Span, attributes: Mapping[str, Any], status: trace.Status) -> None:
        """Write what the call came to, and end the span."""
        if span.is_recording():
            span.set_attributes(attributes)
            span.set_status(status)
            span.end()


_RUNTIME = type(getattr(otel_context, "_RUNTIME_CONTEXT", None)).__name__
"""How the context is kept; ``OTEL_PYTHON_CONTEXT`` may name another way than context variables."""


def tracing_of(provider: trace.TracerProvider, tracer: trace.Tracer) -> Tracing:
    """The fastest way for this provider."""
    if type(tracer).__module__ == "opentelemetry.sdk.trace" and _RUNTIME == "ContextVarsRuntimeContext":
        with guarded("make spans the fast way"):
            from redfirst.instrumentation.fast_spans import FastTracing, usable

            if usable(provider, tracer):
                return FastTracing(provider, tracer)
    return Tracing(provider, tracer)

"""The run an agent is in, and what it can say about itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from opentelemetry import trace

from redfirst.evaluators import Stop, semconv
from redfirst.instrumentation import door
from redfirst.instrumentation.capture import bounded, plain, to_json
from redfirst.instrumentation.guard import guarded


class Run:
    """One run of an agent. Every method is safe anywhere: outside a run it does nothing.

    ``trace_id`` is 32 hex digits, for the ticket, the log line or the response header; empty when
    nothing is traced.
    """

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def trace_id(self) -> str:
        """The trace id of the run as 32 hex digits; empty when nothing is traced."""
        context = self._span.get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else ""

    def state(self, snapshot: Mapping[str, object]) -> None:
        """Report the state of the world: at the start, after writes and at the end.

        Give only what rules should see: it is stored with the trace.
        """
        standing = door.interceptor()
        if standing is not None:
            snapshot = standing.state(snapshot)
        with guarded("record a state snapshot"):
            text, _ = bounded(to_json(snapshot))
            self._span.add_event(semconv.STATE_EVENT, {semconv.STATE_VALUE: text})

    def event(self, name: str, **attributes: object) -> None:
        """Report a fact about the run, such as an approval by a person."""
        with guarded("record a run event"):
            text, _ = bounded(to_json(plain(attributes)))
            self._span.add_event(
                semconv.RUN_EVENT, {semconv.RUN_EVENT_NAME: name, semconv.RUN_EVENT_ATTRIBUTES: text}
            )

    def stop(self, reason: str, *, cap: int | None = None) -> None:
        """Report why the loop ended, where only the loop knows; otherwise it is inferred.

        ``reason`` is a value of ``Stop``; another word is recorded as it stands and read as unknown.
        """
        with guarded("record a stop reason"):
            known = reason in {stop.value for stop in Stop}
            self._span.set_attribute(semconv.STOP_REASON, reason if known else Stop.UNKNOWN.value)
            if cap is not None:
                self._span.set_attribute(semconv.STOP_CAP, cap)


_current: ContextVar[Run | None] = ContextVar("redfirst_run", default=None)


def current_run() -> Run:
    """The run of the innermost ``@agent`` function; a run over the current span when there is none."""
    return _current.get() or Run(trace.get_current_span())

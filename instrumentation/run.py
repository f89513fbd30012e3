"""The run an agent is in, and what it can say about itself."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.evaluators import semconv
from redfirst.instrumentation import door, memory
from redfirst.instrumentation.capture import bounded, clean, plain, to_json
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.provider import redactor


class Run:
    """One run of an agent. Every method is safe anywhere.

    Outside a run it speaks of the current span; where nothing is traced it does nothing.
    """

    __slots__ = ("_span",)

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def trace_id(self) -> str:
        """The trace id of the run as 32 hex digits; empty when nothing is traced.

        For the ticket, the log line or the response header.
        """
        context = self._span.get_span_context()
        return trace.format_trace_id(context.trace_id) if context.is_valid else ""

    def state(self, snapshot: Mapping[str, object]) -> None:
        """Report the state of the world: at the start, after writes and at the end.

        Give only what rules should see: it is stored with the trace.
        """
        standing = door.interceptor()
        if standing is not None:
            snapshot = standing.state(snapshot)
        if memory.Switch.on:
            with guarded("remember a state snapshot"):
                memory.note_state(plain(snapshot))
        with guarded("record a state snapshot"):
            self._add(semconv.STATE_EVENT, semconv.STATE_VALUE, snapshot)

    def event(self, name: str, /, **attributes: object) -> None:
        """Report a fact about the run, such as an approval by a person."""
        if memory.Switch.on:
            with guarded("remember a run event"):
                memory.note_event(str(name), plain(attributes))
        with guarded("record a run event"):
            self._add(
                semconv.RUN_EVENT,
                semconv.RUN_EVENT_ATTRIBUTES,
                attributes,
                {semconv.RUN_EVENT_NAME: _shown(str(name))},
            )

    def stop(self, reason: str, *, cap: int | None = None) -> None:
        """Report why the loop ended, where only the loop knows; otherwise it is inferred.

        ``reason`` is a value of ``Stop``; another word is recorded as it stands and read as unknown.
        """
        with guarded("record a stop reason"):
            word = reason.value if isinstance(reason, Enum) else reason
            self._span.set_attribute(semconv.STOP_REASON, _shown(str(word)))
            if cap is not None:
                self._span.set_attribute(semconv.STOP_CAP, cap)

    def feedback(self, value: object, *, comment: str | None = None, by: str = "user") -> None:
        """Report what somebody thought of the run: an event named ``feedback``."""
        more = {} if comment is None else {"comment": comment}
        self.event("feedback", value=value, by=by, **more)

    def _add(self, name: str, key: str, value: object, more: Mapping[str, Any] | None = None) -> None:
        if not self._span.is_recording():
            return
        hidden = redactor()
        text, by = (to_json(value), []) if hidden is None else hidden.json(value)
        text, note = bounded(text)
        attributes: dict[str, Any] = {**(more or {}), key: text}
        if note is not None:
            attributes[semconv.TRUNCATED] = to_json([{"attribute": key, **note}])
        if by:
            attributes[semconv.REDACTED] = to_json(
                [{"attribute": key, "by": sorted(set(by)), "count": len(by)}]
            )
        self._span.add_event(name, attributes)


def _shown(text: str) -> str:
    hidden = redactor()
    return clean(text if hidden is None else hidden.text(text)[0])


_RUN = otel_context.create_key("redfirst-run")


def current_run() -> Run:
    """The run of the innermost ``@agent`` function; a run over the current span when there is none."""
    found = otel_context.get_value(_RUN)
    return found if isinstance(found, Run) else Run(trace.get_current_span())


def with_run(run: Run, context: Context) -> Context:
    """The context with this run as its current one."""
    return otel_context.set_value(_RUN, run, context)

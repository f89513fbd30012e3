"""The run an agent is in, and what it can say about itself."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar, Token
from enum import Enum
from typing import Any

from opentelemetry import trace

from redfirst.evaluators import semconv
from redfirst.instrumentation import door, memory
from redfirst.instrumentation.capture import bounded, clean, plain, to_json
from redfirst.instrumentation.guard import guarded


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
                {semconv.RUN_EVENT_NAME: clean(str(name))},
            )

    def stop(self, reason: str, *, cap: int | None = None) -> None:
        """Report why the loop ended, where only the loop knows; otherwise it is inferred.

        ``reason`` is a value of ``Stop``; another word is recorded as it stands and read as unknown.
        """
        with guarded("record a stop reason"):
            word = reason.value if isinstance(reason, Enum) else reason
            self._span.set_attribute(semconv.STOP_REASON, clean(str(word)))
            if cap is not None:
                self._span.set_attribute(semconv.STOP_CAP, cap)

    def _add(self, name: str, key: str, value: object, more: Mapping[str, Any] | None = None) -> None:
        if not self._span.is_recording():
            return
        text, note = bounded(to_json(value))
        attributes: dict[str, Any] = {**(more or {}), key: text}
        if note is not None:
            attributes[semconv.TRUNCATED] = to_json([{"attribute": key, **note}])
        self._span.add_event(name, attributes)


_current: ContextVar[Run | None] = ContextVar("redfirst_run", default=None)


def current_run() -> Run:
    """The run of the innermost ``@agent`` function; a run over the current span when there is none."""
    return _current.get() or Run(trace.get_current_span())


def enter_run(run: Run) -> Token[Run | None]:
    """Make a run the current one, until its token is reset."""
    return _current.set(run)

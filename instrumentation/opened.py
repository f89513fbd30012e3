"""A span between its beginning and its end."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterable, Mapping
from contextvars import Token
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from redfirst.evaluators import semconv
from redfirst.instrumentation.capture import bounded, shown, to_json
from redfirst.instrumentation.conversation import Turn
from redfirst.instrumentation.memory import CallSoFar, Frame
from redfirst.instrumentation.run import Run, enter_run

Note = Mapping[str, object]


class Opened:
    """A span that was begun, with all it takes to end it once."""

    __slots__ = ("asked", "frame", "notes", "remembered", "span", "tokens")

    def __init__(self, span: trace.Span, notes: Iterable[Note] = ()) -> None:
        self.span = span
        self.tokens: list[Token[Any]] = []
        self.notes: list[Note] = [*notes]
        self.remembered: CallSoFar | None = None
        """The call in the memory of its run, where runs are remembered."""
        self.frame: Frame | None = None
        self.asked: tuple[int, tuple[Turn, ...] | None] | None = None
        """When a model was asked, and with which messages, where runs are remembered."""

    def enter(self, *, as_run: bool) -> None:
        """Make the span the current one, and the current run."""
        self.tokens.append(otel_context.attach(trace.set_span_in_context(self.span)))
        if as_run:
            self.tokens.append(enter_run(Run(self.span)))

    def leave(self) -> None:
        """Put back what was current before."""
        while self.tokens:
            _put_back(self.tokens.pop())

    def set(self, key: str, text: str) -> None:
        """Set a text, cut to the limit."""
        kept, note = bounded(text)
        if note is not None:
            self.notes.append({"attribute": key, **note})
        self.span.set_attribute(key, kept)

    def set_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Set each text under its key."""
        for key, text in pairs:
            self.set(key, text)

    def succeed(self) -> None:
        """The call returned."""
        self.span.set_status(Status(StatusCode.OK))

    def fail(self, error: BaseException) -> None:
        """The call raised. The status comes first: it must not hang on what the error says of itself."""
        kind = type(error)
        message, _ = bounded(shown(error, str))
        self.span.set_status(Status(StatusCode.ERROR, f"{kind.__name__}: {message}"))
        self.span.set_attribute(semconv.ERROR_TYPE, kind.__qualname__)
        trail, _ = bounded("".join(traceback.format_exception(error)))
        # not record_exception: it takes messages of any length, and calls __str__ unprotected
        self.span.add_event(
            "exception",
            {
                "exception.type": kind.__qualname__
                if kind.__module__ == "builtins"
                else f"{kind.__module__}.{kind.__qualname__}",
                "exception.message": message,
                "exception.stacktrace": trail,
            },
        )

    def end(self) -> None:
        """End the span, with the notes of what was cut."""
        try:
            if self.notes:
                self.span.set_attribute(semconv.TRUNCATED, to_json(self.notes))
        finally:
            self.span.end()


def _put_back(token: Token[Any]) -> None:
    if not isinstance(token, Token):  # a runtime context other than the standard one
        otel_context.detach(token)
        return
    # ValueError: closed from another context than it ran in, which is gone, and the value with it
    with contextlib.suppress(ValueError):
        token.var.reset(token)

"""A span between its beginning and its end."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextvars import Token
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Status, StatusCode

from redfirst.evaluators import semconv
from redfirst.instrumentation import capture
from redfirst.instrumentation.capture import bounded, clean, plain, shown, to_json, to_text
from redfirst.instrumentation.conversation import Turn
from redfirst.instrumentation.current import current, enter, leave, standard, variable
from redfirst.instrumentation.memory import CallSoFar, Frame

if TYPE_CHECKING:
    from redfirst.instrumentation.redaction import Redactor
    from redfirst.instrumentation.tracing import Tracing

Note = Mapping[str, object]
_OK = Status(StatusCode.OK)


class Opened:
    """A span that was begun, with all it takes to end it once."""

    span: trace.Span = trace.INVALID_SPAN
    token: Token[Context] | None = None
    redacted: dict[str, list[str]] | None = None
    """Of each attribute, the names of the rules that took something out of it."""
    remembered: CallSoFar | None = None
    """The call in the memory of its run, where runs are remembered."""
    frame: Frame | None = None
    asked: tuple[int, tuple[Turn, ...] | None] | None = None
    """When a model was asked, and with which messages, where runs are remembered."""
    items: list[Any] | None = None
    """What a stream has given so far."""
    abandon: Callable[..., None] | None = None
    """Ends the span of a stream that nobody will ask for more."""

    def __init__(
        self,
        tracing: Tracing,
        context: Context,
        redactor: Redactor | None,
        data: dict[str, Any],
        notes: list[Note],
    ) -> None:
        self.tracing, self.context, self.redactor = tracing, context, redactor
        self.decision = tracing.decide(context)
        """What is known of the sampling before the span begins."""
        self.data = data
        """Attributes to be written with the next step of the span: its beginning, or its end."""
        self.notes = notes

    # -- where it stands

    def named(self, name: str) -> str:
        """A name of the span as it may leave the process."""
        return name if self.redactor is None else self.redactor.name(name)

    def begin(self, name: str) -> None:
        """Start the span, under a name that may leave the process, with the attributes written so far."""
        data, self.data = self.data, {}
        self.span = self.tracing.start(name, data, self.context, self.decision, self.redactor)

    def enter(self) -> None:
        """Make the span the current one."""
        if variable is not None and otel_context._RUNTIME_CONTEXT is standard:  # noqa: SLF001 - see current.py
            self.token = variable.set(self.context)
        else:
            self.token = enter(self.context)

    def leave(self) -> None:
        """Put back what was current before."""
        token, self.token = self.token, None
        if token is None:
            return
        if variable is not None and type(token) is Token:
            try:
                variable.reset(token)
            except (
                ValueError
            ):  # closed from another context than it ran in, which is gone, and the value with it
                return
        else:
            leave(token)

    def step_out(self) -> None:
        """Leave until the next step; what the function itself made current is kept for it."""
        self.context = current()
        self.leave()

    # -- what it says

    def say(self, text: str, *keys: str) -> None:
        """Write a text under each of the keys, redacted and cut to the limit."""
        if self.redactor is not None:
            text, by = self.redactor.text(text)
            self._note(by, keys)
        self._put(text, keys)

    def say_json(self, value: object, *keys: str) -> None:
        """Write a value as JSON under each of the keys."""
        if self.redactor is None:
            text = to_json(value)
        else:
            text, by = self.redactor.json(value)
            if by:
                self._note(by, keys)
        if len(text) <= capture.MAX_CHARACTERS:  # JSON is clean
            for key in keys:
                self.data[key] = text
        else:
            self._put(text, keys)

    def say_value(self, value: object, key: str, mime_key: str) -> None:
        """Write a text as it is and anything else as JSON, and which of them it was."""
        if isinstance(value, str):
            self.say(value, key)
            self.data[mime_key] = semconv.TEXT_MIME
            return
        self.say_json(value, key)
        self.data[mime_key] = semconv.JSON_MIME

    def revealed(self, value: object, *keys: str) -> Any:
        """The value as JSON data that may leave the process; what was taken out is noted for the keys."""
        if self.redactor is None:
            return plain(value)
        data, by = self.redactor.data(plain(value))
        self._note(by, keys)
        return data

    def say_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Write each text, revealed already, under its key."""
        for key, text in pairs:
            self._put(text, (key,))

    def _put(self, text: str, keys: tuple[str, ...]) -> None:
        kept, note = bounded(text)
        for key in keys:
            self.data[key] = kept
            if note is not None:
                self.notes.append({"attribute": key, **note})

    def _note(self, by: list[str], keys: Iterable[str]) -> None:
        if by:
            self.redacted = {} if self.redacted is None else self.redacted
            for key in keys:
                self.redacted.setdefault(key, []).extend(by)

    def write(self) -> None:
        """Write what was said since the span began, before its end."""
        data, self.data = self.data, {}
        self.span.set_attributes(data)

    # -- its end

    def succeed(self) -> None:
        """The call returned: end the span."""
        if self.notes or self.redacted:
            self._note_all()
        self.tracing.finish(self.span, self.data, _OK)

    def fail(self, error: BaseException) -> None:
        """The call raised. The status comes first: it must not hang on what the error says of itself."""
        kind = type(error)
        message, trail = shown(error, str), "".join(traceback.format_exception(error))
        if self.redactor is not None:
            message, by = self.redactor.free_text(message)
            trail, by_too = self.redactor.free_text(trail)
            self._note([*by, *by_too], ("exception.message",))
        message, trail = bounded(message)[0], bounded(trail)[0]
        self.data[semconv.ERROR_TYPE] = clean(kind.__qualname__)
        with contextlib.suppress(Exception):  # an error's own attributes may raise
            from redfirst.instrumentation.infra import fault_of

            fault = fault_of(error)
            if fault is not None:
                self.data[semconv.ERROR_FAULT] = fault
        self._note_all()
        data, self.data = self.data, {}
        self.span.set_attributes(data)
        self.span.set_status(Status(StatusCode.ERROR, f"{kind.__name__}: {message}"))
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
        """End the span, if nothing has."""
        if self.span.is_recording():
            self.span.end()

    def _note_all(self) -> None:
        if self.notes:
            self.data[semconv.TRUNCATED] = to_json(self.notes)
        if self.redacted:
            self.data[semconv.REDACTED] = to_json(
                [
                    {"attribute": key, "by": sorted(set(by)), "count": len(by)}
                    for key, by in self.redacted.items()
                ]
            )


def text_of(value: object) -> str:
    """A text as it is, anything else as JSON."""
    return to_text(value)[0]

"""What every call writes on its span, and the moments of it. One kind of call is one subclass."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from opentelemetry import trace
from opentelemetry.context import Context

from redfirst.evaluators import semconv
from redfirst.evaluators.semconv import SESSION_ID, USER_ID
from redfirst.instrumentation import door, memory
from redfirst.instrumentation.arguments import Arguments, called
from redfirst.instrumentation.capture import bounded, clean, plain
from redfirst.instrumentation.current import current
from redfirst.instrumentation.guard import guarded, swallow
from redfirst.instrumentation.opened import Note, Opened
from redfirst.instrumentation.propagation import joined
from redfirst.instrumentation.provider import settings, tracing
from redfirst.instrumentation.redaction import Redactor
from redfirst.instrumentation.session import write_identity
from redfirst.instrumentation.web import CALLER, tell_caller

_MANY = 11
"""With so many items a dict has room for twenty-one."""
_MOST_ITEMS = 100_000
"""So many items of a stream are kept for its output; of a longer one the first."""


class Kind(ABC):
    """What one kind of span records of a call. One instance per decorated function."""

    door_kind: ClassVar[Literal["tool", "model"] | None] = None
    oi_kind: ClassVar[str]
    operation: ClassVar[str | None] = None
    is_run: ClassVar[bool] = False
    named: ClassVar[bool] = True
    """Whether the span is called the same in every call."""

    guarded: ClassVar[bool] = False
    """Whether rules are asked before each call."""

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.function = function
        self.name = clean(called(function) if name is None else name)
        self.arguments = Arguments(function)
        self.attributes: dict[str, Any] = {}
        self.notes: list[Note] = []
        self.title = self.name if self.operation is None else f"{self.operation} {self.name}"
        self.declare(OI_KIND=self.oi_kind, OPERATION=self.operation)
        self.revealed_by: object = self
        """The redactor, or ``None``; something else before the first call."""
        self.revealed, self.revealed_title = self.attributes, self.title  # before the first call
        """The attributes that are the same for every call, as they may leave the process."""

    def declare(self, **pairs: str | bool | int | None) -> None:
        """Take what is the same for every call, by name in ``semconv``; ``None`` is left out."""
        for name, value in pairs.items():
            key = getattr(semconv, name)
            if isinstance(value, str):
                value, note = bounded(value)
                if note is not None:
                    self.notes.append({"attribute": key, **note})
            if isinstance(value, str | bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
                self.attributes[key] = value  # anything else no exporter could write

    def reveal(self, redactor: Redactor | None) -> None:
        """Take another redaction into account."""
        revealed = {
            key: redactor.text(value)[0] if redactor is not None and isinstance(value, str) else value
            for key, value in self.attributes.items()
        }
        self.revealed = _with_room(revealed)
        self.revealed_title = self.title if redactor is None else redactor.name(self.title)
        self.revealed_by = redactor

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - a model's has the model in it
        """The span's name; the arguments are missing where they could not be read."""
        return self.title

    @abstractmethod
    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        """Write what the call was given."""
        ...

    @abstractmethod
    def on_result(self, opened: Opened, result: object) -> None:
        """Write what the call returned."""
        ...

    def on_items(self, opened: Opened, items: list[Any], result: object) -> None:
        """Write what a stream gave: its texts as one, anything else as the list of its items."""
        if result is not None:
            self.on_result(opened, result)
        elif items and all(isinstance(item, str) for item in items):
            self.on_result(opened, "".join(items))
        else:
            self.on_result(opened, items)

    # -- the moments of a call; every line stands in a guard, so that the host does not notice ours

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        """Begin a span and make it the current one."""
        opened: Opened | None = None
        arguments: dict[str, Any] | None = None
        try:
            way = tracing()
            if not (way.active or memory.Switch.on):
                return None
            arguments = self.arguments.name(args, kwargs)
        except Exception as error:
            swallow("read the arguments of a call", error)
            return None
        try:
            try:
                context = current()
                if way.parent is not None:
                    context = joined(way.parent, context)
                hidden = settings.redactor
                if hidden is not self.revealed_by:
                    self.reveal(hidden)
                made = Opened(way, context, hidden, self.revealed.copy(), [*self.notes])
                if arguments is not None and made.decision[2]:
                    try:
                        if SESSION_ID in context or USER_ID in context:
                            write_identity(made, context)
                        self.on_call(made, arguments)
                    except Exception as error:
                        swallow("record the arguments of a call", error)
                made.begin(self.revealed_title if self.named else made.named(self.span_name(arguments)))
                opened = made
                opened.context = way.inside(context, made.span)
                if self.is_run or CALLER in context:
                    opened.context = self.inside(opened.context, made.span)
                if memory.Switch.on:
                    with guarded("remember a call"):
                        self.remember(opened, arguments)
                opened.enter()
            except Exception as error:
                swallow("open a span", error)
        except BaseException as error:  # an interrupt that struck here: the call is not made
            self.fail(opened, error)
            raise
        return opened

    def inside(self, context: Context, span: trace.Span) -> Context:
        """The context that the function runs in."""
        tell_caller(context, span)
        return context

    def finish(self, opened: Opened | None, result: object) -> None:
        """The call returned: record that and end the span."""
        if opened is None:
            return
        if memory.Switch.on:
            with guarded("remember a result"):
                self.remember_result(opened, result)
        try:
            opened.leave()
        except Exception as error:
            swallow("leave a span", error)
        try:
            try:
                if type(opened.span) is not trace.NonRecordingSpan:
                    self.on_result(opened, result)
            except Exception as error:
                swallow("record a result", error)
            try:
                opened.succeed()
            except Exception as error:
                swallow("end a span", error)
                opened.end()
        except BaseException:  # an interrupt that struck here, or a fault that a test asked for
            opened.end()
            raise

    def finish_without(self, opened: Opened | None) -> None:
        """A block of code is over that said nothing of its result."""
        if opened is not None:
            self._close(opened, lambda: None)

    def finish_stream(self, opened: Opened | None, result: object, *, early: bool = False) -> None:
        """A stream is over, or nobody will ask it for more: record what it gave and end the span."""
        if opened is None:
            return
        if opened.abandon is None:  # it has ended already, and a step was begun since
            with guarded("leave a span"):
                opened.leave()
            return
        opened.abandon = None
        items, opened.items = opened.items or [], None
        if memory.Switch.on:
            with guarded("remember a result"):
                self.remember_result(opened, items if result is None else result)

        def written() -> None:
            if early:
                opened.data[semconv.STREAM_CLOSED_EARLY] = True
            self.on_items(opened, items, result)

        self._close(opened, written)

    def _close(self, opened: Opened, write: Callable[[], None]) -> None:
        with guarded("leave a span"):
            opened.leave()
        try:
            with guarded("record a result"):
                if opened.span.is_recording():
                    write()
            with guarded("end a span"):
                opened.succeed()
        finally:
            with guarded("end a span"):
                opened.end()

    def fail(self, opened: Opened | None, error: BaseException) -> None:
        """The call raised: record that and end the span."""
        if opened is None:
            return
        opened.abandon = None
        if opened.remembered is not None:
            with guarded("remember an exception"):
                memory.finish(opened.remembered, error=error)
        with guarded("leave a span"):
            opened.leave()
        try:
            with guarded("record an exception"):
                if opened.span.is_recording():
                    opened.fail(error)
        finally:
            with guarded("end a span"):
                opened.end()

    # -- the steps of a stream

    def pause(self, opened: Opened | None, *items: Any) -> None:
        """The function gives something away: leave the span until it is asked for more."""
        if opened is None:
            return
        with guarded("leave a span"):
            opened.step_out()
        with guarded("keep an item of a stream"):
            if items and opened.span.is_recording():
                opened.items = [] if opened.items is None else opened.items
                if len(opened.items) < _MOST_ITEMS:
                    opened.items += items

    def resume(self, opened: Opened | None) -> None:
        """The function goes on."""
        if opened is not None and opened.token is None:
            with guarded("enter a span"):
                opened.enter()

    def letting_through(self) -> contextlib.AbstractContextManager[None]:
        """What a step of the function runs in: a model's own client comes to the door no second time."""
        if self.door_kind != "model" or door.interceptor() is None:
            return contextlib.nullcontext()
        return door.let_through()

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:  # noqa: B027 - few kinds do
        """Note in the memory of the run that the call begins."""

    def remember_result(self, opened: Opened, result: object) -> None:  # noqa: B027 - few kinds do
        """Note in the memory of the run what the call returned."""

    def offer(self, opened: Opened | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> door.Answer:  # noqa: ARG002 - a guard's
        """Ask whoever stands in the door; in production nobody does. What it raises is for the caller."""
        if self.door_kind is None:
            return door.Door.PASS_THROUGH
        standing = door.interceptor()
        if standing is None:
            return door.Door.PASS_THROUGH
        arguments = self.arguments.name(args, kwargs)
        if arguments is None:  # nothing real can happen: the call itself raises TypeError
            return door.Door.PASS_THROUGH
        return standing.call(
            door.DoorCall(
                kind=self.door_kind, name=self.name, arguments=plain(arguments), function=self.function
            )
        )


def _with_room(attributes: dict[str, Any]) -> dict[str, Any]:
    """A dict whose copies need not be made larger for what a call adds to them: CPython keeps the room in a copy."""
    more = [f"room {number}" for number in range(_MANY - len(attributes))]
    made = {**attributes, **dict.fromkeys(more)}
    for _ in more:
        made.popitem()
    return made

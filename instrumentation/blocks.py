"""A span over a block of code, for what is no function of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal, Self, get_args

from redfirst.evaluators import semconv
from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation import door
from redfirst.instrumentation.capture import clean
from redfirst.instrumentation.guard import count, guarded
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.model_call import Model
from redfirst.instrumentation.opened import Opened
from redfirst.instrumentation.steps import Agent, Chain, Guardrail, Handoff, Retriever
from redfirst.instrumentation.tool_call import Tool

KindName = Literal["agent", "model", "tool", "retriever", "guardrail", "handoff", "chain"]
_KINDS: Mapping[str, type[Kind]] = {
    "agent": Agent,
    "model": Model,
    "tool": Tool,
    "retriever": Retriever,
    "guardrail": Guardrail,
    "handoff": Handoff,
    "chain": Chain,
}


def _nothing() -> None:
    """Stands for the function that a block is not."""


class span:  # noqa: N801 - reads as a statement: with span("retriever", "search")
    """Record a block of code: ``with span("retriever", "search") as found: found.input(q); found.output(documents)``.

    A block cannot be answered by a replay; a tool or a model that a replay must not call is a decorated function.

    Args:
        kind: one of agent, model, tool, retriever, guardrail, handoff, chain.
        name: the name that the decorator would take from the function.

    Raises:
        ConfigurationError: the kind is none of these.
    """

    def __init__(self, kind: KindName, name: str, **declared: Any) -> None:
        if kind not in _KINDS:
            raise ConfigurationError(
                f"The kind of a span is one of {', '.join(get_args(KindName))}, not {kind!r}."
            )
        self._kind: Kind | None = None
        with guarded("describe a block of code"):
            self._kind = _KINDS[kind](_nothing, name, **declared)
            self._kind.attributes.pop(semconv.TOOL_DESCRIPTION, None)
            self._kind.attributes.pop(semconv.OI_TOOL_DESCRIPTION, None)
        self._opened: Opened | None = None
        self._result: object = None
        self._has_result = False

    def __enter__(self) -> Self:
        if self._kind is not None:
            if self._kind.door_kind is not None and door.interceptor() is not None:
                count("replay a block of code")  # it acts for real, so the replay must be able to say so
            self._opened = self._kind.open((), {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kind is None:
            return
        if error is not None:
            self._kind.fail(self._opened, error)
        elif self._has_result:
            self._kind.finish(self._opened, self._result)
        else:
            self._kind.finish_without(self._opened)

    def input(self, value: object) -> None:
        """Say what the block was given: for a tool or a model a mapping of arguments by name."""
        with guarded("record the arguments of a call"):
            if self._kind is not None and self._opened is not None and self._opened.span.is_recording():
                given = value if isinstance(value, Mapping) else {"input": value}
                self._kind.on_call(self._opened, given)
                self._opened.write()

    def output(self, value: object) -> None:
        """Say what the block came to."""
        self._result, self._has_result = value, True

    def set(self, name: str, value: str | bool | float) -> None:
        """Set an attribute of your own."""
        with guarded("set an attribute"):
            if self._opened is not None:
                if isinstance(value, str):
                    self._opened.say(value, clean(name))
                else:
                    self._opened.data[clean(name)] = value
                self._opened.write()

"""The one door through which replay reaches a wrapped call.

In production the door costs one ``ContextVar`` read. In replay an interceptor stands in it: every
``@tool`` and ``@model`` call and every ``run.state`` is offered to it before anything real happens.
The default of the context variable is one holder for the whole process, so that a thread started
with an empty context meets the same interceptor: a replay can never slip past it into a live tool.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorCall:
    """A call about to be made."""

    kind: Literal["tool", "model"]
    name: str
    arguments: Mapping[str, object]
    """By parameter name, as plain JSON values."""
    function: Callable[..., object]
    """The wrapped function: its return annotation says how to rebuild a recorded value."""


@dataclass(frozen=True, slots=True)
class Played:
    """The call was answered from a recording with this value."""

    value: object
    failed: bool = False
    """Whether the value says of itself that it is an error, where a framework makes answers of exceptions."""
    turns: int = 0
    """How many turns of its event loop an asynchronous call waits for it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call was answered from a recording with this exception."""

    error: Exception
    own: bool = False
    """Whether a tool says so of itself, where a framework has a way for tools to say it that is no mere exception."""
    turns: int = 0
    """How many turns of its event loop an asynchronous call waits for it."""


class Door(Enum):
    """The other answer an interceptor may give."""

    PASS_THROUGH = "make the real call"  # noqa: S105 - an answer, not a secret


Answer = Played | Failed | Door


def given(answer: Answer) -> Any:
    """The value of an answer from a recording, or its exception raised."""
    if isinstance(answer, Failed):
        raise answer.error
    if isinstance(answer, Played):
        return answer.value
    raise AssertionError(answer)


async def arrived(answer: Answer) -> Any:
    """The same for an asynchronous call: concurrent ones may be answered in another order than they were made in."""
    if isinstance(answer, Played | Failed) and answer.turns:
        import asyncio

        for _ in range(answer.turns):
            await asyncio.sleep(0)
    return given(answer)


class Interceptor(Protocol):
    """Stands in the door during a replay.

    Called from any thread and task, before the wrapped function. Whatever it raises reaches the
    caller; a ``BaseException`` ends the run. The function is called only on ``Door.PASS_THROUGH``.
    """

    def call(self, call: DoorCall) -> Answer:
        """Answer a tool or model call."""
        ...

    def ran(self, call: DoorCall) -> None:
        """Hear of a call that the program makes itself, as of an agent that is another's tool: what it asks comes here."""
        ...

    def refused(self, call: DoorCall) -> None:
        """Hear of a call that was not made: a framework found that its arguments do not fit the tool."""
        ...

    def state(self, snapshot: Mapping[str, object]) -> Mapping[str, object]:
        """Replace the snapshot of a real world by that of the replayed one."""
        ...


class _Holder:
    __slots__ = ("interceptor",)

    def __init__(self, interceptor: Interceptor | None = None) -> None:
        self.interceptor = interceptor


ANSWERED = "__redfirst_door__"
"""Set on a function that comes to the door itself, so that a framework's adapter leaves its call alone."""

_process = _Holder()
_passing: ContextVar[bool] = ContextVar("redfirst_door_passing", default=False)
_door: ContextVar[_Holder] = ContextVar("redfirst_door", default=_process)
holder: Callable[[], _Holder] = _door.get
"""Who stands in the door of the current context, for the calls that have no time to ask by name."""


def interceptor() -> Interceptor | None:
    """Who stands in the door of the current context; ``None`` in production."""
    return _door.get().interceptor


def passing() -> bool:
    """Whether a model call that was let through is being made here."""
    return _passing.get()


@contextmanager
def let_through() -> Iterator[None]:
    """Make a model call that was let through: the client it is made by comes to the door no second time."""
    token = _passing.set(True)
    try:
        yield
    finally:
        _passing.reset(token)


def occupy_process(who: Interceptor | None) -> None:
    """Put an interceptor into the door of every context and thread of this process."""
    _process.interceptor = who


@contextmanager
def occupied(who: Interceptor) -> Iterator[None]:
    """Put an interceptor into the door of the current context."""
    token = _door.set(_Holder(who))
    try:
        yield
    finally:
        _door.reset(token)

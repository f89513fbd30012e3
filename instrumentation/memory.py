"""What a run has done so far, kept in the process for the rules that are asked before a write.

Kept only where a guard was made, and apart from spans: a guard must see a run that is not sampled, and values
that are redacted on export. It is gone when the outermost agent returns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from redfirst.instrumentation.capture import plain
from redfirst.instrumentation.conversation import Reply, Turn

NOTHING = object()
"""The result of a call that has none yet, or none at all."""


class Switch:
    """Whether runs are remembered: from the first guard of the process on."""

    on: bool = False


@dataclass(slots=True)
class CallSoFar:
    """One attempt of a tool call."""

    name: str
    arguments: Mapping[str, object] | None
    start_ns: int
    agent: str | None
    agents: tuple[str, ...]
    turn: int | None
    effect: str | None = None
    idempotent: bool | None = None
    poll: bool = False
    end_ns: int = 0
    result: object = NOTHING
    error: BaseException | None = None
    refused: str | None = None
    """Why a guard did not let it run."""


@dataclass(slots=True)
class ModelTurn:
    """One answered model call: when it was asked, and the names of the calls it wants that were not made yet."""

    start_ns: int
    agent: str | None
    wanted: list[str]
    messages: tuple[Turn, ...] | None


@dataclass(slots=True)
class Memory:
    """A run so far."""

    request: str | None = None
    calls: list[CallSoFar] = field(default_factory=list)
    turns: list[ModelTurn] = field(default_factory=list)
    states: list[tuple[int, Mapping[str, object]]] = field(default_factory=list)
    events: list[tuple[int, str, Mapping[str, object]]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Tools of one run may run in several threads."""


@dataclass(slots=True)
class Frame:
    """An agent at work: its run, who called it, and the model turn it is in."""

    memory: Memory
    agent: str | None
    agents: tuple[str, ...]
    turn: int | None = None

    def begin(self, name: str, arguments: Mapping[str, object] | None, **declared: Any) -> CallSoFar:
        """Note that a tool is about to be called; the turn is the one in which the model asked for it."""
        with self.memory.lock:
            turn = None
            if self.turn is not None and name in self.memory.turns[self.turn].wanted:
                turn = self.turn
                self.memory.turns[turn].wanted.remove(name)
            call = CallSoFar(name, arguments, time.time_ns(), self.agent, self.agents, turn, **declared)
            self.memory.calls.append(call)
        return call

    def answered(self, start_ns: int, messages: tuple[Turn, ...] | None, reply: Reply | None) -> None:
        """Note what a model answered."""
        wanted = [call.name for call in reply.turn.calls] if reply is not None else []
        with self.memory.lock:
            self.memory.turns.append(ModelTurn(start_ns, self.agent, wanted, messages))
            self.turn = len(self.memory.turns) - 1


_FRAME = otel_context.create_key("redfirst-frame")


def current() -> Frame | None:
    """The frame of the innermost agent; ``None`` outside of any, or where runs are not remembered."""
    found = otel_context.get_value(_FRAME)
    return found if isinstance(found, Frame) else None


def enter(context: Context, agent: str, request: str | None) -> Context:
    """The context of an agent at work, in the run of the agent that called it or in a run of its own."""
    above = context.get(_FRAME)
    known = above if isinstance(above, Frame) else None
    memory = Memory(request) if known is None else known.memory
    agents = (*(known.agents if known else ()), f"{id(memory):x}-{time.time_ns()}")
    return otel_context.set_value(_FRAME, Frame(memory, agent, agents), context)


def note_state(snapshot: Mapping[str, object]) -> None:
    """Note a state that the agent reported."""
    frame = current()
    if frame is not None:
        with frame.memory.lock:
            frame.memory.states.append((time.time_ns(), snapshot))


def note_event(name: str, attributes: Mapping[str, object]) -> None:
    """Note an event that the agent reported."""
    frame = current()
    if frame is not None:
        with frame.memory.lock:
            frame.memory.events.append((time.time_ns(), name, attributes))


def finish(call: CallSoFar, *, result: object = NOTHING, error: BaseException | None = None) -> None:
    """Note how a call ended."""
    call.result = NOTHING if result is NOTHING else plain(result)
    call.error = error
    call.end_ns = time.time_ns()

"""The replayed world an agent runs in: it stands in the door and answers every call.

It also writes down what happened, in an order that does not depend on how concurrent calls were
scheduled: the calls between two model turns are a set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from redfirst.evaluators.canonical import canonical_text, digest, same
from redfirst.instrumentation.capture import plain
from redfirst.instrumentation.conversation import read_reply
from redfirst.instrumentation.door import Answer, Door, DoorCall, Failed, Played
from redfirst.replay.injection import Injection, ToolFailed
from redfirst.replay.pointers import assign, remove
from redfirst.replay.recorded_errors import recorded_error
from redfirst.replay.scheduling import Schedule
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import ModelTape, ModelTurn, Response, ToolTape, write_key
from redfirst.replay.world import World

Json = Any


class Environment:
    """An ``Interceptor`` over one scenario. Thread-safe: one lock guards the tape, the state and the events."""

    def __init__(
        self,
        *,
        tools: ToolTape,
        model: ModelTape | None,
        state: Mapping[str, Json] | None,
        world: World,
        live_off_tape: bool = False,
        injection: Injection | None = None,
        live_reads: bool = False,
        schedule: Schedule | None = None,
        program: str = "",
    ) -> None:
        """``model=None`` lets the model answer live; ``state=None`` when the incident reported none.

        ``live_off_tape`` lets it answer live where its tape holds no turn for the request; ``injection`` is a
        fault that one tool call is given in place of its answer; ``live_reads`` lets tools that are recorded as
        reads answer live, and no others. ``schedule`` says in which order concurrent calls are answered; as they
        come by default. ``program`` is the agent's module.
        """
        self._tools = tools
        self._model = model
        self._live_off_tape = live_off_tape
        self._injection = injection
        self._live_reads = live_reads
        self._state = deepcopy(dict(state)) if state is not None else None
        self._world = world
        self._schedule = schedule or Schedule(vary=False)
        self._program = program
        self._lock = threading.RLock()
        self._writes: list[str] = []
        self._said: str | None = None  # the last recorded turn's answer, where it asked for nothing more
        # what the last recorded model turn asked for and no call has answered yet
        self._wanted: list[str] = []
        self._ended = False
        self.latched: HarnessStop | None = None
        self.when_latched: Callable[[], None] | None = None
        """Called once, when the run is stopped."""
        self.events: list[dict[str, Json]] = []
        self.tape_decisions = 0
        self.live_decisions: list[str] = []
        """What the agent's code decided by itself, in words."""
        self.unrebuilt: list[str] = []
        """Recorded exceptions that the agent was given otherwise than they were, in words."""

    @property
    def injected(self) -> bool:
        """Whether the fault that was to be put in was."""
        return self._injection is not None and self._injection.met

    @property
    def turns_left(self) -> int:
        """How many recorded model turns were not asked for."""
        return 0 if self._model is None else self._model.left

    # -- the door

    def call(self, call: DoorCall) -> Answer:
        """Answer from the tape; the model passes through when it is live."""
        with self._lock:
            self._stopped()
            self._world.happened()
            if call.kind == "model":
                self._schedule.turn()
            answer = self._answer(call)
            turns = self._schedule.turns() if call.kind == "tool" else 0
        if call.kind == "tool":
            self._schedule.wait()
        return replace(answer, turns=turns) if isinstance(answer, Played | Failed) else answer

    def _answer(self, call: DoorCall) -> Answer:
        try:
            return self._model_call(call) if call.kind == "model" else self._tool_call(call)
        except HarnessStop as stop:
            self.latch(stop)
            raise
        except Exception as problem:  # a fault of ours must not pass for a tool's
            fault = HarnessStop(StopKind.OUR_FAULT, f"{call.name} was not answered: {problem!r}")
            self.latch(fault)
            raise fault from problem

    def ran(self, call: DoorCall) -> None:
        """Write down a tool call that the program makes itself."""
        self._unanswered(call, "itself")

    def refused(self, call: DoorCall) -> None:
        """Write down a tool call that its own framework turned down."""
        self._unanswered(call, "refused")

    def _unanswered(self, call: DoorCall, why: str) -> None:
        with self._lock:
            self._stopped()
            self._world.happened()
            if call.name in self._wanted:
                self._wanted.remove(call.name)
            self.events.append({"kind": "tool", "name": call.name, "arguments": call.arguments, why: True})

    def state(self, snapshot: Mapping[str, Json]) -> Mapping[str, Json]:
        """The replayed state in place of the real one; an incident without states keeps what it is given."""
        with self._lock:
            return snapshot if self._state is None else deepcopy(self._state)

    def hears(self, turn: int) -> bool:
        """Whether the user's next turn is to be said: it is when a model is there to answer it.

        Where the tape has ended, so has the conversation that was recorded.
        """
        with self._lock:
            if self.latched is not None:
                return False
            if self._model is not None and not self._live_off_tape and not self._model.left:
                return False
            self._settle()
            self.events.append({"kind": "user", "turn": turn})
            return True

    def latch(self, stop: HarnessStop) -> None:
        """Keep the first stop, whatever the agent's framework makes of it."""
        if self.latched is None:
            self.latched = stop
            if self.when_latched is not None:
                self.when_latched()

    def _stopped(self) -> None:
        if self.latched is not None:
            raise HarnessStop(self.latched.kind, self.latched.message)
        if self._ended:  # a thread that the agent left running: what it does now is no part of the run
            raise HarnessStop(StopKind.OFF_TAPE, "the run has ended")

    # -- models

    def _model_call(self, call: DoorCall) -> Answer:
        self._settle()
        event: dict[str, Json] = {
            "kind": "model",
            "request": digest(call.arguments),
            "arguments": call.arguments,
        }
        self.events.append(event)
        if self._model is None:
            return Door.PASS_THROUGH
        try:
            turn = self._model.find(call.arguments)
        except HarnessStop:
            if self._live_off_tape:
                return Door.PASS_THROUGH
            raise
        self._expect(turn)
        if turn.error is not None:
            return self._raised(call, turn.error)
        return Played(rebuild(turn.response, call.function))

    def _expect(self, turn: ModelTurn) -> None:
        self.tape_decisions += 1
        reply = read_reply(turn.response)
        if reply is not None:
            self._wanted = [wanted.name for wanted in reply.turn.calls]
            self._said = None if reply.turn.calls else reply.turn.text

    def _settle(self) -> None:
        """What the last turn asked for and nothing ran, the code refused."""
        self.live_decisions += [f"{name} was asked for and not run" for name in self._wanted]
        self._wanted = []

    def finish(self, answer: Json, error: BaseException | None) -> None:
        """The agent returned or raised."""
        with self._lock:
            self._ended = True
            self._settle()
            if error is None and self._said is not None and self._said not in str(answer):
                self.live_decisions.append("the answer is not the model's")
            ended: dict[str, Json] = {"kind": "end", "answer": answer}
            if error is not None and not isinstance(error, HarnessStop):
                ended["error"] = type(error).__name__
            self.events.append(ended)

    # -- tools

    def _tool_call(self, call: DoorCall) -> Answer:
        if self._model is not None:
            if call.name in self._wanted:
                self._wanted.remove(call.name)
            else:
                self.live_decisions.append(f"{call.name} was run without being asked for")
        event: dict[str, Json] = {"kind": "tool", "name": call.name, "arguments": call.arguments}
        self.events.append(event)
        fault = None if self._injection is None else self._injection.failure(call.name)
        if fault is not None:
            event["injected"] = type(fault).__name__
            return Failed(fault, own=isinstance(fault, ToolFailed))
        fixture = self._tools.fixtures.get(call.name)
        if self._live_reads and fixture is not None and fixture.effect == "read":
            return Door.PASS_THROUGH
        response = self._tools.find(call.name, call.arguments, self._writes)
        event["answer"] = digest([response.returns, response.error])[:16]
        self._apply(response, call.arguments)
        if response.error is not None:
            return self._raised(call, response.error)
        return Played(rebuild(self._returned(call, response), call.function), failed=response.failed)

    def _raised(self, call: DoorCall, error: Mapping[str, Json]) -> Failed:
        def missed(said: str) -> None:
            if (told := f"{call.name} raised {said}") not in self.unrebuilt:
                self.unrebuilt.append(told)

        return Failed(recorded_error(error, program=self._program, missed=missed))

    def _returned(self, call: DoorCall, response: Response) -> Json:
        """What is handed out: the recorded value, or what an injection makes of it."""
        if self._injection is None:
            return response.returns
        earliest = self._tools.earliest(call.name, call.arguments)
        return self._injection.altered(call.name, response.returns, earliest.returns)

    def _apply(self, response: Response, arguments: Mapping[str, Json]) -> None:
        fixture = self._tools.fixtures[response.tool]
        if self._state is not None:
            for pointer, value in response.set.items():
                assign(self._state, pointer, value)
            for pointer in response.unset:
                remove(self._state, pointer)
        if fixture.effect == "write" and (response.error is None or response.set or response.unset):
            self._writes.append(write_key(response.tool, arguments, fixture.ignore))


def rebuild(value: Json, function: Callable[..., Any]) -> Any:
    """A recorded value in the type the function says it returns.

    Raises:
        HarnessStop: the annotation is there and the value does not fit it.
    """
    try:
        returns = get_type_hints(function).get("return")
    except Exception:  # noqa: BLE001 - an annotation that cannot be evaluated promises nothing
        returns = None
    if returns is None or _is_json(returns):
        return deepcopy(value)
    from pydantic import TypeAdapter, ValidationError
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        made = TypeAdapter(returns).validate_python(value)
    except (PydanticUserError, PydanticUndefinedAnnotation):
        return deepcopy(value)  # a type pydantic cannot make: what was recorded of it is all there is
    except ValidationError as problem:
        raise _unfit(function, returns, value, problem.errors(include_url=False)[0]["msg"]) from None
    except Exception as problem:  # noqa: BLE001 - the type's own code, which must not reach the agent as a tool's error
        raise _unfit(function, returns, value, f"{type(problem).__name__}: {problem}") from None
    if not _kept(value, plain(made)):
        raise _unfit(function, returns, value, "what comes of it is recorded otherwise")
    return made


def _unfit(function: Callable[..., Any], returns: object, value: Json, why: str) -> HarnessStop:
    return HarnessStop(
        StopKind.CANNOT_REBUILD,
        f"{function.__qualname__} promises {returns}, and its recorded value {canonical_text(value)[:200]} does "
        f"not fit ({why}). Correct the annotation or the fixture.",
    )


def _kept(recorded: Json, again: Json) -> bool:
    """Whether the rebuilt value says what the recorded one said; a default that joined it is no difference."""
    if isinstance(recorded, dict) and isinstance(again, dict):
        return all(_kept(item, again[key]) for key, item in recorded.items() if key in again)
    if isinstance(recorded, list) and isinstance(again, list):
        return len(recorded) == len(again) and all(map(_kept, recorded, again))
    return same(recorded, again)


def _is_json(returns: object) -> bool:
    """Whether a type is what JSON gives back anyway, so that nothing need be rebuilt."""
    if returns in (Any, object, None, type(None), str, int, float, bool, dict, list):
        return True
    origin, inner = get_origin(returns), get_args(returns)
    if origin in (dict, Mapping) and inner[0] not in (str, Any):
        return False  # keys that JSON made text of
    return origin in (dict, list, Union, UnionType, Mapping, Sequence) and all(map(_is_json, inner))


def event_lines(events: Sequence[Mapping[str, Json]]) -> list[str]:
    """The events as canonical lines in an order independent of scheduling within one model turn."""
    lines: list[str] = []
    group: list[str] = []
    for event in events:
        if event["kind"] == "tool":
            group.append(canonical_text(event))
            continue
        lines += sorted(group)
        group = []
        lines.append(canonical_text({k: v for k, v in event.items() if k != "arguments"}))
    return lines + sorted(group)

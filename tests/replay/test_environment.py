"""Values given back by a replay are those the agent's code was written for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypedDict

import pytest

from redfirst.instrumentation.door import DoorCall
from redfirst.replay.environment import Environment, event_lines, rebuild
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import ToolTape
from redfirst.replay.world import World


@dataclass
class Receipt:
    """A tool's own type."""

    order: str
    total: Decimal


def gives_receipt() -> Receipt: ...
def gives_dict() -> dict[str, Any]: ...
def gives_anything():  # type: ignore[no-untyped-def]
    ...


def test_a_value_is_rebuilt_in_the_type_the_function_promises() -> None:
    """A recorded dataclass is a dataclass again, its money a Decimal."""
    assert rebuild({"order": "A", "total": "2.50"}, gives_receipt) == Receipt("A", Decimal("2.50"))


@pytest.mark.parametrize("function", [gives_dict, gives_anything])
def test_json_stays_json(function: Any) -> None:
    """Where nothing else is promised, the recorded value is given back as a fresh copy."""
    value = {"a": [1]}
    got = rebuild(value, function)

    assert got == value
    assert got is not value


def test_a_value_that_does_not_fit_ends_the_run() -> None:
    """It is a harness fault, not a tool error."""
    with pytest.raises(HarnessStop) as stopped:
        rebuild({"order": "A"}, gives_receipt)
    assert stopped.value.kind is StopKind.CANNOT_REBUILD


def test_the_order_of_concurrent_calls_is_no_event() -> None:
    """Calls between two model turns are a set; a turn in between makes another history."""
    one, two, turn = ({"kind": "tool", "name": n} for n in "ab"), None, {"kind": "model", "request": "r"}
    a, b = one
    assert two is None
    assert event_lines([a, b, turn]) == event_lines([b, a, turn])
    assert event_lines([a, turn, b]) != event_lines([b, turn, a])


class Typed(TypedDict):
    """Which pydantic cannot make on every version of Python."""

    a: int


@dataclass
class Picky:
    """Whose own code refuses what was recorded."""

    a: int

    def __post_init__(self) -> None:
        raise KeyError(self.a)


def gives_bytes() -> bytes: ...
def gives_typed() -> Typed: ...
def gives_picky() -> Picky: ...
def gives_by_number() -> dict[int, str]: ...


def test_bytes_are_not_made_of_their_repr() -> None:
    """What a recording could not keep is refused, not given back as something else."""
    with pytest.raises(HarnessStop, match="recorded otherwise") as stopped:
        rebuild("b'\\xff'", gives_bytes)
    assert stopped.value.kind is StopKind.CANNOT_REBUILD


def test_keys_that_were_numbers_are_numbers_again() -> None:
    """JSON made text of them, and the annotation says so."""
    assert rebuild({"1": "a"}, gives_by_number) == {1: "a"}


def test_a_type_that_cannot_be_made_gives_what_was_recorded() -> None:
    """An annotation never raises into the agent."""
    assert rebuild({"a": 1}, gives_typed) == {"a": 1}


def test_a_type_whose_own_code_raises_ends_the_run() -> None:
    """It must not reach the agent as if the tool had failed."""
    with pytest.raises(HarnessStop, match="KeyError") as stopped:
        rebuild({"a": 1}, gives_picky)
    assert stopped.value.kind is StopKind.CANNOT_REBUILD


def test_a_fault_of_ours_is_no_error_of_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has no verdict, and the agent cannot catch it."""
    tape = ToolTape([], sources=())
    monkeypatch.setattr(tape, "find", lambda *_: {}["broken"])
    environment = Environment(tools=tape, model=None, state=None, world=World(start=0.0, tick=1.0, seed=0))

    with pytest.raises(HarnessStop) as stopped:
        environment.call(DoorCall(kind="tool", name="get", arguments={}, function=gives_dict))
    assert stopped.value.kind is StopKind.OUR_FAULT
    assert environment.latched is stopped.value


def test_a_call_after_the_end_is_no_part_of_the_run() -> None:
    """A thread that was left behind adds no event and gets no answer."""
    tape = ToolTape([], sources=())
    environment = Environment(tools=tape, model=None, state=None, world=World(start=0.0, tick=1.0, seed=0))
    environment.finish("done", None)

    with pytest.raises(HarnessStop, match="the run has ended"):
        environment.call(DoorCall(kind="tool", name="get", arguments={}, function=gives_dict))
    assert [event["kind"] for event in environment.events] == ["end"]
    assert environment.latched is None

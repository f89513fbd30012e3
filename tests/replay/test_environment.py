"""Values given back by a replay are those the agent's code was written for."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from redfirst.replay.environment import RecordedError, event_lines, rebuild, recorded_error
from redfirst.replay.stop import HarnessStop, StopKind


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


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TimeoutError", TimeoutError),
        ("json.decoder.JSONDecodeError", RecordedError),  # its constructor wants more than a message
        ("KeyError", RecordedError),  # str(KeyError(m)) is not m
        ("nowhere.Nothing", RecordedError),
        ("builtins.print", RecordedError),
        ("SystemExit", RecordedError),
    ],
)
def test_an_error_is_its_own_class_where_that_is_loaded_and_says_the_same(
    name: str, kind: type[Exception]
) -> None:
    """Nothing is imported for it, and the agent reads the recorded words."""
    error = recorded_error({"type": name, "message": "late"})

    assert type(error) is kind
    assert str(error) == "late"


def test_the_order_of_concurrent_calls_is_no_event() -> None:
    """Calls between two model turns are a set; a turn in between makes another history."""
    one, two, turn = ({"kind": "tool", "name": n} for n in "ab"), None, {"kind": "model", "request": "r"}
    a, b = one
    assert two is None
    assert event_lines([a, b, turn]) == event_lines([b, a, turn])
    assert event_lines([a, turn, b]) != event_lines([b, turn, a])

"""A fact worked out on demand is a fact like any other."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest

from redfirst.evaluators.later import Later
from redfirst.evaluators.trajectory import Message, ModelCall

SAID = (Message(role="user", content="hello"),)


def said() -> tuple[Message, ...]:
    """A history, as a reader works it out."""
    return SAID


def a_call(history: object) -> ModelCall:
    return ModelCall(index=0, span_id="a", input_messages=history)  # type: ignore[arg-type] # given late or at once


def test_it_is_worked_out_once_and_only_when_asked_for() -> None:
    """Reading a run does not pay for histories that nobody looks at."""
    asked: list[int] = []

    def work() -> tuple[Message, ...]:
        asked.append(1)
        return SAID

    call = a_call(Later(work))
    assert asked == []
    assert call.input_messages == call.input_messages == SAID
    assert asked == [1]


@pytest.mark.parametrize(
    "look", [repr, hash, replace, copy.deepcopy, lambda call: pickle.loads(pickle.dumps(call))]
)
def test_nothing_tells_it_from_a_fact_given_at_once(look) -> None:  # type: ignore[no-untyped-def]
    """Equality, text, copies and pickles see the value."""
    assert look(a_call(Later(said))) == look(a_call(SAID))


def test_it_cannot_be_changed() -> None:
    """Data is frozen, whenever it is worked out."""
    with pytest.raises(FrozenInstanceError):
        a_call(Later(said)).input_messages = None  # type: ignore[misc]

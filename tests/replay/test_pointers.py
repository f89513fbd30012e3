"""JSON pointers and state differences."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from redfirst.replay.pointers import assign, difference, join, parse, remove

KEYS = st.text(alphabet="a/~.b", max_size=3)
STATES = st.dictionaries(
    KEYS,
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2),
        lambda inner: st.dictionaries(KEYS, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@given(STATES, STATES)
def test_applying_the_difference_of_two_states_makes_one_the_other(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    """Keys with slashes, tildes and dots included, and nothing else is touched."""
    put, gone = difference(before, after)
    state = deepcopy(before)
    for pointer, value in put.items():
        assign(state, pointer, value)
    for pointer in gone:
        remove(state, pointer)

    assert difference(state, after) == ({}, [])


@given(st.lists(KEYS, min_size=1))
def test_a_pointer_reads_back_as_the_steps_it_was_made_of(steps: list[str]) -> None:
    """RFC 6901 escapes."""
    assert parse(join(steps)) == steps


def test_removing_what_is_not_there_changes_nothing() -> None:
    """A missing path is no fault."""
    state = {"a": {"b": 1}}

    remove(state, "/x/y")
    remove(state, "/a/b/c")

    assert state == {"a": {"b": 1}}

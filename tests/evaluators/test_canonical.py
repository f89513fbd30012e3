"""The canonical text stays what it was, whatever writes it: fixtures are matched and events hashed by it."""

from __future__ import annotations

import pytest

from redfirst.evaluators.canonical import canonical_text, same


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # Python's repr of a float: an exponent of at least two digits, below 1e-4 and from 1e16
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-0.00001, "-1e-05"),
        (1.5e-7, "1.5e-07"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (12.5, "12.5"),
        (3.0, "3"),
        (2**64, "18446744073709551616"),
        ({"b": 1, "a": [None, True]}, '{"a":[null,true],"b":1}'),
        ("order 1e5\n 0.00001 \x1b", '"order 1e5 0.00001 \\u001b"'),
        ("\ud83d", '"\ud83d"'),
        (float("nan"), '"nan"'),
    ],
)
def test_the_text_of_a_value(value: object, text: str) -> None:
    assert canonical_text(value) == text


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ({"a": 1}, {"a": True}, False),
        ([1], [1.0], True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": "x  y"}, {"a": "x y"}, True),
        ({"a": "x"}, {"a": "x"}, True),
        ([0], [False], False),
    ],
)
def test_two_values_are_the_same(left: object, right: object, equal: bool) -> None:
    assert same(left, right) is equal

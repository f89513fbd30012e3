"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from redfirst.collector_processor.reliability.words import amount, percent, tally


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0.0 %"), (1, "100.0 %"), (0.0001, "<0.1 %"), (0.9999, ">99.9 %"), (0.4251, "42.5 %"), (None, "–")],
)
def test_a_share_is_never_rounded_to_never_or_always(value: float | None, shown: str):
    """Five nines are not all."""
    assert percent(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (math.inf, "∞"), (4246.36, "4,246"), (12.0, "12"), (0.03271, "0.0327")],
)
def test_an_amount_has_three_digits_or_is_whole(value: float | None, shown: str):
    """Dollars and tokens stand in one table."""
    assert amount(value) == shown


def test_the_frequent_come_first_and_the_rest_is_counted():
    """Nothing falls off the end of a line unseen."""
    assert tally({"a": 1, "b": 5, "c": 2, "d": 1}, most=2) == "b 5, c 2, others 2"

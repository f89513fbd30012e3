"""Intervals hold the truth about as often as they say, and are never a point."""

from __future__ import annotations

import numpy as np
import pytest

from redfirst.collector_processor.reliability.estimates import mean_of_tasks, share_of_runs
from redfirst.evaluators.statistics.proportions import wilson
from redfirst.evaluators.statistics.repetition import pass_hat_k_per_task


@pytest.mark.parametrize(("a", "b", "k"), [(2, 0.5, 1), (0.6, 0.6, 4), (9, 1, 4)])
def test_the_t_interval_covers_from_twenty_tasks_on(a: float, b: float, k: int):
    """Rates from a beta distribution, eight trials: the mean of p^k is ∏(a+i)/(a+b+i), and is held nine times in ten."""
    truth = float(np.prod([(a + i) / (a + b + i) for i in range(k)]))
    dice = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        passes = dice.binomial(8, dice.beta(a, b, 20))
        interval = mean_of_tasks(pass_hat_k_per_task([8] * 20, passes, k))
        held += interval is not None and interval.low <= truth <= interval.high

    assert 0.9 < held / 400 < 0.99


def test_no_spread_is_no_certainty():
    """All 1, all 0: exact bounds for that many tasks. All alike in between, one task, nothing: no interval."""
    ones, zeros = mean_of_tasks([1.0] * 5), mean_of_tasks([0.0] * 5)

    assert ones is not None
    assert zeros is not None
    assert (ones.low, ones.high) == (pytest.approx(0.025**0.2), 1)
    assert (zeros.low, zeros.high) == (0, pytest.approx(1 - 0.025**0.2))
    rounded = [1 - 1 / 3, 2 / 3, 1 - 1 / 3]
    assert len(set(rounded)) == 2
    for values in ([0.5, 0.5, 0.5], rounded, [1.0], [], [1.0, float("nan")]):
        assert mean_of_tasks(values) is None


def test_groups_are_the_units():
    """Twenty tasks of two families are two units."""
    interval = mean_of_tasks([1.0] * 20, ["a"] * 10 + ["b"] * 10)

    assert interval is not None
    assert interval.low == pytest.approx(0.025**0.5)
    assert mean_of_tasks([1.0, 0.0], ["a", "a"]) is None


def test_a_share_of_runs():
    """Wilson for single runs, and for one task; with repeats, tasks are the units."""
    assert share_of_runs([], []) is None
    assert share_of_runs([True, True, False], ["a", "b", "c"]) == wilson(2, 3)
    assert share_of_runs([True, True, False], ["a", "a", "a"]) == wilson(2, 3)
    repeated = share_of_runs([True] * 6, ["a", "a", "b", "b", "c", "c"])
    assert repeated is not None
    assert repeated.low == pytest.approx(0.025 ** (1 / 3))


def test_tasks_of_equal_shares_have_no_interval():
    """One hit of three in each of three tasks: the sums differ by rounding alone, and a point would say certainty."""
    assert share_of_runs([True, False, False] * 3, [*"aaabbbccc"]) is None

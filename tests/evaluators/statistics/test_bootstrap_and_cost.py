"""Resampling whole tasks: the same seed gives the same answer, and few tasks never look certain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.bootstrap import mean_interval, pass_hat_k_interval
from redfirst.evaluators.statistics.cost import cost_per_success

TRIALS, PASSES = [8] * 8, [8] * 4 + [4] * 4


@given(st.lists(st.integers(0, 6), min_size=2, max_size=15), st.integers(0, 2**32))
def test_a_seed_decides_everything(passes: list[int], seed: int) -> None:
    """Twice the same seed: the same interval, and it lies in [0, 1]."""
    trials = [6] * len(passes)
    first, second = (pass_hat_k_interval(trials, passes, 2, resamples=50, seed=seed) for _ in range(2))

    assert first == second
    assert first is None or 0 <= first.low <= first.high <= 1


def test_the_interval_by_hand() -> None:
    """Values 1 and 3/14 in equal number: of 8 draws the 2.5 % and 97.5 % points of Bin(8, ½) are 1 and 7 ones."""
    found = pass_hat_k_interval(TRIALS, PASSES, 2, resamples=20_000)

    assert found is not None
    assert (found.low, found.high) == pytest.approx(((1 + 7 * 3 / 14) / 8, (7 + 3 / 14) / 8))
    assert found.method == "bootstrap over tasks"


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    """Suites of 40 tasks with rates spread evenly over [0, 1]: true pass^2 is 1/3."""
    rng = np.random.default_rng(3)
    hit = 0
    for seed in range(200):
        passes = rng.binomial(4, rng.uniform(size=40))
        found = pass_hat_k_interval([4] * 40, passes, 2, resamples=300, seed=seed)
        assert found is not None
        hit += found.low <= 1 / 3 <= found.high

    assert 0.88 <= hit / 200 <= 0.99


def test_tasks_that_all_pass_are_not_certain() -> None:
    """Five of five tasks: the exact interval begins at the fifth root of .025, where resampling says [1, 1]."""
    found = mean_interval([1, 1, 1, 1, 1])

    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.025**0.2, 1))
    assert found.method == "clopper-pearson"


def test_what_cannot_be_resampled_has_no_interval() -> None:
    """One task, an undefined task, or tasks that agree on a value in between."""
    assert mean_interval([1]) is None
    assert mean_interval([1, float("nan")]) is None
    assert mean_interval([0.5, 0.5]) is None


def test_failures_are_paid_for() -> None:
    """30 runs at 1557 tokens with 11 right: 4246 a right one; all 30 right at 829: 829, a ratio of 5.1, not 1.9."""
    broken = cost_per_success([1557] * 30, [1] * 11 + [0] * 19)
    sound = cost_per_success([829] * 30, [1] * 30)

    assert broken.value == pytest.approx(4246, abs=0.5)
    assert sound.value == 829
    assert broken.interval is not None
    # the share of right runs is within its interval [.20, .53], so the cost within 1557 over it
    assert 1557 / 0.60 < broken.interval.low < 4246 < broken.interval.high < 1557 / 0.13
    assert sound.interval is None, "thirty equal tasks would answer with no width, which is no interval"


def test_nothing_bought_has_no_price() -> None:
    """No success: no value, but the total that was spent."""
    found = cost_per_success([2.0, 3.0], [0, 0])

    assert (found.value, found.interval, found.total, found.successes) == (None, None, 5.0, 0)
    assert cost_per_success([2.0], [1]).interval is None


def test_too_few_successes_have_no_upper_end() -> None:
    """One success in three tasks: a resample misses it in 8 of 27 cases, so dearer without limit."""
    found = cost_per_success([1.0, 1.0, 1.0], [1, 0, 0])

    assert found.interval is not None
    assert found.interval.high == float("inf")


def test_costs_that_cannot_be_are_refused() -> None:
    """Shapes that differ and negative numbers."""
    with pytest.raises(ValueError, match="costs and successes"):
        cost_per_success([1.0, 2.0], [1])
    with pytest.raises(ValueError, match="costs and successes"):
        cost_per_success([-1.0], [1])

"""Intervals of a share, against values that scipy's binomtest and statsmodels agree on."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.proportions import (
    clopper_pearson,
    clopper_pearson_lower,
    jeffreys_lower,
    wilson,
    wilson_bounds,
    z_of,
)

shares = st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (30, 30, 88.65, 100),
        (11, 30, 21.87, 54.49),
        (19, 30, 45.51, 78.13),
        (1, 30, 0.59, 16.67),
        (1, 11, 1.62, 37.74),
        (0, 8, 0, 32.44),
        (8, 8, 67.56, 100),
        (3, 3, 43.85, 100),
        (5, 5, 56.55, 100),
        (10, 10, 72.25, 100),
        (20, 20, 83.89, 100),
        (0, 1, 0, 79.35),
        (1, 1, 20.65, 100),
        (3, 5, 23.07, 88.24),
    ],
)
def test_wilson(successes: int, trials: int, low: float, high: float) -> None:
    """In percent, to two digits."""
    found = wilson(successes, trials)

    assert (100 * found.low, 100 * found.high) == pytest.approx((low, high), abs=6e-3)
    assert (found.method, found.level) == ("wilson", 0.95)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(30, 30, 88.43, 100), (11, 30, 19.93, 56.14), (1, 11, 0.23, 41.28)],
)
def test_clopper_pearson(successes: int, trials: int, low: float, high: float) -> None:
    """In percent, to two digits."""
    found = clopper_pearson(successes, trials)

    assert (100 * found.low, 100 * found.high) == pytest.approx((low, high), abs=6e-3)


@pytest.mark.parametrize(
    ("successes", "trials", "low"),
    [(3, 3, 0.368), (5, 5, 0.549), (8, 8, 0.688), (10, 10, 0.741), (4, 5, 0.343), (3, 5, 0.189)],
)
def test_clopper_pearson_from_below(successes: int, trials: int, low: float) -> None:
    """The one-sided bound at 95 %; of n successes in n it is the n-th root of 0.05."""
    assert clopper_pearson_lower(successes, trials) == pytest.approx(low, abs=5e-4)


def test_jeffreys_from_below() -> None:
    """One success of one: Beta(3/2, 1/2) at 5 %, found from its closed distribution function."""
    low = jeffreys_lower(1, 1)
    # F(x) = (2/π)·(asin √x − √(x(1−x)))
    assert (2 / math.pi) * (math.asin(math.sqrt(low)) - math.sqrt(low * (1 - low))) == pytest.approx(0.05)
    assert jeffreys_lower(0, 5) == 0


def test_without_trials_nothing_is_excluded() -> None:
    """No run: the interval is everything, the bounds are 0."""
    for found in (wilson(0, 0), clopper_pearson(0, 0)):
        assert (found.low, found.high) == (0, 1)
    assert clopper_pearson_lower(0, 0) == jeffreys_lower(0, 0) == 0


def test_impossible_questions_are_refused() -> None:
    """More successes than trials, and levels that are none."""
    for function in (wilson, clopper_pearson, clopper_pearson_lower, jeffreys_lower):
        with pytest.raises(ValueError, match="2 successes of 1 trials"):
            function(2, 1)
        with pytest.raises(ValueError, match="confidence level"):
            function(1, 2, 1.0)


def test_the_normal_quantile() -> None:
    """1.959964 at 95 %, and the bounds by it are those of the level."""
    assert z_of(0.95) == pytest.approx(1.959964, abs=1e-6)
    assert wilson_bounds(3, 5, z_of(0.9)) == pytest.approx((wilson(3, 5, 0.9).low, wilson(3, 5, 0.9).high))


@given(shares)
def test_an_interval_holds_the_share_and_mirrors(share: tuple[int, int]) -> None:
    """0 ≤ low ≤ k/n ≤ high ≤ 1, failures have the mirrored interval, and a higher level a wider one."""
    k, n = share
    for function in (wilson, clopper_pearson):
        found, mirrored, wider = function(k, n), function(n - k, n), function(k, n, 0.99)
        assert 0 <= found.low <= k / n <= found.high <= 1
        assert mirrored.low == pytest.approx(1 - found.high, abs=1e-9)
        assert wider.low <= found.low + 1e-12
        assert wider.high >= found.high - 1e-12


@given(shares)
def test_exact_bounds_lie_outside_the_others(share: tuple[int, int]) -> None:
    """Clopper and Pearson's lower bound is never above Jeffreys'."""
    k, n = share

    assert clopper_pearson_lower(k, n) <= jeffreys_lower(k, n) + 1e-12 <= 1

"""Pass@k and pass^k: right values by hand and from a published table, and the laws they keep."""

from __future__ import annotations

import csv
import math
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.repetition import (
    pass_at_k,
    pass_at_k_per_task,
    pass_hat_k,
    pass_hat_k_per_task,
)

FIXTURES = Path(__file__).parents[2] / "fixtures"
TRIALS, PASSES = [8] * 8, [8, 8, 8, 8, 4, 4, 4, 4]

suites = st.lists(
    st.integers(4, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=12
).map(lambda tasks: tuple(zip(*tasks, strict=True)))
"""Trials and passes of one to twelve tasks of at least four trials."""


@pytest.mark.parametrize(
    ("k", "at", "hat"), [(1, 0.75, 0.75), (2, 0.8929, 0.6071), (4, 0.9929, 0.5071), (8, 1, 0.5)]
)
def test_eight_tasks_of_eight_trials(k: int, at: float, hat: float) -> None:
    """Four tasks that always pass and four that pass half of the time."""
    assert pass_at_k(TRIALS, PASSES, k) == pytest.approx(at, abs=5e-5)
    assert pass_hat_k(TRIALS, PASSES, k) == pytest.approx(hat, abs=5e-5)


def test_pass_hat_k_is_a_half_from_five_trials_on() -> None:
    """Five of four passes cannot be drawn, so only the tasks that always pass count."""
    assert [pass_hat_k(TRIALS, PASSES, k) for k in (5, 6, 7, 8)] == [0.5] * 4


def test_one_task_by_hand() -> None:
    """Of 28 pairs among 8 trials with 4 passes, 6 are two passes and 6 two failures; of 10 among 5 with 3, 3 and 1."""
    assert pass_at_k([8], [4], 2) == pytest.approx(22 / 28)
    assert pass_hat_k([8], [4], 2) == pytest.approx(6 / 28)
    assert pass_at_k([5], [3], 2) == pytest.approx(0.9)
    assert pass_hat_k([5], [3], 2) == pytest.approx(0.3)


def test_a_published_table() -> None:
    """The pass^1 to pass^4 that the authors of τ-bench print for gpt-4o on the airline tasks."""
    text = (FIXTURES / "tau_bench" / "airline_gpt-4o.csv").read_text("utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    trials, passes = ([int(row[name]) for row in rows] for name in ("trials", "passes"))

    found = [pass_hat_k(trials, passes, k) for k in (1, 2, 3, 4)]

    assert len(rows) == 50
    assert found == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)


@pytest.mark.parametrize(("red", "green", "p"), [(5, 8, 0.000777), (3, 5, 0.0179), (3, 3, 0.05)])
def test_all_red_against_all_green(red: int, green: int, p: float) -> None:
    """Fisher's exact p of a full separation is 1/C(n,k): the chance to draw just the reds of all runs."""
    assert pass_hat_k([red + green], [red], red) == pytest.approx(p, abs=5e-5)


def test_too_few_trials_of_one_task_leave_it_undefined() -> None:
    """Nothing is extrapolated: one task of three trials has no pass^4, and neither has the suite."""
    per_task = pass_hat_k_per_task([4, 3], [4, 3], 4)

    assert per_task[0] == 1
    assert math.isnan(per_task[1])
    assert pass_hat_k([4, 3], [4, 3], 4) is None
    assert pass_at_k([4, 3], [4, 3], 4) is None
    assert pass_at_k([0], [0], 1) is None
    assert pass_hat_k([], [], 1) is None


@pytest.mark.parametrize(
    ("trials", "passes", "k"),
    [([3], [4], 1), ([3], [-1], 1), ([3, 3], [1], 1), ([[3]], [[1]], 1), ([3], [0.5], 1), ([3], [1], 0)],
)
def test_counts_that_cannot_be_are_refused(trials: list[int], passes: list[int], k: int) -> None:
    """More passes than trials, halves, shapes that differ, no trials at all."""
    with pytest.raises(ValueError, match=r"pass|trials"):
        pass_hat_k(trials, passes, k)


def test_large_counts_overflow_nothing() -> None:
    """The product form agrees with whole-number binomials where those have thousands of digits."""
    exact = comb(9_000, 200) / comb(10_000, 200)

    assert pass_hat_k([10_000], [9_000], 200) == pytest.approx(exact, rel=1e-9)


@given(suites, st.integers(1, 4))
def test_both_are_the_share_of_draws(suite: tuple[tuple[int, ...], tuple[int, ...]], k: int) -> None:
    """They equal the shares counted with whole-number binomials."""
    n, c = suite
    at = np.mean([1 - comb(m - p, k) / comb(m, k) for m, p in zip(n, c, strict=True)])
    hat = np.mean([comb(p, k) / comb(m, k) for m, p in zip(n, c, strict=True)])

    assert pass_at_k(n, c, k) == pytest.approx(at)
    assert pass_hat_k(n, c, k) == pytest.approx(hat)


@given(suites)
def test_more_trials_make_one_pass_likelier_and_all_passes_rarer(
    suite: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    """Pass@k rises with k, pass^k falls, they begin together, and all lie in [0, 1]."""
    at = np.array([pass_at_k_per_task(*suite, k) for k in (1, 2, 3, 4)])
    hat = np.array([pass_hat_k_per_task(*suite, k) for k in (1, 2, 3, 4)])

    assert np.allclose(at[0], hat[0])
    assert (np.diff(at, axis=0) >= -1e-12).all()
    assert (np.diff(hat, axis=0) <= 1e-12).all()
    assert ((at >= 0) & (at <= 1) & (hat >= 0) & (hat <= 1)).all()


@given(suites, st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_order_of_tasks_does_not_matter(suite, random, k) -> None:  # type: ignore[no-untyped-def]
    """A suite is a set of tasks."""
    shuffled = list(zip(*suite, strict=True))
    random.shuffle(shuffled)
    n, c = zip(*shuffled, strict=True)

    assert pass_hat_k(n, c, k) == pytest.approx(pass_hat_k(*suite, k))
    assert pass_at_k(n, c, k) == pytest.approx(pass_at_k(*suite, k))

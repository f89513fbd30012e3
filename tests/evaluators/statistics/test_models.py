"""Closed forms: steps that slip and recover, infrastructure that flakes, designs that reach an error bar."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.infrastructure import adjusted_pass_hat_k, adjusted_rate, flake_factor
from redfirst.evaluators.statistics.planning import (
    best_within,
    designs,
    greens_against_luck,
    half_width,
    step_budget,
)
from redfirst.evaluators.statistics.repetition import pass_hat_k
from redfirst.evaluators.statistics.steps import (
    expected_pass_at_k,
    expected_pass_hat_k,
    needed_step_success,
    task_success,
)

chances = st.floats(0.0, 1.0)


@pytest.mark.parametrize(
    ("step", "steps", "recovery", "success"),
    [
        (0.99, 20, 0, 0.8179),
        (0.98, 20, 0, 0.6676),
        (0.97, 20, 0, 0.5438),
        (0.97, 20, 0.5, 0.7391),
        (0.95, 10, 0.8, 0.9044),
        (0.97, 8, 0, 0.7837),
        (0.95, 8, 0, 0.6634),
    ],
)
def test_success_over_steps(step: float, steps: int, recovery: float, success: float) -> None:
    """A step that comes right, or is made good."""
    assert task_success(step, steps, recovery=recovery) == pytest.approx(success, abs=5e-5)


def test_the_step_reliability_that_a_target_needs() -> None:
    """90 % of single tasks of 20 steps: .9947; of eight in a row .999342, which rounded to four digits misses it."""
    assert needed_step_success(0.9, 20) == pytest.approx(0.9947, abs=5e-5)
    assert needed_step_success(0.9, 20, k=8) == pytest.approx(0.999342, abs=5e-7)
    assert needed_step_success(0.9, 10, k=8) == pytest.approx(0.9987, abs=5e-5)
    assert needed_step_success(0.9, 50, k=8) == pytest.approx(0.9997, abs=5e-5)
    assert task_success(0.9993, 20 * 8) == pytest.approx(0.8940, abs=5e-5)
    assert needed_step_success(0.9, 1, recovery=0.95) == 0


def test_known_chances_over_trials() -> None:
    """What one chance makes of k trials, and two tasks whose mean hides the worse one."""
    assert expected_pass_at_k([0.8], 4) == pytest.approx(0.9984)
    assert expected_pass_hat_k([0.8], 4) == pytest.approx(0.4096)
    assert expected_pass_hat_k([0.8], 8) == pytest.approx(0.1678, abs=5e-5)
    assert expected_pass_hat_k([0.7], 8) == pytest.approx(0.0576, abs=5e-5)
    assert expected_pass_hat_k([0.9], 8) == pytest.approx(0.4305, abs=5e-5)
    assert expected_pass_hat_k([1, 0.6], 4) == pytest.approx(0.5648)


@pytest.mark.parametrize(("failing", "luck"), [(0.1, 0.4305), (0.2, 0.1678), (0.367, 0.0258), (0.5, 0.0039)])
def test_eight_greens_may_be_luck(failing: float, luck: float) -> None:
    """An agent that is not fixed and fails so often passes eight times in a row with this chance."""
    assert expected_pass_hat_k([1 - failing], 8) == pytest.approx(luck, abs=5e-5)


@pytest.mark.parametrize(("failing", "greens"), [(0.1, 29), (0.2, 14), (0.367, 7), (0.5, 5)])
def test_how_many_greens_rule_luck_out(failing: float, greens: int) -> None:
    """The fewest in a row that an agent which fails so often reaches with a chance below 5 %."""
    assert greens_against_luck(failing) == greens
    assert (1 - failing) ** greens < 0.05 <= (1 - failing) ** (greens - 1)


def test_models_refuse_what_cannot_be() -> None:
    """Chances outside [0, 1], no steps, no trials."""
    with pytest.raises(ValueError, match="between 0 and 1"):
        task_success(1.2, 3)
    with pytest.raises(ValueError, match="0 steps"):
        task_success(0.9, 0)
    with pytest.raises(ValueError, match="0 trials"):
        expected_pass_hat_k([0.5], 0)
    with pytest.raises(ValueError, match="a flake of"):
        flake_factor(1.5, 2)


@given(st.floats(0.01, 0.99), st.integers(1, 60), st.integers(1, 8), st.floats(0, 0.9))
def test_the_needed_reliability_reaches_the_target(
    target: float, steps: int, k: int, recovery: float
) -> None:
    """Put back into the model it gives the target, or more where recovery alone is enough."""
    step = needed_step_success(target, steps, k=k, recovery=recovery)
    reached = task_success(step, steps, recovery=recovery) ** k

    assert reached >= target * (1 - 1e-9)
    assert step == 0 or reached == pytest.approx(target)


@given(st.lists(chances, min_size=1, max_size=8), st.integers(1, 8))
def test_a_mixed_suite_passes_in_a_row_more_often_than_its_mean(rates: list[float], k: int) -> None:
    """Jensen: the mean of p^k is at least the k-th power of the mean, and both bound pass@k from below."""
    assert expected_pass_hat_k(rates, k) >= np.mean(rates) ** k - 1e-12
    assert expected_pass_hat_k(rates, k) <= expected_pass_at_k(rates, k) + 1e-12


def test_flakes_and_their_adjustment() -> None:
    """5 % flakes multiply pass^8 by .66; at .97 that shows .52 for .78."""
    assert flake_factor(0.05, 8) == pytest.approx(0.6634, abs=5e-5)
    assert 0.97**8 * flake_factor(0.05, 8) == pytest.approx(0.5200, abs=5e-5)


def test_runs_without_a_verdict_are_left_out_and_bounded() -> None:
    """Six passes, two failures, two lost: 6/8, between 6/10 and 8/10."""
    found = adjusted_rate(passes=6, failures=2, lost=2)

    assert (found.value, found.if_all_failed, found.if_all_passed) == (0.75, 0.6, 0.8)
    assert found.lost_share == 0.2


def test_nothing_but_lost_runs_is_undefined() -> None:
    """Three lost runs say nothing; no run says not even what it could be."""
    lost = adjusted_rate(passes=0, failures=0, lost=3)
    none = adjusted_rate(passes=0, failures=0, lost=0)

    assert (lost.value, lost.if_all_failed, lost.if_all_passed, lost.lost_share) == (None, 0, 1, 1)
    assert none.value is none.if_all_failed is none.if_all_passed is none.lost_share is None
    with pytest.raises(ValueError, match="-1 passes"):
        adjusted_rate(passes=-1, failures=0, lost=0)


def test_pass_hat_k_without_the_lost_runs() -> None:
    """Tasks of 4 runs: 2 of 3 passed with one lost, all 4 passed. Pass^2 is (1/3 + 1)/2, from 1/6 to 1/2 for the first."""
    found = adjusted_pass_hat_k([4, 4], [2, 4], [1, 0], 2)

    assert found.value == pytest.approx((1 / 3 + 1) / 2)
    assert found.if_all_failed == pytest.approx((1 / 6 + 1) / 2)
    assert found.if_all_passed == pytest.approx((1 / 2 + 1) / 2)
    assert (found.lost, found.runs, found.lost_share) == (1, 8, 1 / 8)
    assert adjusted_pass_hat_k([4, 4], [2, 4], [1, 0], 4).value is None
    assert adjusted_pass_hat_k([4, 4], [2, 4], [1, 0], 4).if_all_failed == 0.5


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=8),
    st.integers(1, 3),
)
def test_the_bounds_hold_the_value(tasks: list[tuple[int, int, int]], k: int) -> None:
    """All lost runs failed ≤ left out ≤ all passed, and without lost runs the three are one."""
    passes, failures, lost = (np.array(column) for column in zip(*tasks, strict=True))
    found = adjusted_pass_hat_k(passes + failures + lost, passes, lost, k)

    if found.value is not None:
        assert found.if_all_failed is not None
        assert found.if_all_passed is not None
        assert found.if_all_failed - 1e-12 <= found.value <= found.if_all_passed + 1e-12
    clean = adjusted_pass_hat_k(passes + failures, passes, 0 * lost, k)
    assert (
        clean.value == clean.if_all_failed == clean.if_all_passed == pass_hat_k(passes + failures, passes, k)
    )


@pytest.mark.parametrize(
    ("tasks", "trials", "points"),
    [(40, 16, 6.75), (300, 2, 3.58), (400, 1, 3.92), (40, 1, 12.40), (40, 10**9, 6.20)],
)
def test_error_bars_of_designs(tasks: int, trials: int, points: float) -> None:
    """At a variance of .04 between tasks and .12 within: tasks, not repeats, bound the error."""
    found = half_width(between=0.04, within=0.12, tasks=tasks, trials=trials)

    assert 100 * found == pytest.approx(points, abs=6e-3)


def test_designs_within_a_budget() -> None:
    """±4 points within 800 runs: 385 tasks once, since (1.96/.04)²·.16 = 384.1; then 241 twice, up to 154 five times."""
    found = list(designs(between=0.04, within=0.12, wanted=0.04, budget=800))

    assert [(one.tasks, one.trials, one.runs) for one in found] == [
        (385, 1, 385),
        (241, 2, 482),
        (193, 3, 579),
        (169, 4, 676),
        (154, 5, 770),
    ]
    assert all(one.half_width <= 0.04 for one in found)
    few = list(designs(between=0.04, within=0.12, wanted=0.04, budget=800, most_tasks=160, least_trials=4))
    assert [(one.tasks, one.trials) for one in few] == [(154, 5)]
    # (1.96/.4)²·.12 = 2.88 runs are needed however they are dealt; two trials would need two tasks
    alike = list(designs(between=0, within=0.12, wanted=0.4, budget=3))
    assert [(one.tasks, one.trials) for one in alike] == [(3, 1), (1, 3)]
    assert list(designs(between=0.04, within=0.12, wanted=0.01, budget=800)) == []


def test_what_a_budget_buys_at_best() -> None:
    """As many tasks as there are, then trials: 100 tasks and 800 runs are eight each."""
    best = best_within(between=0.04, within=0.12, budget=800, most_tasks=100)

    assert best is not None
    assert (best.tasks, best.trials) == (100, 8)
    assert best.half_width == pytest.approx(1.959964 * (0.055 / 100) ** 0.5, abs=1e-6)
    # 83 tasks three times, .08/83, beat 100 tasks twice, .1/100
    odd = best_within(between=0.04, within=0.12, budget=250, most_tasks=100)
    assert odd is not None
    assert (odd.tasks, odd.trials) == (83, 3)
    four = best_within(between=0.04, within=0.12, budget=10, least_trials=4)
    assert four is not None
    assert (four.tasks, four.trials) == (2, 5)
    assert best_within(between=0.04, within=0.12, budget=3, least_trials=4) is None


def test_plans_refuse_what_cannot_be() -> None:
    """No width, no tasks, negative variances, quantiles that are none."""
    with pytest.raises(ValueError, match="a half width of 0"):
        list(designs(between=0.1, within=0.1, wanted=0, budget=10))
    with pytest.raises(ValueError, match="at least 0 trials"):
        best_within(between=0.1, within=0.1, budget=10, least_trials=0)
    with pytest.raises(ValueError, match="a chance of failing"):
        greens_against_luck(0)
    with pytest.raises(ValueError, match="over 0 tasks"):
        half_width(between=0.1, within=0.1, tasks=0, trials=1)
    with pytest.raises(ValueError, match="quantile of 1"):
        step_budget([1], quantile=1)


def test_a_step_budget_and_its_bound() -> None:
    """59 runs are the fewest whose largest bounds the 95 % quantile at 95 % (.95⁵⁹ = .0485); 58 have no bound."""
    enough, short = step_budget(range(1, 60)), step_budget(range(1, 59))

    assert enough is not None
    assert short is not None
    assert (enough.steps, enough.upper, enough.runs, enough.runs_needed) == (57, 59, 59, 59)
    assert (short.steps, short.upper) == (56, None)
    assert step_budget([]) is None


def test_the_bound_of_a_median() -> None:
    """Of ten runs the ninth smallest bounds the median: at most eight of ten lie below it with chance .9893."""
    found = step_budget(range(1, 11), quantile=0.5)

    assert found is not None
    assert (found.steps, found.upper) == (5, 9)


@given(st.floats(0, 0.25), st.floats(0, 0.25), st.integers(1, 60), st.integers(1, 20), st.integers(1, 4))
def test_no_other_design_within_the_budget_is_narrower(
    between: float, within: float, budget: int, most: int, least: int
) -> None:
    """Against every pair of tasks and trials that can be paid for."""
    best = best_within(between=between, within=within, budget=budget, most_tasks=most, least_trials=least)
    others = [
        half_width(between=between, within=within, tasks=tasks, trials=trials)
        for trials in range(least, budget + 1)
        for tasks in range(1, min(most, budget // trials) + 1)
    ]

    if not others:
        assert best is None
    else:
        assert best is not None
        assert best.runs <= budget
        assert best.half_width == pytest.approx(min(others))

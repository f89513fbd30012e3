"""Errors of means over tasks, and of differences of two agents on the same tasks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.clustered import (
    cluster_standard_error,
    design_effect,
    independent_standard_error,
    spread,
)
from redfirst.evaluators.statistics.paired import (
    mcnemar_exact,
    paired_difference,
    smallest_detectable_difference,
)

SCORES = [1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1]
CLUSTERS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
FIRST = [1, 1, 1, 0, 1, 1, 0, 1, 1, 1]
SECOND = [1, 0, 1, 0, 0, 1, 0, 1, 0, 1]


def test_clustered_errors() -> None:
    """Four clusters of three, against statsmodels without its correction (.181621) and with it (.209718)."""
    assert independent_standard_error(SCORES) == pytest.approx(0.148647, abs=1e-6)
    assert cluster_standard_error(SCORES, CLUSTERS) == pytest.approx(0.181621, abs=1e-6)
    corrected = cluster_standard_error(SCORES, CLUSTERS, small_sample_correction=True)
    assert corrected == pytest.approx(0.209718, abs=1e-6)
    assert design_effect(SCORES, CLUSTERS) == pytest.approx((0.181621 / 0.148647) ** 2, abs=1e-5)


def test_one_cluster_has_no_error() -> None:
    """An error of 0 would be a claim; there is none."""
    assert independent_standard_error([1]) is None
    assert cluster_standard_error([1, 0], [7, 7]) is None
    assert design_effect([1, 0], [7, 7]) is None
    assert design_effect([1, 1], [1, 2]) is None
    with pytest.raises(ValueError, match="clusters"):
        cluster_standard_error([1, 0], [7])


def test_variance_from_counts() -> None:
    """Eight tasks of eight trials; four always pass, four half of the time."""
    found = spread([8] * 8, [8] * 4 + [4] * 4)

    assert found is not None
    assert found.mean == 0.75
    assert found.of_task_means == pytest.approx(0.071429, abs=1e-6)
    assert found.within == pytest.approx(0.142857, abs=1e-6)
    assert found.between == pytest.approx(0.053571, abs=1e-6)
    assert found.standard_error == pytest.approx(0.094491, abs=1e-6)
    assert found.naive == pytest.approx((0.75 * 0.25 / 64) ** 0.5)


def test_the_spread_within_one_task_needs_two_trials() -> None:
    """One trial each, or one task, tells nothing of where variance comes from."""
    assert spread([1, 2], [1, 1]) is None
    assert spread([8], [4]) is None


def test_the_decomposition_is_unbiased() -> None:
    """Over many suites of tasks at .2, .5 and .8 its means are the variances that were put in."""
    rng = np.random.default_rng(5)
    rates = rng.choice([0.2, 0.5, 0.8], size=(400, 60))
    passes = rng.binomial(6, rates)
    found = [spread([6] * 60, row) for row in passes]

    assert np.mean([one.within for one in found if one]) == pytest.approx(0.19, abs=0.002)
    assert np.mean([one.between for one in found if one]) == pytest.approx(0.06, abs=0.002)


@pytest.mark.parametrize(
    ("b", "c", "p"),
    [
        (19, 0, 2 * 2**-19),
        (18, 1, 7.63e-05),
        (10, 2, 0.03857),
        (6, 0, 0.03125),
        (5, 0, 0.0625),
        (1, 1, 1),
        (0, 0, 1),
        (3, 0, 0.25),
    ],
)
def test_mcnemar(b: int, c: int, p: float) -> None:
    """Against statsmodels' exact test; the order of the two does not matter."""
    assert mcnemar_exact(b, c) == mcnemar_exact(c, b) == pytest.approx(p, rel=5e-4)


def test_mcnemar_refuses_negative_counts() -> None:
    """There are no minus one pairs."""
    with pytest.raises(ValueError, match="-1"):
        mcnemar_exact(-1, 0)


def test_paired_errors() -> None:
    """Ten tasks that correlate at .5: the paired error is .1528, where the unpaired one is .2134."""
    found = paired_difference(FIRST, SECOND)
    alone = [independent_standard_error(scores) or 0.0 for scores in (FIRST, SECOND)]

    assert np.hypot(*alone) == pytest.approx(0.213437, abs=1e-6)
    assert np.corrcoef(FIRST, SECOND)[0, 1] == pytest.approx(0.5)
    assert found is not None
    assert found.value == pytest.approx(0.3)
    assert found.standard_error == pytest.approx(0.152753, abs=1e-6)
    assert found.interval is not None
    # t at 97.5 % with 9 degrees of freedom is 2.262157
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (0.3 - 2.262157 * 0.152753, 0.3 + 2.262157 * 0.152753), abs=1e-5
    )
    # z at 97.5 % and at 80 %: 1.959964 + 0.841621
    assert found.smallest_detectable == pytest.approx(2.801585 * 0.152753, abs=1e-5)


def test_paired_errors_over_families_of_tasks() -> None:
    """Two families: deviations from .3 sum to −.2 and +.2, so the error is √.08 / 10, with one degree of freedom."""
    found = paired_difference(FIRST, SECOND, clusters=["a"] * 4 + ["b"] * 6)

    assert found is not None
    # family a has d = 0,1,0,0 (sum 1 − 4·.3 = −.2), family b 1,0,0,0,1,0 (sum 2 − 6·.3 = .2)
    assert found.standard_error == pytest.approx(np.sqrt(0.08) / 10)
    assert found.interval is not None
    assert found.interval.high - 0.3 == pytest.approx(12.7062 * np.sqrt(0.08) / 10, rel=1e-5)


def test_one_task_has_a_difference_and_no_error() -> None:
    """And no task has no difference."""
    found = paired_difference([1], [0])

    assert found is not None
    assert found.value == 1
    assert found.standard_error is found.interval is found.smallest_detectable is None
    assert paired_difference([], []) is None
    with pytest.raises(ValueError, match="one score per task"):
        paired_difference([1], [1, 0])


def test_half_a_power_needs_no_more_than_the_quantile() -> None:
    """At power one half the detectable difference is the half width of the interval."""
    assert smallest_detectable_difference(0.1, power=0.5) == pytest.approx(0.1959964, abs=1e-6)


@given(st.lists(st.integers(0, 8), min_size=2, max_size=20))
def test_tasks_of_their_own_are_clusters_of_one(passes: list[int]) -> None:
    """With each score its own cluster and the correction, the clustered error is the independent one."""
    error = cluster_standard_error(passes, range(len(passes)), small_sample_correction=True)

    assert error == pytest.approx(independent_standard_error(passes), abs=1e-12)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=20))
def test_an_agent_against_itself_differs_by_nothing(passes: list[int]) -> None:
    """And swapping two agents flips the sign."""
    same = paired_difference(passes, passes)
    other = paired_difference(passes, passes[::-1])
    swapped = paired_difference(passes[::-1], passes)

    assert same is not None
    assert other is not None
    assert swapped is not None
    assert same.value == 0
    assert other.value == pytest.approx(-swapped.value)
    assert other.standard_error == pytest.approx(swapped.standard_error)

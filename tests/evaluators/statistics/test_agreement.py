"""How far judges agree, and what a judge's errors do to a rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redfirst.evaluators.statistics.agreement import (
    cohen_kappa,
    confusion,
    detector_rates,
    gwet_ac1,
    rogan_gladen,
)

tables = st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=3, max_size=3)


def test_kappa() -> None:
    """.7 with an error of .0711, as statsmodels has it."""
    found = cohen_kappa([[40, 5], [10, 45]])

    assert found is not None
    assert found.value == pytest.approx(0.7)
    assert found.standard_error == pytest.approx(0.0711, abs=5e-5)
    assert (found.interval.low, found.interval.high) == pytest.approx((0.561, 0.839), abs=5e-4)


def test_a_rare_class_pulls_kappa_down_and_not_ac1() -> None:
    """91 % agreement: κ = .1346, while AC1 = (.91 − .10395)/(1 − .10395) = .8996."""
    table = [[90, 4], [5, 1]]
    found = cohen_kappa(table)

    assert found is not None
    assert found.value == pytest.approx(0.1346, abs=5e-5)
    assert gwet_ac1(table) == pytest.approx(0.8996, abs=5e-5)


def test_agreement_without_a_choice_is_undefined() -> None:
    """All cases of one class, and no case."""
    assert cohen_kappa([[5, 0], [0, 0]]) is None
    assert cohen_kappa([[0, 0], [0, 0]]) is None
    assert gwet_ac1([[0, 0], [0, 0]]) is None
    assert gwet_ac1([[5, 0], [0, 0]]) == 1


@pytest.mark.parametrize("table", [[[1, 2]], [1, 2], [[1, -1], [0, 1]]])
def test_tables_are_square_counts(table: list[list[int]]) -> None:
    """Anything else is refused."""
    with pytest.raises(ValueError, match="square table"):
        cohen_kappa(table)
    with pytest.raises(ValueError, match="two classes"):
        gwet_ac1([[3]])


def test_a_table_of_judgements() -> None:
    """Rows are the first judge; an unknown class and a missing judgement are refused."""
    assert confusion("aab", "aba", "ab").tolist() == [[1, 1], [1, 0]]
    with pytest.raises(ValueError, match="'a', 'b'"):
        confusion("ac", "ab", "ab")
    with pytest.raises(ValueError, match="shorter"):
        confusion("aa", "a", "ab")


@given(tables)
def test_agreement_is_symmetric_and_bounded(rows: list[list[int]]) -> None:
    """Swapping the judges changes nothing, and perfect judges agree fully."""
    table = np.array(rows)
    one, other = cohen_kappa(table), cohen_kappa(table.T)
    if one is not None:
        assert other is not None
        assert one.value == pytest.approx(other.value)
        assert one.standard_error == pytest.approx(other.standard_error)
        assert -1 <= one.interval.low <= one.value <= one.interval.high <= 1
    ac1 = gwet_ac1(table)
    assert ac1 is None or ac1 <= 1 + 1e-12
    perfect = cohen_kappa(np.diag([4, 5, 6]))
    assert perfect is not None
    assert perfect.value == pytest.approx(1)
    assert perfect.standard_error == pytest.approx(0, abs=1e-8)


def test_a_detector() -> None:
    """19 of 20 found, 70 of 80 left alone; with no case of a kind its rate is undefined."""
    found = detector_rates(hits=19, misses=1, false_alarms=10, rejections=70)
    none = detector_rates(hits=0, misses=0, false_alarms=0, rejections=0)

    assert (found.sensitivity, found.specificity) == (0.95, 0.875)
    assert found.sensitivity_interval.low < 0.95 < found.sensitivity_interval.high
    assert found.specificity_interval.low < 0.875 < found.specificity_interval.high
    assert none.sensitivity is none.specificity is None


def test_the_rate_behind_a_detector() -> None:
    """10 % so, 90 % found, 95 % left alone: .135 is reported, and .1 comes back; a coin tells nothing."""
    assert rogan_gladen(0.9 * 0.1 + 0.05 * 0.9, sensitivity=0.9, specificity=0.95) == pytest.approx(0.1)
    assert rogan_gladen(0.01, sensitivity=0.9, specificity=0.95) == 0
    assert rogan_gladen(1.0, sensitivity=0.9, specificity=0.95) == 1
    assert rogan_gladen(0.5, sensitivity=0.5, specificity=0.5) is None

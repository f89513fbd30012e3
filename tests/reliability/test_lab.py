"""The lab's odd scenarios and breaks are what they are said to be."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark as it is run, from its folder."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import lab

    return lab


def test_twenty_requests_and_two_odd_ones(lab: ModuleType):
    """Each with an answer that is known to be right."""
    assert len(lab.SCENARIOS) == 22
    assert {one.task.id for one in lab.SCENARIOS} == set(lab.ANSWERS)


def test_the_dear_route_is_right_and_costs_ten_times_as_much(lab: ModuleType):
    """No outcome metric and no rule sees it."""
    plain = next(one for one in lab.SCENARIOS if one.name == lab.DEAR.task.id)
    dear, well = (list(lab.play(lab.HEALTHY, [one])) for one in (lab.DEAR, plain))

    assert all(run.right and not run.failed and not run.capped for run in (*dear, *well))
    assert sum(run.tokens for run in dear) >= 10 * sum(run.tokens for run in well)


def test_the_side_effect_leaves_the_outcome_right(lab: ModuleType):
    """Only the comparison of states sees it."""
    runs = list(lab.play(lab.HEALTHY, [lab.SIDE]))

    assert all(run.right for run in runs)
    assert {run.failed for run in runs} == {("state.collateral",)}


def test_half_the_cap_cuts_the_dear_route(lab: ModuleType):
    """And the run says so."""
    half = next(one for one in lab.BREAKS if one.step_cap != lab.HEALTHY.step_cap)
    runs = list(lab.play(half, [lab.DEAR]))

    assert all(run.capped and not run.right and run.model_calls == half.step_cap for run in runs)

"""The lab's odd scenarios and breaks are what they are said to be."""

from __future__ import annotations

from lab.playing import play
from lab.scenarios import ANSWERS, BREAKS, DEAR, HEALTHY, SCENARIOS, SIDE


def test_twenty_requests_and_two_odd_ones():
    """Each with an answer that is known to be right."""
    assert len(SCENARIOS) == 22
    assert {one.task.id for one in SCENARIOS} == set(ANSWERS)


def test_the_dear_route_is_right_and_costs_ten_times_as_much():
    """No outcome metric and no rule sees it."""
    plain = next(one for one in SCENARIOS if one.name == DEAR.task.id)
    dear, well = (list(play(HEALTHY, [one])) for one in (DEAR, plain))

    assert all(run.right and not run.failed and not run.capped for run in (*dear, *well))
    assert sum(run.tokens for run in dear) >= 10 * sum(run.tokens for run in well)


def test_the_side_effect_leaves_the_outcome_right():
    """Only the comparison of states sees it."""
    runs = list(play(HEALTHY, [SIDE]))

    assert all(run.right for run in runs)
    assert {run.failed for run in runs} == {("state.collateral",)}


def test_half_the_cap_cuts_the_dear_route():
    """And the run says so."""
    half = next(one for one in BREAKS if one.step_cap != HEALTHY.step_cap)
    runs = list(play(half, [DEAR]))

    assert all(run.capped and not run.right and run.model_calls == half.step_cap for run in runs)

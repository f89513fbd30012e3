"""What an error bar takes, and what a run may use."""

from __future__ import annotations

import math

import pytest

from redfirst.collector_processor.cli import main

from .conftest import Ask, Write, trials

GIVEN = ("--between", ".04", "--within", ".12")


def test_four_points_within_800_runs(ask: Ask):
    """(1.96/.04)²·(.04 + .12/n) tasks: 385 tried once, 241 twice, 154 five times; six times is more than 800 runs."""
    code, found = ask("plan", "--points", "4", "--runs", "800", *GIVEN)
    sizes = {one["trials"]: one["tasks"] for one in found["designs"]}

    assert code == 0
    assert (sizes[1], sizes[2], sizes[5]) == (385, 241, 154)
    assert max(sizes) == 5
    assert (found["best"]["tasks"], found["best"]["trials"]) == (800, 1)


@pytest.mark.parametrize(("tasks", "trials_each", "points"), [(40, 16, 6.75), (300, 2, 3.58), (400, 1, 3.92)])
def test_known_error_bars(ask: Ask, tasks: int, trials_each: int, points: float):
    """±6.75, ±3.58 and ±3.92 points for variances .04 and .12."""
    _, found = ask(
        *("plan", "--points", "1", "--runs", str(tasks * trials_each), "--tasks", str(tasks)), *GIVEN
    )

    assert found["best"]["trials"] == trials_each
    assert 100 * found["best"]["half_width"] == pytest.approx(points, abs=0.006)


def test_what_the_budget_does_not_reach_fails(ask: Ask):
    """Forty tasks never give ±4 points, however often they are tried: 1.96·√(.04/40) is 6.2."""
    code, found = ask("plan", "--points", "4", "--runs", "100000", "--tasks", "40", *GIVEN)

    assert (code, found["reached"], found["designs"]) == (1, False, [])
    assert found["best"]["half_width"] > 0.0619


def test_the_variance_comes_from_a_pilot(write: Write, ask: Ask):
    """Eight tasks of eight trials: between .053571, within .142857; runs cost half a dollar each."""
    pilot = write([{**one, "cost": 0.5} for one in trials([8, 8, 8, 8, 4, 4, 4, 4], 8)])
    _, found = ask("plan", pilot, "--points", "10", "--cost", "100", "--trials", "4")

    assert found["variance"]["between"] == pytest.approx(0.053571, abs=5e-7)
    assert found["variance"]["within"] == pytest.approx(0.142857, abs=5e-7)
    assert (found["wanted"]["runs"], found["cost_per_run"]) == (200, 0.5)
    tasks = math.ceil((1.959964 / 0.1) ** 2 * (0.053571 + 0.142857 / 4))
    assert (found["designs"][0]["tasks"], found["designs"][0]["trials"]) == (tasks, 4)


def test_caps_come_from_passing_runs(write: Write, ask: Ask):
    """99 passing runs of 1 to 99 steps and one failure of 500: 95 of 100 keep within 95, surely within 99."""
    records = [{"task": f"t{n}", "trial": 0, "passed": True, "steps": n} for n in range(1, 100)]
    _, found = ask("plan", write([*records, {"task": "lost", "trial": 0, "passed": False, "steps": 500}]))
    cap = found["caps"]["steps"]

    assert (cap["cap"], cap["passing_runs"], cap["runs_needed"]) == (95, 99, 59)
    # the 98th of 99 has 95 of 100 below it with confidence .96, the 97th with .88
    assert cap["sure_cap"] == 98
    assert cap["uncapped"]["success"] == pytest.approx(0.99)
    assert cap["capped"]["success"] == pytest.approx(0.98)
    # steps per success: (4950 + 500)/99, and (4950 − 99 + 98 + 98)/98 when runs are cut at 98
    assert cap["uncapped"]["per_success"] == pytest.approx(5450 / 99)
    assert cap["capped"]["per_success"] == pytest.approx((4851 + 98 + 98) / 98)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--points", "4", *GIVEN),
        ("--points", "4", "--runs", "10"),
        ("--points", "4", "--runs", "10", "--between", ".2", "--within", ".2"),
        ("--points", "4", "--runs", "10", "--between", ".2"),
        ("--points", "0", "--runs", "10", *GIVEN),
        ("--points", "4", "--runs", "3", "--trials", "4", *GIVEN),
        ("--points", "4", "--cost", "10", *GIVEN),
        ("--quantile", "1.5"),
    ],
)
def test_what_is_missing_is_said(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]):
    """Exit code 2 and one line."""
    assert main(["plan", *arguments]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_pilot_of_single_trials_cannot_tell_chance_from_tasks(
    write: Write, capsys: pytest.CaptureFixture[str]
):
    """It says what would."""
    assert main(["plan", write(trials([1, 0, 1], 1)), "--points", "4", "--runs", "800"]) == 2
    assert "try each task twice" in capsys.readouterr().err


def test_the_table_fits(capsys: pytest.CaptureFixture[str]):
    """And begins with the answer."""
    assert main(["plan", "--points", "4", "--runs", "800", *GIVEN]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0] == "±4 points within 800 runs: 385 tasks × 1, 385 runs"
    assert max(map(len, lines)) <= 80


def test_what_is_not_reached_says_what_would_be(capsys: pytest.CaptureFixture[str]):
    """The best that the budget and the tasks allow, and the floor that more trials do not go below."""
    arguments = ("--points", "4", "--runs", "640", "--tasks", "40", "--trials", "4", *GIVEN)
    assert main(["plan", *arguments]) == 1
    out = capsys.readouterr().out

    assert "NOT REACHED; the best is ±6.8 points, 40 tasks × 16" in " ".join(out.split())
    assert "never get below ±6.2 points" in out
    assert "pass^4" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--points", "4", "--runs", "800", "--between", "nan", "--within", ".1"), "both are at least 0"),
        (("--points", "4", "--runs", "1000000000000", *GIVEN), "give at most 1000000"),
        (("--points", "1e-300", "--runs", "800", *GIVEN), "between 0.001 and 100"),
        (("--runs", "800"), "--runs says nothing without --points"),
    ],
)
def test_numbers_no_plan_can_be_made_of_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
):
    """One line, no traceback and no terabytes."""
    assert main(["plan", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("dollars", ["nan", "inf", "-5", "0", "1e12"])
def test_a_budget_of_dollars_is_a_number_above_nothing(
    write: Write, capsys: pytest.CaptureFixture[str], dollars: str
):
    """Half a dollar a run: a trillion dollars are no plan either."""
    pilot = write([{**one, "cost": 0.5} for one in trials([2, 1], 2)])

    assert main(["plan", pilot, "--points", "4", f"--cost={dollars}"]) == 2
    assert "give dollars above 0" in capsys.readouterr().err


def test_runs_that_cost_nothing_are_not_runs_of_unknown_cost(
    write: Write, capsys: pytest.CaptureFixture[str]
):
    """0 is a price."""
    pilot = write([{**one, "cost": 0} for one in trials([2, 1], 2)])

    assert main(["plan", pilot, "--points", "4", "--cost", "5"]) == 2
    assert "cost nothing" in capsys.readouterr().err

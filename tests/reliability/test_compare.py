"""Two agents on the same tasks."""

from __future__ import annotations

import pytest

from redfirst.collector_processor.cli import main

from .conftest import Ask, Write, trials

FIRST = [1, 1, 1, 0, 1, 1, 0, 1, 1, 1]
SECOND = [1, 0, 1, 0, 0, 1, 0, 1, 0, 1]


def test_one_trial_a_task_takes_mcnemars_exact_test(write: Write, ask: Ask):
    """Discordant pairs 3:0 give p = .25; the paired standard error is .152753."""
    code, found = ask("compare", write(trials(FIRST, 1), "a.jsonl"), write(trials(SECOND, 1), "b.jsonl"))

    assert (code, found["test"], found["p"]) == (0, "McNemar exact", pytest.approx(0.25))
    assert (found["better"], found["worse"], found["tasks"]) == (0, 3, 10)
    assert found["difference"] == pytest.approx(-0.3)
    assert found["standard_error"] == pytest.approx(0.152753, abs=5e-7)
    assert found["fewest_changes"] == 6  # 2·½⁶ = .031, 2·½⁵ = .0625
    assert found["smallest_detectable"] == pytest.approx((1.959964 + 0.841621) * 0.152753, abs=1e-5)


def test_worse_beyond_chance_fails(write: Write, ask: Ask):
    """19 tasks lost and none won: p = 2·2⁻¹⁹, exit code 1; the other way round it passes."""
    good, bad = write(trials([1] * 19 + [0] * 11, 1), "a.jsonl"), write(trials([0] * 30, 1), "b.jsonl")
    code, found = ask("compare", good, bad)

    assert (code, found["significant"]) == (1, True)
    assert found["p"] == pytest.approx(2 * 0.5**19)
    assert ask("compare", bad, good)[0] == 0


def test_several_trials_are_paired_per_task(write: Write, ask: Ask):
    """Shares .75 and .5, 1 and .5, .5 and .5: differences −.25, −.5, 0, mean −.25, standard error .25/√3."""
    code, found = ask(
        "compare", write(trials([3, 4, 2], 4), "a.jsonl"), write(trials([2, 2, 2], 4), "b.jsonl")
    )

    assert (code, found["test"], found["fewest_changes"]) == (0, "paired t over tasks", None)
    assert found["difference"] == pytest.approx(-0.25)
    assert found["standard_error"] == pytest.approx(0.25 / 3**0.5)
    assert found["p"] == pytest.approx(0.2254, abs=5e-5)  # t = −√3 with 2 degrees of freedom


def test_families_of_tasks_are_clusters(write: Write, ask: Ask):
    """Two groups are two pieces of evidence, however many tasks they hold."""
    family = {"t0": "x", "t1": "x", "t2": "y", "t3": "y"}
    sides = [
        write([{**one, "group": family[one["task"]]} for one in trials(passes, 1)], name)
        for name, passes in (("a.jsonl", [1, 1, 1, 1]), ("b.jsonl", [0, 0, 1, 1]))
    ]
    _, found = ask("compare", *sides)

    assert found["test"] == "paired t over groups"


def test_unequal_limits_are_refused_unless_told(write: Write, capsys: pytest.CaptureFixture[str]):
    """A longer leash passes more by itself; with one side's limit unknown it is said."""
    sides = [
        write([{**one, "cap": cap} for one in trials([1, 0] * 3, 1)], f"{cap}.jsonl") for cap in (12, 24)
    ]
    bare = write(trials([1, 0] * 3, 1), "bare.jsonl")

    assert main(["compare", *sides]) == 2
    assert "the first ran under 12, the second under 24" in capsys.readouterr().err
    assert main(["compare", *sides, "--unequal-caps"]) == 0
    assert main(["compare", sides[0], bare]) == 0
    assert "only one of the two" in capsys.readouterr().err


def test_tasks_of_one_side_alone_are_left_out_and_named(write: Write, ask: Ask):
    """Only what both tried is compared."""
    _, found = ask("compare", write(trials([1, 1, 1], 1), "a.jsonl"), write(trials([1, 1], 1), "b.jsonl"))

    assert (found["tasks"], found["only_a"], found["only_b"]) == (2, ["t2"], [])
    assert found["a"]["tasks"] == 2


def test_nothing_in_common_is_a_mistake(write: Write, capsys: pytest.CaptureFixture[str]):
    """And not a difference of 0."""
    other = write([{"task": "x", "trial": 0, "passed": True}], "b.jsonl")

    assert main(["compare", write(trials([1], 1), "a.jsonl"), other]) == 2
    assert "no task in common" in capsys.readouterr().err


def test_one_task_gives_no_verdict(write: Write, ask: Ask):
    """However often it is tried, it says nothing of other tasks."""
    code, found = ask("compare", write(trials([8], 8), "a.jsonl"), write(trials([0], 8), "b.jsonl"))

    assert (code, found["p"], found["low"]) == (3, None, None)


def test_tasks_that_all_differ_by_the_same_are_not_certain(write: Write, ask: Ask):
    """Six of six tasks fall from 4/4 to 0/4: sign test 2·½⁶; the interval is not a point. Nor is it when none differs."""
    good, bad = write(trials([4] * 6, 4), "a.jsonl"), write(trials([0] * 6, 4), "b.jsonl")
    code, worse = ask("compare", good, bad)
    _, same = ask("compare", good, good)

    assert (code, worse["test"], worse["p"]) == (1, "sign test", pytest.approx(0.03125))
    other = 1 - 0.025 ** (1 / 6)  # of six tasks none differs: up to so many elsewhere may
    assert (worse["low"], worse["high"]) == (-1, pytest.approx(-1 + 2 * other))
    assert (same["p"], same["low"], same["high"]) == (1, pytest.approx(-other), pytest.approx(other))


def test_a_gate_decides_alone(write: Write):
    """Not worse than 5 points, by the lower end of the interval."""
    sides = (
        write(trials([1] * 20 + [0] * 20, 1), "a.jsonl"),
        write(trials([1] * 21 + [0] * 19, 1), "b.jsonl"),
    )

    assert main(["compare", *sides, "--require", "difference.low>=-.05"]) == 0
    assert main(["compare", *sides, "--require", "difference.low>=0"]) == 1
    assert main(["compare", *sides, "--require", "difference>=0", "--min-tasks", "100"]) == 3


def test_another_verdict_can_be_compared(write: Write, ask: Ask):
    """Equal on outcome, different on the way."""
    first = [{**one, "goal": True, "violations": []} for one in trials([1, 1, 1], 1)]
    second = [{**one, "goal": True, "violations": ["verify"]} for one in trials([0, 0, 0], 1)]
    sides = (write(first, "a.jsonl"), write(second, "b.jsonl"))

    assert ask("compare", *sides, "--on", "goal")[1]["difference"] == 0
    assert ask("compare", *sides, "--on", "strict")[1]["difference"] == -1


def test_the_table_answers_first_and_fits(write: Write, capsys: pytest.CaptureFixture[str]):
    """The first line is the finding."""
    assert main(["compare", write(trials(FIRST, 1), "a.jsonl"), write(trials(SECOND, 1), "b.jsonl")]) == 0
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("NOT SHOWN: B − A = -30.0 points")
    assert max(map(len, lines)) <= 80


def test_prices_and_what_was_left_out_stand_beside(write: Write, capsys: pytest.CaptureFixture[str]):
    """Twice the tokens for half the successes is four times the price."""
    first = [{**one, "tokens": 100} for one in trials([1] * 6, 1)]
    second = [{**one, "tokens": 200} for one in trials([1, 1, 1, 0, 0, 0], 1)] + [
        {"task": "x", "trial": 0, "passed": None}
    ]
    assert main(["compare", write(first, "a.jsonl"), write(second, "b.jsonl")]) == 0
    out = " ".join(capsys.readouterr().out.split())

    assert "tokens per success 100 400 ×4.00" in out
    assert "1 tasks have a verdict in B alone, or nowhere, and are left out: x" in out


def test_equal_differences_are_equal_whatever_their_rounding(write: Write, ask: Ask):
    """1 − 2/3 and 2/3 − 1/3 differ in the last bit: that bit is no spread. Six tasks that all gain a third are a sign
    test of p = 2·½⁶, no certainty, and the interval is not a point."""
    code, found = ask(
        *("compare", write(trials([2, 1] * 3, 3), "a.jsonl"), write(trials([3, 2] * 3, 3), "b.jsonl"))
    )

    assert (code, found["test"], found["standard_error"]) == (0, "sign test", 0)
    assert found["p"] == pytest.approx(2 * 0.5**6)
    assert found["low"] < 0 < found["high"]


@pytest.mark.parametrize(("tasks", "each", "code"), [(1, 1, 3), (5, 1, 3), (6, 1, 1), (5, 3, 3), (6, 3, 1)])
def test_too_few_tasks_to_call_anything_are_no_pass(
    write: Write, ask: Ask, capsys: pytest.CaptureFixture[str], tasks: int, each: int, code: int
):
    """Five tasks that all change give p = 2·½⁵ = .0625: a gate that no agent can fail has no verdict."""
    sides = [
        write(trials([passes] * tasks, each), f"{name}.jsonl") for name, passes in (("a", each), ("b", 0))
    ]
    found = ask("compare", *sides)

    assert (found[0], found[1]["difference"], found[1]["p"] is None) == (code, -1, code == 3)
    main(["compare", *sides])
    assert capsys.readouterr().out.startswith("NO VERDICT" if code == 3 else "B IS WORSE")


def test_no_difference_of_shares_is_beyond_one(write: Write, ask: Ask):
    """Two of four tasks lost: t would reach to −1.42."""
    _, found = ask(
        *("compare", write(trials([1] * 4, 1), "a.jsonl"), write(trials([1, 1, 0, 0], 1), "b.jsonl"))
    )

    assert (found["low"], found["high"]) == (-1, pytest.approx(-0.5 + 3.182446 / 12**0.5))

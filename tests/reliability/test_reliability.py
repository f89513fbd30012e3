"""What ``redfirst reliability`` says of trials, against numbers worked out elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redfirst.collector_processor import extras
from redfirst.collector_processor.cli import main

from .conftest import Ask, Write, trials

RESULTS = Path(__file__).parents[1] / "fixtures" / "results"
AIRLINE = str(RESULTS / "tau_bench_airline_gpt-4o.json")


def test_the_published_table_of_tau_bench(ask: Ask):
    """pass^1 to pass^4 of gpt-4o on airline, as the table in tau-bench's README prints them."""
    code, found = ask("reliability", AIRLINE)

    assert code == 0
    assert [round(found["pass_hat"][str(k)], 3) for k in (1, 2, 3, 4)] == [0.420, 0.273, 0.220, 0.200]
    assert (found["tasks"], found["trials"], found["infra"]) == (50, 200, 0)


def test_eight_tasks_of_eight_trials(write: Write, ask: Ask):
    """Four tasks always pass, four half the time: combinations counted by hand."""
    _, found = ask("reliability", write(trials([8, 8, 8, 8, 4, 4, 4, 4], 8)))

    assert found["pass_at"]["2"] == pytest.approx(0.8929, abs=5e-5)
    assert found["pass_hat"]["2"] == pytest.approx(0.6071, abs=5e-5)
    assert (found["pass_at"]["8"], found["pass_hat"]["8"]) == (1, 0.5)
    assert found["variance"]["between_tasks"] == pytest.approx(0.053571, abs=5e-7)
    assert (len(found["always_passed"]), len(found["never_passed"])) == (4, 0)
    # mean .75, standard error .094491, Student's t with 7 degrees of freedom 2.36462
    assert found["success"]["low"] == pytest.approx(0.75 - 2.36462 * 0.094491, abs=1e-4)
    assert found["success"]["method"] == "t over tasks"


def test_one_trial_a_task_takes_wilson(write: Write, ask: Ask):
    """11 of 30: [21.87, 54.49]."""
    _, found = ask("reliability", write(trials([1] * 11 + [0] * 19, 1)))

    success = found["success"]
    assert success["method"] == "wilson"
    assert (success["low"], success["high"]) == (
        pytest.approx(0.2187, abs=5e-5),
        pytest.approx(0.5449, abs=5e-5),
    )
    assert found["pass_hat_interval"]["1"] == [success["low"], success["high"]]


def test_tasks_that_all_pass_still_have_an_interval(write: Write, ask: Ask):
    """Ten tasks that always pass may be nine of ten elsewhere: the exact lower bound is .025^(1/10)."""
    _, found = ask("reliability", write(trials([4] * 10, 4)))

    assert found["pass_hat"]["4"] == 1
    assert found["pass_hat_interval"]["4"] == [pytest.approx(0.025**0.1), 1.0]


def test_related_tasks_are_one_cluster(write: Write, ask: Ask):
    """Four families of three tasks: the cluster error is .181621 (Miller), √(4/3) of it for four clusters."""
    scores = [1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1]
    records = [
        {"task": f"t{n}", "trial": 0, "passed": bool(score), "group": f"g{n // 3}"}
        for n, score in enumerate(scores)
    ]
    _, found = ask("reliability", write(records))

    half = 3.18245 * 0.181621 * (4 / 3) ** 0.5  # Student's t with 3 degrees of freedom
    assert found["success"]["method"] == "t over groups"
    assert found["success"]["low"] == pytest.approx(max(0, 7 / 12 - half), abs=1e-4)
    assert found["success"]["estimate"] == pytest.approx(7 / 12)


def test_runs_without_a_verdict_are_left_out_and_both_denominators_shown(write: Write, ask: Ask):
    """t0 passes 2 of 3 judged, t1 1 of 2: success (2/3 + 1/2)/2; of four runs each (1/2 + 1/4)/2 to (3/4 + 3/4)/2."""
    records = trials([2, 1], 4)
    for task, trial in (("t0", 3), ("t1", 2), ("t1", 3)):
        next(one for one in records if (one["task"], one["trial"]) == (task, trial))["passed"] = None
    _, found = ask("reliability", write(records))

    assert (found["trials"], found["infra"]) == (8, 3)
    assert found["success"]["estimate"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert (found["success"]["passes"], found["success"]["of"]) == (3, 5)
    assert found["success_all_runs"] == {
        "if_all_failed": pytest.approx(0.375),
        "if_all_passed": pytest.approx(0.75),
    }
    # pass^2: t0 C(2,2)/C(3,2) = 1/3, t1 C(1,2) = 0
    assert found["pass_hat"]["2"] == pytest.approx(1 / 6)
    assert found["pass_hat"]["3"] is None


def test_min_trials_says_which_tasks_are_kept(write: Write, ask: Ask):
    """Two tasks of three trials and one of one: pass^3 is undefined until the third is left out."""
    path = write([*trials([3, 0], 3), {"task": "once", "trial": 0, "passed": True}])
    _, every = ask("reliability", path)
    _, kept = ask("reliability", path, "--min-trials", "3")

    assert (every["pass_hat"]["3"], every["tasks"]) == (None, 3)
    assert (kept["pass_hat"]["3"], kept["tasks"], kept["tasks_read"], kept["min_trials"]) == (0.5, 2, 3, 3)
    assert main(["reliability", path, "--min-trials", "4"]) == 2


def test_strict_goal_and_violations_stand_side_by_side(write: Write, ask: Ask):
    """Ten runs reach the goal, two of them by breaking a rule; two miss it."""
    records = [
        {
            "task": f"t{n}",
            "trial": 0,
            "passed": n < 8,
            "goal": n < 10,
            "violations": ["verify"] * (n in (8, 9, 10)),
        }
        for n in range(12)
    ]
    _, found = ask("reliability", write(records))

    assert [found[key]["estimate"] for key in ("strict", "goal")] == [
        pytest.approx(8 / 12),
        pytest.approx(10 / 12),
    ]
    among = found["violations_among_goal"]
    assert (among["passes"], among["of"]) == (2, 10)
    assert found["outcome_by_trajectory"] == {
        "right_clean": 8, "right_violated": 2, "wrong_clean": 1, "wrong_violated": 1,
    }  # fmt: skip
    assert found["violations"] == {"verify": 3}


def test_strict_is_unknown_where_nobody_looked(ask: Ask):
    """An outcome alone is no strict success."""
    _, found = ask("reliability", AIRLINE)

    assert (found["strict"], found["violations_among_goal"]) == (None, None)


def test_a_success_costs_what_all_runs_cost(write: Write, ask: Ask):
    """30 runs of 1,557 tokens with 11 successes: 4,246 each; a run without a verdict adds what it used."""
    records = [{**one, "tokens": 1557} for one in trials([1] * 11 + [0] * 19, 1)]
    _, found = ask("reliability", write(records))
    _, more = ask("reliability", write([*records, {"task": "t0", "trial": 1, "passed": None, "tokens": 110}]))

    assert found["tokens_per_success"] == pytest.approx(4246.36, abs=0.01)
    assert more["tokens_per_success"] == pytest.approx(4246.36 + 10, abs=0.01)


def test_no_success_has_no_price_and_unknown_use_none(write: Write, ask: Ask):
    """Nothing is divided by 0, and a run that does not say what it used makes the price unknown."""
    _, none = ask("reliability", write([{**one, "tokens": 5} for one in trials([0, 0], 1)]))
    _, unknown = ask("reliability", write([{"task": "a", "trial": 0, "passed": True}]))

    assert (none["tokens_per_success"], none["tokens_total"]) == (None, 10)
    assert (unknown["tokens_per_success"], unknown["tokens_total"]) == (None, None)


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        (["--require", "pass_hat[4]>=.5"], 1),
        (["--require", "pass_hat[4]>=20%"], 0),
        (["--require", "pass_hat[4].low>=.2"], 1),
        (["--require", "success>.4", "--require", "infra<=0"], 0),
        (["--require", "pass_hat[5]>=.1"], 3),
        (["--require", "strict>=.1"], 3),
        (["--require", "pass_hat[4]>=.1", "--min-tasks", "300"], 3),
        (["--require", "pass_hat[4]>=.5", "--min-tasks", "50"], 1),
        (["--min-tasks", "50"], 0),
        (["--require", "pass_hatt[4]>=.1"], 2),
        (["--require", "pass_hat[4]"], 2),
    ],
)
def test_gates(gate: list[str], code: int):
    """0 met, 1 not met, 2 a mistake in the gate, 3 no verdict: too few tasks, or a figure that is not defined."""
    assert main(["reliability", AIRLINE, *gate]) == code


def test_different_limits_are_not_put_together(write: Write, capsys: pytest.CaptureFixture[str]):
    """A higher cap passes more."""
    path = write([{"task": "a", "trial": n, "passed": True, "cap": 10 + n} for n in range(2)])

    assert main(["reliability", path]) == 2
    assert "different limits (10, 11)" in capsys.readouterr().err
    assert main(["reliability", path, "--unequal-caps"]) == 0


def test_a_task_belongs_to_one_group(write: Write):
    """Otherwise clusters would overlap."""
    path = write([{"task": "a", "trial": n, "passed": True, "group": f"g{n}"} for n in range(2)])

    assert main(["reliability", path]) == 2


def test_the_table_fits_a_terminal(write: Write, capsys: pytest.CaptureFixture[str]):
    """Names from a file neither widen it nor move the cursor."""
    records = [
        {
            "task": "t" * 200, "trial": n, "passed": None if n == 3 else n > 0, "goal": n > 0,
            "tokens": 10**7 + n, "cost": 3.5, "seconds": 60, "steps": 4, "ended": "user_stop",
            "violations": ["\x1b[2Jrule|" + "r" * 100],
        }
        for n in range(4)
    ]  # fmt: skip
    path = write(records)
    assert main(["reliability", path]) == 0
    out = capsys.readouterr().out

    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    for word in ("pass^k", "strict", "goal only", "violations in goal-passing runs", "all runs"):
        assert word in out


def test_markdown_shows_values_as_they_stand(write: Write, capsys: pytest.CaptureFixture[str]):
    """A rule's name makes no column, no image and no markup of a pull request."""
    name = "a|b <img src=x> ![x](y) `c`"
    path = write([{"task": "a", "trial": 0, "passed": False, "goal": True, "violations": [name]}])
    assert main(["reliability", path, "--markdown"]) == 0
    out = capsys.readouterr().out

    assert "| success | 0.0 % |" in out
    assert "a\\|b &lt;img src=x&gt; \\!\\[x\\](y) \\`c\\`" in out


def test_pictures(write: Write, tmp_path: Path):
    """One of each as SVG and PNG; the same numbers give the same SVG."""
    records = [
        {**one, "goal": True, "violations": [], "tokens": 100 + 10 * one["trial"]}
        for one in trials([4, 3, 1, 0], 4)
    ]
    path = write(records)
    for folder in ("one", "two"):
        assert main(["reliability", path, "--plot", str(tmp_path / folder)]) == 0
    names = {file.name for file in (tmp_path / "one").iterdir()}

    stems = ("budget", "outcome_trajectory", "pass_k", "tasks")
    assert names == {f"{stem}{suffix}" for stem in stems for suffix in (".svg", ".png")}
    for stem in stems:
        drawn = (tmp_path / "one" / f"{stem}.svg").read_bytes()
        assert drawn == (tmp_path / "two" / f"{stem}.svg").read_bytes()
    assert b"pass^k" in (tmp_path / "one" / "pass_k.svg").read_bytes()


def test_pictures_without_their_package_name_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """matplotlib is not part of the base install."""
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)

    assert main(["reliability", AIRLINE, "--plot", str(tmp_path)]) == 2
    assert "redfirst[plots]" in capsys.readouterr().err


@pytest.mark.parametrize(("bound", "code"), [("1", 0), (".5", 0), ("2", 1)])
@pytest.mark.parametrize("how", ["gone", "closed"])
def test_the_exit_code_is_the_verdict_though_nobody_reads(write: Write, how: str, bound: str, code: int):
    """A gate in a pipe whose reader has left, or without standard output at all, is neither met nor missed by that."""
    path = write(trials([1, 1], 1))
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", "reliability", path]
    command += ["--require", f"success>={bound}"]
    if how == "closed":
        command = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    buffered = {**os.environ, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=buffered) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()

    assert (process.returncode, said) == (code, b"")

"""What ``redfirst report`` says of the runs in a store."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.reliability.period import begin_of
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Label, Landing, RunState
from redfirst.evaluators.errors import ConfigurationError

HOUR = 3600 * 10**9
CURSOR = Position(1, 8)


def verdict(
    check: str,
    outcome: str,
    check_class: str = "trajectory",
    severity: str = "flag",
    of: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """One verdict as a record holds it."""
    numerator, denominator = of or (None, None)
    return {
        "check": check, "outcome": outcome, "class": check_class, "severity": severity, "revision": "r", "because": "",
        "score": None, "numerator": numerator, "denominator": denominator, "evidence": [],
    }  # fmt: skip


ENDED = verdict("termination", "passed", "goal")
CUT = verdict("termination", "failed", "goal")
CLEAN = verdict("repeats", "passed", of=(4, 4))
REPEATED = verdict("repeats", "failed", of=(1, 4))
OBEYED = verdict("verify", "passed")
BROKE = verdict("verify", "failed")


class Shop:
    """A store that runs are landed in."""

    def __init__(self, home: Path) -> None:
        self.store = SqliteStore(home / "store.sqlite3")
        self.home = str(home)
        self.count = 0

    def land(
        self,
        verdicts: Sequence[Mapping[str, Any]] | None,
        *,
        request: str = "hello",
        ended: tuple[str, int | None] = ("completed", None),
        agent: str | None = "support",
        ago: float = 0.5,
        run_id: str | None = None,
        tokens: int | None = 100,
    ) -> str:
        """One run, judged so many hours ago; without verdicts it could not be judged."""
        self.count += 1
        name = run_id or f"{self.count:032x}"
        record = None
        if verdicts is not None:
            record = json.dumps(
                {
                    "trace_id": name, "request": request, "termination": {"reason": ended[0], "cap": ended[1]},
                    "tool_calls": [{}] * 4, "model_calls": 3, "errors": 1, "tokens": {"input": tokens, "output": tokens},
                    "verdicts": list(verdicts),
                }
            )  # fmt: skip
        flagged = any(one["outcome"] == "failed" and one["severity"] == "flag" for one in verdicts or ())
        landing = Landing(
            run_id=name,
            state=RunState.UNSCORED if verdicts is None else RunState.SCORED,
            spans=1,
            span_set_hash=f"h{self.count}",
            positions=[Position(1, self.count)],
            cut="root_ended",
            arrived_ns=1,
            judged_ns=time.time_ns() - int(ago * HOUR),
            record=record,
            agent=agent,
            flagged=flagged,
            verdicts=verdicts or (),
        )
        self.store.land([landing], cursor=CURSOR)
        return name


@pytest.fixture
def shop(tmp_path: Path):
    made = Shop(tmp_path)
    yield made
    made.store.close()


def said(shop: Shop, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """The objects that the report prints."""
    assert main(["report", "--home", shop.home, "--json", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_outcome_strict_and_violations(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """Four reach the goal, one of them against a rule; one is cut; a note and a check that is not applicable are none."""
    quiet = verdict("tool_errors", "failed", severity="note")
    shop.land([ENDED, CLEAN, OBEYED, quiet])
    shop.land([ENDED, CLEAN, verdict("verify", "not_applicable")])
    shop.land([ENDED, CLEAN, OBEYED], request="other")
    shop.land([ENDED, REPEATED, BROKE], request="third")
    shop.land([CUT, CLEAN, OBEYED], request="fourth", ended=("step_cap", 12))
    (found,) = said(shop, capsys)

    assert (found["agent"], found["runs"], found["unscored"]) == ("support", 5, 0)
    shares = {
        key: (found[key]["passes"], found[key]["of"])
        for key in ("goal", "strict", "violations_among_goal", "flagged")
    }
    assert shares == {"goal": (4, 5), "strict": (3, 5), "violations_among_goal": (1, 4), "flagged": (2, 5)}
    assert (found["repeats"]["numerator"], found["repeats"]["denominator"]) == (3, 20)
    assert (found["errors"]["numerator"], found["errors"]["denominator"]) == (5, 20)
    assert found["terminations"] == {"completed": 4, "step_cap": 1}
    assert found["caps"] == {"step_cap 12": 1}
    assert found["per_run"]["model_calls"]["median"] == 3
    assert found["per_run"]["tool_calls"]["median"] == 4
    assert found["tokens_per_success"] == pytest.approx(5 * 200 / 3)
    assert (found["requests"], len(found["always_succeeded"])) == (4, 1)


def test_what_is_missing_is_no_pass_and_no_failure(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """No goal check passed, an inconclusive rule, a broken infrastructure, a run that could not be judged."""
    shop.land([verdict("termination", "inconclusive", "goal"), CLEAN])
    shop.land([ENDED, verdict("verify", "inconclusive")])
    shop.land([CUT, CLEAN], ended=("infra", None))
    shop.land([OBEYED])
    shop.land(None)
    (found,) = said(shop, capsys)

    assert (found["runs"], found["unscored"]) == (5, 1)
    assert (found["goal"]["passes"], found["goal"]["of"]) == (1, 1)
    assert found["strict"] is None
    assert found["violations_among_goal"] is None
    assert found["tokens_per_success"] is None


def test_precision_and_recall_are_added_up(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """3 of 4 and 1 of 4 required calls are half; a check with its own name is of its kind."""
    shop.land(
        [
            ENDED,
            verdict("recall:status", "failed", "goal", of=(3, 4)),
            verdict("precision", "passed", of=(2, 2)),
        ]
    )
    shop.land(
        [
            ENDED,
            verdict("recall:refund", "failed", "goal", of=(1, 4)),
            verdict("recall:x", "not_applicable", "goal"),
        ]
    )
    (found,) = said(shop, capsys)

    assert (found["recall"]["value"], found["recall"]["runs"]) == (0.5, 2)
    assert (found["precision"]["value"], found["precision"]["runs"]) == (1.0, 1)


def test_the_latest_version_of_a_run_counts(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """Late spans change a verdict; they do not make a second run."""
    run_id = shop.land([CUT, CLEAN])
    shop.land([ENDED, CLEAN], run_id=run_id)
    (found,) = said(shop, capsys)

    assert (found["runs"], found["goal"]["passes"]) == (1, 1)


def test_a_period_and_an_agent(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """One object an agent, of the runs judged since."""
    shop.land([ENDED, CLEAN])
    shop.land([ENDED, CLEAN], agent="sales")
    shop.land([CUT, CLEAN], ago=30)

    assert [(one["agent"], one["runs"]) for one in said(shop, capsys)] == [("sales", 1), ("support", 1)]
    assert [one["runs"] for one in said(shop, capsys, "--agent", "support", "--since", "2d")] == [2]
    assert main(["report", "--home", shop.home, "--agent", "nobody"]) == 2
    assert "holds no run of agent 'nobody'" in capsys.readouterr().err


def test_what_people_said_of_failures(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """Right or wrong of a check's failures; a label on a check that did not fail is none of them."""
    first, second = shop.land([ENDED, BROKE]), shop.land([ENDED, BROKE])
    shop.store.label(Label(run_id=first, check="verify", right=True))
    shop.store.label(Label(run_id=second, check="verify", right=False))
    shop.store.label(Label(run_id=second, check="termination", right=True))
    (found,) = said(shop, capsys)

    assert found["checks"]["verify"]["failed"] == 2
    assert (found["checks"]["verify"]["labelled"], found["checks"]["verify"]["labelled_right"]) == (2, 1)
    assert found["checks"]["termination"]["labelled"] == 0


def test_a_label_on_the_run_counts_for_its_flags(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """Not for a note, not for what passed; the label on a check goes before that on the run."""
    noted = verdict("tool_errors", "failed", severity="note")
    first, second = shop.land([ENDED, BROKE, noted]), shop.land([ENDED, BROKE, REPEATED])
    shop.store.label(Label(run_id=first, check="", right=True))
    shop.store.label(Label(run_id=second, check="", right=True))
    shop.store.label(Label(run_id=second, check="verify", right=False))
    (found,) = said(shop, capsys)

    counts = {name: (one["labelled_right"], one["labelled"]) for name, one in found["checks"].items()}
    assert counts == {"verify": (1, 2), "repeats": (1, 1), "termination": (0, 0), "tool_errors": (0, 0)}


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        (["--require", "strict>=.5"], 0),
        (["--require", "strict>=.8"], 1),
        (["--require", "flagged<=.2"], 1),
        (["--require", "ended.completed>=1"], 0),
        (["--require", "recall>=.5"], 3),
        (["--require", "strict>=.5", "--min-runs", "100"], 3),
        (["--require", "stict>=.5"], 2),
        (["--since", "yesterday"], 2),
    ],
)
def test_gates(shop: Shop, gate: list[str], code: int):
    """0 met, 1 not met, 2 a mistake, 3 no verdict."""
    shop.land([ENDED, OBEYED])
    shop.land([ENDED, OBEYED])
    shop.land([ENDED, BROKE])

    assert main(["report", "--home", shop.home, *gate]) == code


def test_the_table_fits(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """Whatever an agent or a check is called."""
    shop.land(
        [ENDED, verdict("v" * 120, "failed"), verdict("recall:x", "passed", "goal", of=(1, 1))],
        agent="a" * 120,
        ended=("step_cap", 12),
    )
    assert main(["report", "--home", shop.home]) == 0
    out = capsys.readouterr().out

    assert max(map(len, out.splitlines())) <= 80
    for word in (
        "goal reached",
        "strict",
        "violations in goal-reaching runs",
        "recall",
        "repeats",
        "model calls",
        "tool calls",
        "runs at a cap: step_cap of 12: 1",
    ):
        assert word in out


@pytest.mark.parametrize(("text", "hours"), [("90m", 1.5), ("24h", 24), ("7d", 168), ("2w", 336)])
def test_a_period_is_so_long(text: str, hours: float):
    """From now back."""
    assert begin_of(text, 1000 * HOUR) == int((1000 - hours) * HOUR)


def test_a_date_is_in_utc_unless_it_says_otherwise():
    """1970-01-02 begins 24 hours after the epoch, two hours earlier at +02:00."""
    assert begin_of("1970-01-02", 0) == 24 * HOUR
    assert begin_of("1970-01-02T00:00+02:00", 0) == 22 * HOUR
    with pytest.raises(ConfigurationError):
        begin_of("1 h", 0)


def test_a_store_is_read_as_trials_too(shop: Shop, capsys: pytest.CaptureFixture[str]):
    """The same words asked again are the same task."""
    for verdicts in ([ENDED, CLEAN], [ENDED, BROKE]):
        shop.land(verdicts)
    shop.land(None, request="lost")
    shop.store.close()
    assert main(["reliability", shop.home, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert (found["tasks"], found["trials"], found["infra"]) == (2, 3, 1)
    assert found["success"]["estimate"] == 0.5
    assert found["goal"]["estimate"] == 1.0

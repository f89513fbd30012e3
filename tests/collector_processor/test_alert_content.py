"""What an alert says beside its numbers: what began near the change, and which failures a scenario keeps already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from redfirst.collector_processor.alerting.alertmanager import Alertmanager, alert
from redfirst.collector_processor.alerting.detector import Change, Detector
from redfirst.collector_processor.alerting.message import message
from redfirst.collector_processor.alerting.policy import HOUR_NS, Policy
from redfirst.collector_processor.alerting.runs import Observed
from redfirst.collector_processor.settings import AlertSettings
from redfirst.replay.covering import Cover, Covers

MINUTE_NS = HOUR_NS // 60
T0 = 500_000 * HOUR_NS
POLICY = Policy.of(
    AlertSettings(window_seconds=3600, short_window_seconds=3600, min_runs=5, false_alarms_a_week=None)
)
REPEATS = frozenset({("repeats", "r1", "refund")})


def run(minute: int, bad: bool, *, version: str = "1.0", models: tuple[str, ...] = ("m-1",)) -> Observed:
    """A run of its own minute."""
    when = T0 + minute * MINUTE_NS
    return Observed(
        run_id=f"{minute:032x}",
        version=1,
        judged_ns=when,
        at_ns=when,
        tenant="default",
        agent="support",
        failed=(("repeats", "again"),) if bad else (),
        signature=REPEATS if bad else frozenset(),
        decided=frozenset({"repeats"}),
        agent_version=version,
        models=models,
    )


def first_change(runs: list[Observed]) -> Change:
    """What is told first of these runs, looked at every minute."""
    detector = Detector(POLICY)
    for one in runs:
        detector.take(one)
        if changes := detector.tick(one.judged_ns):
            return changes[0]
    raise AssertionError("nothing changed")


def test_what_began_near_the_change_is_named() -> None:
    """A version that came with the failures and a model just before are; a version of four hours ago is no news."""
    quiet = [run(n, False, version="0.9" if n < 10 else "1.0") for n in range(250)]
    new_model = [run(n, False, models=("m-1", "m-2")) for n in range(250, 255)]
    failing = [run(n, True, version="2.0", models=("m-2",)) for n in range(255, 320)]
    body = message(first_change([*quiet, *new_model, *failing]), POLICY)

    assert body["status"] == "firing"
    assert [(one["what"], one["name"]) for one in body["began"]] == [("model", "m-2"), ("version", "2.0")]
    at = {one["name"]: one["at"] for one in body["began"]}
    assert at["m-2"] < at["2.0"] < body["at"]


def test_a_failure_that_a_scenario_keeps_is_not_frozen_again() -> None:
    """The command names the first failing run that nothing covers; there is none where all are covered."""
    odd = frozenset({("claims", "r7", "total")})
    runs = [replace(run(n, True), signature=odd if n == 2 else REPEATS) for n in range(12)]
    change = first_change(runs)
    cover = Cover(path=Path("scenarios/refunded-twice"), agent="support", proven=True, signature=REPEATS)
    body = message(change, POLICY, covers=Covers(known=(cover,)))
    covered = {"scenario": "refunded-twice", "proven": True}

    assert body["covered_by"] == [covered, covered, None, covered, covered]
    assert body["freeze"] == f"redfirst freeze {2:032x}"
    both = Covers(known=(cover, replace(cover, path=Path("scenarios/total"), signature=odd)))
    assert message(change, POLICY, covers=both)["freeze"] is None
    assert message(change, POLICY)["covered_by"] == [None] * 5
    other = Covers(known=(replace(cover, agent="sales"),))
    assert message(change, POLICY, covers=other)["freeze"] == f"redfirst freeze {0:032x}"


def test_alertmanager_is_told_both_and_takes_messages_of_before() -> None:
    """Annotations, no labels; a message that an earlier version kept has neither."""
    cover = Cover(path=Path("scenarios/refunded-twice"), agent="support", proven=True, signature=REPEATS)
    change = first_change([run(0, False), *(run(n, True, version="2.0") for n in range(1, 20))])
    body = message(change, POLICY, covers=Covers(known=(cover,)))
    to = Alertmanager(name="am", url="http://am.example", instance="here")

    sent: dict[str, Any] = alert(body, to, ends=0.0)
    assert sent["annotations"]["covered_by"] == "refunded-twice"
    assert sent["annotations"]["began"].startswith("version 2.0 since ")
    assert not {"covered_by", "began"} & set(sent["labels"])
    older = {key: value for key, value in body.items() if key not in ("covered_by", "began")}
    assert not {"covered_by", "began"} & set(alert(older, to, ends=0.0)["annotations"])

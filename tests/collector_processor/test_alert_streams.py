"""What is an observation of which stream: endings that say nothing of the agent, and tasks beside their agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from redfirst.collector_processor.alerting.alertmanager import Alertmanager, alert
from redfirst.collector_processor.alerting.detector import Change, Detector, Status
from redfirst.collector_processor.alerting.message import message
from redfirst.collector_processor.alerting.policy import HOUR_NS, Policy, Stream, alert_id
from redfirst.collector_processor.alerting.runs import Observations, Observed, observed
from redfirst.collector_processor.endings import ending_of
from redfirst.collector_processor.settings import AlertSettings
from redfirst.collector_processor.storing.store import RunState, StoredRun, request_hash
from redfirst.evaluators.trajectory import Stop

S = 1_000_000_000
T0 = 500_000 * HOUR_NS
WINDOW = Policy.of(
    AlertSettings(window_seconds=3600, short_window_seconds=3600, min_runs=5, false_alarms_a_week=None)
)
PAST = Policy.of(AlertSettings(threshold=None, false_alarms_a_week=0.5))
AGENT = Stream("default", "support")
INFRA, ABANDONED = AGENT._replace(about="infrastructure"), AGENT._replace(about="abandoned")


def run(
    number: int, bad: bool = False, ending: Stop = Stop.COMPLETED, *, at: int | None = None, task: str = ""
) -> Observed:
    """One run a minute."""
    when = T0 + number * 60 * S if at is None else at
    return Observed(
        run_id=f"{number:032x}",
        version=1,
        judged_ns=when,
        at_ns=when,
        tenant="default",
        agent="support",
        failed=(("repeats", "again"),) if bad else (),
        decided=frozenset({"repeats"}),
        ending=ending,
        ended_because="503 of the model's provider" if ending is Stop.INFRA else "",
        task=task,
    )


def stored(reason: str, *, outcome: str = "failed", request: str | None = None) -> StoredRun:
    verdict = {"check": "termination", "outcome": outcome, "severity": "flag", "because": "no end"}
    other = {"check": "repeats", "outcome": "passed", "severity": "flag", "because": ""}
    record = {
        "verdicts": [verdict, other],
        "termination": {"reason": reason, "cap": None},
        "request": request,
    }
    return StoredRun(
        run_id="a" * 32, version=1, state=RunState.SCORED, tenant="default", agent="support", flagged=True,
        spans=1, span_set_hash="", cut="root", arrived_ns=0, judged_ns=T0, record=record,
    )  # fmt: skip


def streams_of(seen: Observed) -> dict[Stream, list[bool]]:
    counted = Observations()
    counted.take(seen)
    return {stream: [sample.bad for sample in counted.samples(stream)] for stream in counted._streams}


def test_how_a_run_ended_says_what_it_is_counted_for() -> None:
    """Infrastructure's and abandoned runs are counted apart, a parked one nowhere but among those that came, and one of
    unknown end only for its checks."""
    came = AGENT._replace(about="coverage")

    assert streams_of(run(1, True, Stop.ERROR)) == {
        came: [False],
        INFRA: [False],
        ABANDONED: [False],
        AGENT: [True],
    }
    assert streams_of(run(1, True, Stop.INFRA)) == {came: [False], INFRA: [True]}
    assert streams_of(run(1, True, Stop.ABANDONED)) == {came: [False], INFRA: [False], ABANDONED: [True]}
    assert streams_of(run(1, True, Stop.PARKED)) == {came: [False]}
    assert streams_of(run(1, True, Stop.UNKNOWN)) == {came: [False], AGENT: [True]}


def test_the_stored_record_says_how_a_run_ended() -> None:
    """A lack of spans is no sign of an abandoned run; an old record that says nothing is of unknown end."""
    assert observed([stored("infra", outcome="inconclusive")]).ending is Stop.INFRA
    assert observed([stored("abandoned")]).ending is Stop.ABANDONED
    assert observed([stored("abandoned", outcome="inconclusive")]).ending is Stop.UNKNOWN
    assert observed([stored("parked", outcome="inconclusive")]).ending is Stop.PARKED
    assert ending_of({"verdicts": []}) is Stop.UNKNOWN
    assert observed([stored("completed", request="hello")]).task == request_hash("hello")
    assert observed([stored("completed")]).task == ""


def changes(detector: Detector, runs: Sequence[Observed], at: int) -> list[Change]:
    for one in runs:
        detector.take(one)
    return detector.tick(at)


def test_an_outage_of_the_provider_is_no_drop_of_the_agent() -> None:
    """Thirty of fifty runs end by infrastructure: a ticket that says so and freezes nothing, and nothing on the agent."""
    runs = [run(n, ending=Stop.INFRA if n % 5 < 3 else Stop.COMPLETED) for n in range(50)]
    (change,) = changes(Detector(WINDOW), runs, T0 + 50 * 60 * S)
    body = message(change, WINDOW)

    assert (change.stream, change.status) == (INFRA, Status.FIRING)
    assert (body["about"], body["severity"], body["flagged"], body["judged"]) == (
        "infrastructure",
        "ticket",
        30,
        50,
    )
    assert body["text"].startswith("agent support: 30 of 50 runs ended by infrastructure (interval ")
    assert body["reasons"] == [{"check": "termination", "runs": 30, "example": "503 of the model's provider"}]
    assert body["freeze"] is None
    assert sent(body)["labels"]["alertname"] == "RedfirstAgentInfrastructure"


def test_abandoned_runs_raise_an_alert_of_their_own() -> None:
    """Thirty of fifty stop without an end."""
    runs = [run(n, True, Stop.ABANDONED) if n % 5 < 3 else run(n) for n in range(50)]
    (change,) = changes(Detector(WINDOW), runs, T0 + 50 * 60 * S)
    body = message(change, WINDOW)

    assert (change.stream, body["severity"]) == (ABANDONED, "page")
    assert body["text"].startswith("agent support: 30 of 50 runs stopped without an end (interval ")
    assert body["freeze"] == f"redfirst freeze {0:032x}"
    assert sent(body)["labels"]["alertname"] == "RedfirstAgentAbandoned"


def test_parked_runs_neither_raise_an_alert_nor_water_it_down() -> None:
    """Twenty flagged runs of twenty fire beside a hundred that wait for a person, which pass what can be judged."""
    parked = [run(100 + n, ending=Stop.PARKED, at=T0 + n * S) for n in range(100)]
    (change,) = changes(Detector(WINDOW), [*parked, *(run(n, True) for n in range(20))], T0 + 1200 * S)

    assert (change.stream, change.count.flagged, change.count.judged) == (AGENT, 20, 20)


def test_both_rates_are_told_with_their_denominators() -> None:
    """20 of 40 judged runs; with 2 that infrastructure ended and 3 that were abandoned, 25 of 45."""
    runs = [run(n, n % 2 == 0) for n in range(40)]
    runs += [run(40 + n, ending=Stop.INFRA if n < 2 else Stop.ABANDONED) for n in range(5)]
    (change,) = changes(Detector(WINDOW), runs, T0 + 45 * 60 * S)
    body = message(change, WINDOW)

    assert (body["flagged"], body["judged"], body["of_all"]) == (20, 40, [25, 45])
    assert (body["infrastructure"], body["abandoned"]) == (2, 3)
    assert body["text"].endswith("; beside them 2 ended by infrastructure and 3 abandoned: 25 of 45 in all")


def test_what_is_too_old_is_forgotten_and_what_all_runs_say_is_held_once() -> None:
    """Memory: parts, which are in no stream, go like the others; a later version of what went is a run like any other."""
    held = Observations()
    runs = [run(n) for n in range(4)]
    held.take(runs[0])
    held.take(replace(runs[1], part=True))
    held.take(replace(runs[2], part=True))
    held.take(runs[3])
    assert held.run(runs[2].run_id).part
    held.forget(runs[2].judged_ns - 1)
    assert set(held._runs) == {runs[2].run_id, runs[3].run_id}
    assert [sample.run_id for sample in held.samples(AGENT)] == [runs[3].run_id]
    held.take(replace(runs[0], version=2))
    held.take(replace(runs[2], version=2))
    assert [sample.run_id for sample in held.samples(AGENT)] == [runs[n].run_id for n in (0, 2, 3)]
    held.forget(runs[3].judged_ns)
    assert (held._runs, held._parts, list(held.streams())) == ({}, set(), [])

    first, second = (observed([replace(stored("completed"), run_id=name * 32)]) for name in "ab")
    assert first.decided is second.decided


def nine_in_ten(first: int, count: int, task: str) -> list[Observed]:
    return [run(first + n, n % 10 == 9, task=task) for n in range(count)]


@pytest.mark.parametrize(("known", "found"), [(400, True), (250, False)])
def test_a_task_that_drops_while_its_agent_does_not(known: int, found: bool) -> None:
    """One task in three turns bad after its own past of so many runs: it has an alert from 300 on."""
    past = [run(3 * n + k, n % 10 == 9, task=f"{k}" * 32) for n in range(known) for k in range(3)]
    last = past[-1].judged_ns + HOUR_NS
    steady = [run(9000 + n, n % 10 == 9, at=last + n * 10 * S, task="1" * 32) for n in range(300)]
    worse = [run(8000 + n, True, at=last + (1 + n) * 240 * S + S, task="0" * 32) for n in range(10)]
    told = changes(Detector(PAST), [*past, *steady, *worse], last + 3000 * S)

    assert [change.stream for change in told] == ([AGENT._replace(task="0" * 32)] if found else [])
    if found:
        body = message(told[0], Policy.of(AlertSettings()))
        assert body["text"].startswith("agent support, task 000000000000: ")
        assert (body["task"], body["causes"], body["reference_runs"]) == ("0" * 32, ["drop"], 400)
        assert sent(body)["labels"]["task"] == "0" * 32


def test_an_agents_alert_says_what_those_of_its_tasks_would() -> None:
    """Both tasks drop: one alert, on the agent; while it fires the tasks have none, though each has fallen by itself."""
    past = [
        one
        for n in range(400)
        for one in (run(2 * n, n % 10 == 9, task="0" * 32), run(2 * n + 1, task="1" * 32))
    ]
    last = past[-1].judged_ns + 2 * HOUR_NS
    worse = [run(8000 + n, True, at=last + n * 60 * S, task=f"{n % 2}" * 32) for n in range(60)]
    detector = Detector(PAST)
    told = changes(detector, [*past, *worse], last + HOUR_NS)

    assert [change.stream for change in told] == [AGENT]
    assert {"0" * 32, "1" * 32} <= {s.task for s, mark in detector.now.items() if mark.causes == ("drop",)}


def test_a_task_has_no_objective_and_an_id_of_its_own() -> None:
    """A task that always fails more than is tolerated is what it was; that is no drop."""
    runs = [run(n, n % 2 == 0, task="0" * 32) for n in range(400)]
    told = changes(Detector(Policy.of(AlertSettings())), runs, T0 + 401 * 60 * S)

    assert [change.stream for change in told] == [AGENT]
    assert alert_id(AGENT._replace(task="0"), 1) != alert_id(AGENT, 1)


def sent(body: Any) -> dict[str, Any]:
    return alert(body, Alertmanager(name="am", url="http://h", instance="box"), ends=1.0)

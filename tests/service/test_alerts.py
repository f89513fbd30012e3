"""Alerts say what the stored runs say, once for each change, whatever order and however often they are read."""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from redfirst.collector_processor import extras
from redfirst.collector_processor.alerting.alertmanager import Alertmanager, alertmanagers
from redfirst.collector_processor.alerting.delivery import send
from redfirst.collector_processor.alerting.detector import Change, Detector, Status
from redfirst.collector_processor.alerting.file import FILE, AlertFile, Notice
from redfirst.collector_processor.alerting.notify import people
from redfirst.collector_processor.alerting.policy import COVERAGE, Policy, Standing, Stream, alert_id
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.runs import Observed, observed
from redfirst.collector_processor.alerting.watch import OUTBOX, Alerts, Watch
from redfirst.collector_processor.alerting.webhook import (
    EVENT,
    SIGNATURE,
    Posted,
    Webhook,
    allowed,
    post,
    webhooks,
)
from redfirst.collector_processor.companions import Parts
from redfirst.collector_processor.extras import MissingExtra
from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.settings import (
    AlertmanagerSettings,
    AlertSettings,
    NotifySettings,
    WebhookSettings,
)
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.statistics.proportions import wilson_bounds

from .conftest import eventually, looping
from .receiver import Receiver

S = 1_000_000_000
GIVE_UP = 86_400.0
T0 = 1_800_000_000 * S
POLICY = Policy.of(AlertSettings(window_seconds=100, min_runs=5, threshold=0.2, stale_seconds=1000))
AGENT = Stream("default", "support")


def seen(
    number: int,
    at: float,
    bad: bool = False,
    *,
    version: int = 1,
    decided: Sequence[str] = ("repeats",),
    first: float | None = None,
    agent: str = "support",
) -> Observed:
    """Run ``number``, judged ``at`` seconds after the beginning."""
    return Observed(
        run_id=f"{number:032x}",
        version=version,
        judged_ns=T0 + int(at * S),
        at_ns=T0 + int((at if first is None else first) * S) if decided else None,
        tenant="default",
        agent=agent,
        failed=(("repeats", f"reason {number}"),) if bad else (),
        decided=frozenset(decided),
    )


def told(changes: Sequence[Change]) -> list[str]:
    return [change.status.value for change in changes]


class Played:
    """A detector that is ticked by the second."""

    def __init__(self, policy: Policy = POLICY) -> None:
        self.detector = Detector(policy)
        self.changes: list[Change] = []

    def to(self, at: float, *runs: Observed) -> list[str]:
        for run in runs:
            self.detector.take(run)
        new = self.detector.tick(T0 + int(at * S))
        self.changes += new
        return told(new)

    @property
    def standing(self) -> Standing | None:
        mark = self.detector.now.get(AGENT)
        return None if mark is None else mark.standing


def test_too_few_runs_are_no_data_and_never_a_page() -> None:
    """Four failures of four tell nothing when five runs are asked for; the fifth tells."""
    played = Played()

    assert played.to(4, *(seen(n, n, True) for n in range(4))) == []
    assert played.standing is Standing.NO_DATA
    assert played.to(5, seen(5, 5, True)) == ["firing"]
    (change,) = played.changes
    assert (change.count.flagged, change.count.judged) == (5, 5)
    assert [run.run_id for run in change.failing] == [f"{n:032x}" for n in (0, 1, 2, 3, 5)]


def test_it_fires_by_the_bound_and_not_by_the_share() -> None:
    """Three of ten is more than the tolerated 20 %, and no evidence of it; twenty-four of sixty is."""
    played = Played()

    assert played.to(10, *(seen(n, n / 10, n % 10 < 3) for n in range(10))) == []
    assert wilson_bounds(3, 10, 3.0)[0] < 0.2
    assert played.standing is Standing.OK
    assert wilson_bounds(24, 60, 3.0)[0] > 0.2
    assert played.to(60, *(seen(n, n / 2, n % 5 < 2) for n in range(20, 80))) == ["firing"]


def test_between_the_bounds_a_state_stays_what_it_is() -> None:
    """A share that alone would not fire does not resolve either, until the upper bound is below the threshold."""
    played = Played()
    assert played.to(10, *(seen(n, 1, True) for n in range(20))) == ["firing"]

    # the twenty failures leave the window at 101 s; 1 of 10 flagged then may still be more than 20 %
    assert played.to(150, *(seen(100 + n, 110, n < 1) for n in range(10))) == []
    assert played.standing is Standing.FIRING
    assert played.to(160, *(seen(200 + n, 155, False) for n in range(40))) == ["resolved"]
    assert played.standing is Standing.OK
    assert played.changes[0].alert == played.changes[1].alert
    assert played.changes[0].id != played.changes[1].id


def test_a_lull_resolves_nothing_and_is_given_up_in_the_end() -> None:
    """Without runs a firing alert stays; after ``stale_seconds`` it is told as no_data, once."""
    played = Played()
    played.to(10, *(seen(n, 1, True) for n in range(20)))

    assert played.to(500) == []
    assert played.standing is Standing.FIRING
    assert played.to(1100) == []
    assert played.to(1102) == ["no_data"]
    assert played.to(5000) == []


def test_a_later_version_takes_back_what_was_counted() -> None:
    """When the runs that fired turn out clean with their late spans, the alert is resolved as retracted."""
    played = Played()
    played.to(10, *(seen(n, n / 2, True) for n in range(6)))

    assert played.to(20, *(seen(n, 15, False, version=2, first=n / 2) for n in range(6))) == ["resolved"]
    assert played.changes[-1].retracted
    assert (played.changes[-1].count.flagged, played.changes[-1].count.judged) == (0, 6)


def test_a_later_version_can_make_it_fire() -> None:
    """Clean runs that turn out flagged count at the time at which they were judged first."""
    played = Played()
    assert played.to(10, *(seen(n, n / 2) for n in range(6))) == []

    assert played.to(20, *(seen(n, 15, True, version=2, first=n / 2) for n in range(6))) == ["firing"]
    assert played.changes[-1].since_ns == T0 + int(2.0 * S)  # with the fifth run


def test_inconclusive_runs_are_no_observations() -> None:
    """Runs in which no check came to an answer neither raise an alert nor water it down."""
    played = Played()
    unsure = [seen(100 + n, 1, decided=()) for n in range(19)]

    assert played.to(10, *unsure) == []
    assert played.standing is None
    assert played.to(111, *(seen(n, 110, True) for n in range(5))) == ["firing"]
    assert played.changes[-1].count.judged == 5


def test_every_agent_and_with_per_check_every_check_has_its_own_state() -> None:
    """One agent's failures say nothing of another, and one check's nothing of another where that is asked for."""
    played = Played()
    played.to(
        10, *(seen(n, 1, True) for n in range(9)), *(seen(50 + n, 1, agent="billing") for n in range(9))
    )
    assert [change.stream for change in played.changes] == [AGENT]
    assert played.detector.now[Stream("default", "billing")].standing is Standing.OK

    each = Played(Policy.of(AlertSettings(window_seconds=100, min_runs=5, per="check")))
    each.to(10, *(seen(n, 1, True, decided=("repeats", "termination")) for n in range(20)))
    assert [change.stream for change in each.changes] == [Stream("default", "support", "repeats")]
    assert each.detector.now[Stream("default", "support", "termination")].standing is Standing.OK


def test_a_quiet_agent_is_forgotten() -> None:
    """Streams and runs that can change nothing any more take no memory."""
    played = Played()
    played.to(10, *(seen(n, 1) for n in range(20)))
    played.to(5 * 86_400)
    assert played.standing is Standing.NO_DATA
    played.to(12 * 86_400)

    assert played.detector.now == {}
    assert played.detector.bases == {}


RUNS = st.lists(
    st.tuples(
        st.integers(0, 400), st.lists(st.sampled_from(["bad", "good", "unsure"]), min_size=1, max_size=3)
    ),
    min_size=1,
    max_size=60,
)


def versions_of(history: Sequence[tuple[int, list[str]]]) -> list[Observed]:
    """Every version of every run, each as it is known when it is stored."""
    found = []
    for number, (at, outcomes) in enumerate(history):
        first = None
        for version, outcome in enumerate(outcomes, 1):
            judged = at + (version - 1) * 7
            if outcome != "unsure" and first is None:
                first = judged
            found.append(
                Observed(
                    run_id=f"{number:032x}",
                    version=version,
                    judged_ns=T0 + judged * S,
                    at_ns=None if first is None else T0 + first * S,
                    tenant="default",
                    agent="support",
                    failed=(("repeats", ""),) if outcome == "bad" else (),
                    decided=frozenset() if outcome == "unsure" else frozenset({"repeats"}),
                )
            )
    return found


@settings(max_examples=80, deadline=None)
@given(RUNS, st.randoms(use_true_random=False), st.integers(0, 600))
def test_verdict_history_in_any_order_ends_in_the_same_state(
    history: list[tuple[int, list[str]]], chance: random.Random, end: int
) -> None:
    """Shuffled, doubled, or asked in between: where a stream stands and since when is the same."""
    policy = Policy.of(AlertSettings(window_seconds=200, min_runs=3, threshold=0.3, z=1.0, stale_seconds=150))
    ordered = versions_of(history)
    shuffled = [*ordered, *chance.choices(ordered, k=len(ordered))]
    chance.shuffle(shuffled)
    straight, mixed, asked = Detector(policy), Detector(policy), Detector(policy)
    for run in ordered:
        straight.take(run)
    for run in shuffled:
        mixed.take(run)
    for moment in range(0, end, 37):
        for run in shuffled:
            if run.judged_ns <= T0 + moment * S:
                asked.take(run)
        asked.tick(T0 + moment * S)
    for run in shuffled:
        asked.take(run)
    for detector in (straight, mixed, asked):
        detector.tick(T0 + end * S)

    assert mixed.now == straight.now
    assert known(asked) == known(straight)


def known(detector: Detector) -> dict[Stream, Any]:
    """Where streams stand and since when; one without data may have been forgotten meanwhile, and whether runs come
    is said of now alone."""
    return {
        stream: (mark.standing, mark.since_ns, mark.objective, mark.drift)
        for stream, mark in detector.now.items()
        if mark.standing is not Standing.NO_DATA and not stream.about
    }


@settings(max_examples=40, deadline=None)
@given(RUNS, st.integers(7, 40))
@example([(n, ["unsure"]) for n in range(30)] + [(n, ["bad"]) for n in range(8)], 10)
def test_told_changes_alternate_and_end_with_the_state(
    history: list[tuple[int, list[str]]], step: int
) -> None:
    """Each alert fires once and ends once; what people were told last is what holds, and ids never repeat."""
    policy = Policy.of(AlertSettings(window_seconds=60, min_runs=3, threshold=0.3, z=1.0, stale_seconds=80))
    detector, changes = Detector(policy), []
    runs = versions_of(history)
    for moment in range(0, 900, step):
        for run in runs:
            if run.judged_ns <= T0 + moment * S:
                detector.take(run)
        changes += [change for change in detector.tick(T0 + moment * S) if change.stream == AGENT]
        mark, coverage = detector.now.get(AGENT), detector.now.get(AGENT._replace(about=COVERAGE))
        firing = mark is not None and mark.standing is Standing.FIRING
        told_of = AGENT in detector.told
        blind = coverage is not None and "coverage" in coverage.quiet
        assert told_of == firing or (blind and firing)  # what cannot be judged holds back, and ends nothing
        assert told_of == bool(changes and changes[-1].status is Status.FIRING)
    statuses = [change.status is Status.FIRING for change in changes]
    assert statuses == [number % 2 == 0 for number in range(len(statuses))]


# --- over a store


class Shop:
    """A store that runs land in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = SqliteStore(folder / "store.sqlite3")
        self.metrics = Metrics()
        self.said: list[str] = []

    def land(self, number: int, bad: bool, *, again: int = 0, inconclusive: bool = False, at: int = 0) -> str:
        run_id = f"{number:032x}"
        outcome = "inconclusive" if inconclusive else "failed" if bad else "passed"
        verdict = {
            "check": "repeats",
            "outcome": outcome,
            "severity": "flag",
            "class": "trajectory",
            "because": f"refund\x1b was called {number} times",
            "score": None,
            "numerator": None,
            "denominator": None,
            "revision": "r",
        }
        note = {**verdict, "check": "tool_errors", "severity": "note", "outcome": "failed"}
        record = {"verdicts": [verdict, note], "flagged": bad}
        self.store.land(
            [
                Landing(
                    run_id=run_id,
                    state=RunState.SCORED,
                    spans=3,
                    span_set_hash=f"{number}.{again}",
                    positions=[],
                    cut="root",
                    arrived_ns=0,
                    judged_ns=at or time.time_ns(),
                    record=json.dumps(record),
                    agent="support",
                    flagged=bad,
                    verdicts=[verdict, note],
                )
            ],
            cursor=START,
            outbox=[OUTBOX],
        )
        return run_id

    def watch(
        self,
        *receivers: Webhook,
        alertmanagers: Sequence[Alertmanager] = (),
        policy: Policy = POLICY,
        tick: float = 0.02,
        **more: Any,
    ) -> Watch:
        return Watch(
            policy,
            Receivers(webhooks=receivers, alertmanagers=tuple(alertmanagers)),
            self.store,
            self.store,
            AlertFile(self.folder / FILE),
            self.metrics,
            say=self.said.append,
            settings=AlertSettings(tick_seconds=tick, give_up_seconds=GIVE_UP),
            **{"wait": lambda _number, _after: 0.05, **more},
        )


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def at(url: str, **more: Any) -> Webhook:
    return Webhook(**{"name": "ops", "url": url, "timeout": 2.0, "allow_loopback": True, **more})


def test_one_message_per_change_with_what_is_needed_to_act(shop: Shop, receiver: Receiver) -> None:
    """Firing and resolving each arrive exactly once, signed, with counts, runs, reasons and the command."""
    watch = shop.watch(at(receiver.url, secret="k3y", headers={"x-team": "blue"}))
    watch.start()
    first = shop.land(1, True)
    for number in range(2, 9):
        shop.land(number, True)
    eventually(lambda: len(receiver.got) == 1)
    for number in range(100, 180):
        shop.land(number, False)
    eventually(lambda: len(receiver.got) == 2)
    time.sleep(0.2)
    assert watch.stop(5)

    firing, resolved = receiver.messages
    assert len(receiver.got) == 2
    assert (firing["status"], resolved["status"]) == ("firing", "resolved")
    assert firing["alert"] == resolved["alert"]
    assert firing["agent"] == "support"
    assert firing["failing_runs"][0] == first
    assert firing["freeze"] == f"redfirst freeze {first}"
    assert firing["flagged"] == firing["judged"] >= 5
    assert firing["interval"][0] > firing["threshold"] == 0.2
    assert firing["reasons"] == [
        {"check": "repeats", "runs": firing["flagged"], "example": "refund was called 1 times"}
    ]
    assert resolved["judged"] > resolved["flagged"] == 8
    for headers, body in receiver.got:
        seconds, mac = headers[SIGNATURE.lower()].removeprefix("t=").split(",v1=")
        assert mac == hmac.new(b"k3y", f"{seconds}.".encode() + body, hashlib.sha256).hexdigest()
        assert headers[EVENT.lower()] == json.loads(body)["id"]
        assert headers["x-team"] == "blue"
    assert "k3y" not in repr(shop.said) + shop.metrics.text() + (shop.folder / FILE).read_text()
    assert "t0ken" not in repr(shop.said) + shop.metrics.text() + (shop.folder / FILE).read_text()


def test_a_restart_tells_nothing_twice_and_forgets_nothing(shop: Shop, receiver: Receiver) -> None:
    """Stopped while firing and started again: no second message; what happened meanwhile is found."""
    watch = shop.watch(at(receiver.url))
    watch.start()
    for number in range(8):
        shop.land(number, True)
    eventually(lambda: receiver.got)
    assert watch.stop(5)

    again = shop.watch(at(receiver.url))
    again.start()
    eventually(lambda: again.detector.now)
    time.sleep(0.2)
    assert len(receiver.got) == 1
    assert again.stop(5)
    for number in range(100, 180):
        shop.land(number, False)
    last = shop.watch(at(receiver.url))
    last.start()
    eventually(lambda: len(receiver.got) == 2)
    assert last.stop(5)

    assert [message["status"] for message in receiver.messages] == ["firing", "resolved"]


def test_a_stop_between_keeping_and_the_outbox_tells_it_once(shop: Shop, receiver: Receiver) -> None:
    """Rows that are read again, and a state file that was lost, give the same id; a kept one gives no message."""
    done = shop.store.outbox_done
    shop.store.outbox_done = lambda _: None  # type: ignore[method-assign, assignment]
    for number in range(8):
        shop.land(number, True)
    watch = shop.watch(at(receiver.url))
    now = time.time_ns()
    watch.step(now)
    watch.step(now)
    shop.store.outbox_done = done  # type: ignore[method-assign]
    one = AlertFile(shop.folder / FILE).first("ops")
    assert one is not None

    restarted = shop.watch(at(receiver.url))
    restarted.recall(now)
    restarted.step(now + S)
    assert AlertFile(shop.folder / FILE).waiting() == 1
    (shop.folder / FILE).write_text("{broken")
    anew = shop.watch(at(receiver.url))
    anew.recall(now)
    anew.step(now + S)
    found = AlertFile(shop.folder / FILE).first("ops")

    assert found is not None
    assert found.id == one.id
    assert (shop.folder / "alerts.unreadable").read_text() == "{broken"
    assert shop.metrics.value("redfirst_alert_failures_total", reason="state_unreadable") == 1


BODY = {
    "alert": "a", "tenant": "default", "agent": "support", "check": None, "about": "reliability", "text": "t",
    "severity": "page", "since": "2026-11-30T06:00:00Z", "flagged": 8, "judged": 8, "interval": [0.5, 1], "causes": [],
    "failing_runs": [], "links": [], "freeze": None,
}  # fmt: skip


def kept(**parts: Any) -> bytes:
    empty: dict[str, Any] = {"streams": [], "firing": [], "over": [], "queue": [], "given_up": []}
    return json.dumps({"schema": "redfirst.alerts/2", **empty, **parts}).encode()


def test_what_is_kept_is_taken_as_it_is(tmp_path: Path) -> None:
    """The shape that the next test damages is whole."""
    (tmp_path / FILE).write_bytes(kept(firing=[BODY], over=[{"body": {**BODY, "alert": "b"}, "at_ns": 7}]))
    file = AlertFile(tmp_path / FILE)

    assert (file.unreadable, file.firing) == (None, {"a": BODY})
    assert file.over["b"].at_ns == 7


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x80\x81\xff",
        b"[" * 100_000,
        b'{"schema": "redfirst.alerts/1", "streams": {}}',
        kept(queue=[{"id": "i", "receiver": "ops", "body": {}, "created_ns": "yesterday"}]),
        kept(queue=[{"id": "i", "receiver": "ops", "body": {}, "created_ns": 1, "next_ns": None}]),
        kept(given_up=[["i"]]),
        kept(over=[{"body": BODY, "at_ns": "late"}]),
        kept(firing=[{"alert": "a"}]),
        kept(firing=[{**BODY, "links": [7]}]),
        kept(firing=[{**BODY, "interval": [0.5]}]),
        kept(firing=["a"]),
    ],
)
def test_a_damaged_state_file_is_put_aside_whatever_is_wrong(tmp_path: Path, damaged: bytes) -> None:
    """What is not what it should be would end the service at its start, or the thread that sends it later."""
    (tmp_path / FILE).write_bytes(damaged)
    file = AlertFile(tmp_path / FILE)

    assert file.unreadable is not None
    assert file.unreadable.read_bytes() == damaged
    assert (file.waiting(), file.firing, file.over, file.given_up) == (0, {}, {}, [])


def test_a_state_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A folder stands in its place."""
    (tmp_path / FILE).mkdir()
    with pytest.raises(ConfigurationError, match=r"alerts\.json: cannot be read"):
        AlertFile(tmp_path / FILE)


def test_a_clock_that_went_back_delays_no_message(shop: Shop, receiver: Receiver) -> None:
    """Nothing is put off by more than an hour: what is due in a day was put off by another clock."""
    now = time.time_ns()
    notice = {"id": "i", "receiver": "ops", "body": BODY, "created_ns": now, "next_ns": now + 86_400 * S}
    (shop.folder / FILE).write_bytes(kept(queue=[notice]))
    watch = shop.watch(at(receiver.url))
    watch.start()
    eventually(lambda: len(receiver.got) == 1)
    assert watch.stop(5)


def test_a_receiver_that_is_down_is_told_later_and_in_order(shop: Shop, receiver: Receiver) -> None:
    """Two failures and then success: the message arrives once it can, the next waits for it."""
    receiver.respond = lambda count: (503, {}) if count < 2 else (200, {})
    watch = shop.watch(at(receiver.url))
    for number in range(8):
        shop.land(number, True)
    watch.start()
    eventually(lambda: len(receiver.got) == 3)
    assert watch.stop(5)

    assert {message["id"] for message in receiver.messages} == {receiver.messages[0]["id"]}
    labels = {"receiver": "ops", "reason": "status_503"}
    assert shop.metrics.value("redfirst_alert_posts_total", outcome="again", **labels) == 2
    assert AlertFile(shop.folder / FILE).waiting() == 0


def test_a_slow_receiver_delays_no_other(shop: Shop, receiver: Receiver) -> None:
    """Each webhook has its own worker and its own queue."""
    release = threading.Event()

    def held(to: Webhook, notice: Notice, **more: Any) -> Posted:
        if to.name == "slow":
            release.wait(10)
        return send(to, notice, **more)

    watch = shop.watch(at(receiver.url, name="slow"), at(receiver.url, name="ops"), send=held)
    for number in range(8):
        shop.land(number, True)
    watch.start()
    eventually(lambda: len(receiver.got) == 1)
    release.set()
    eventually(lambda: len(receiver.got) == 2)
    assert watch.stop(5)


def test_a_redirect_is_not_followed(shop: Shop, receiver: Receiver) -> None:
    """The target of a redirect gets nothing; the message is given up, named and kept to be looked at."""
    target = Receiver()
    receiver.respond = lambda _: (307, {"Location": target.url})
    watch = shop.watch(at(receiver.url))
    for number in range(8):
        shop.land(number, True)
    watch.start()
    eventually(lambda: AlertFile(shop.folder / FILE).given_up)
    assert watch.stop(5)
    target.close()

    assert target.got == []
    assert len(receiver.got) == 1
    (lost,) = AlertFile(shop.folder / FILE).given_up
    assert lost.error == "redirect"
    assert any("was not delivered to ops: redirect" in line for line in shop.said)


def test_a_retracted_and_an_inconclusive_version_in_the_store(shop: Shop) -> None:
    """The stored versions of a run give one observation: the newest answer, at the time of the first."""
    run_id = shop.land(1, True, at=10)
    shop.land(1, False, again=1, at=20)
    found = observed(shop.store.versions(run_id))
    assert (found.version, found.at_ns, found.failed, found.decided) == (2, 10, (), {"repeats"})

    shop.land(1, False, again=2, at=30, inconclusive=True)
    found = observed(shop.store.versions(run_id))
    assert (found.version, found.at_ns, found.decided) == (3, 10, frozenset())


def test_erased_runs_are_not_named(shop: Shop) -> None:
    """The runs and the command in a message are of runs that are still there."""
    watch = shop.watch(at("http://127.0.0.1:9"))
    ids = [shop.land(number, True) for number in range(8)]
    now = time.time_ns()
    for row in shop.store.outbox_due(OUTBOX, now, 100):
        watch.detector.take(observed(shop.store.versions(row.run_id)))
    shop.store.delete(ids[0], at_ns=now)
    watch.step(now)
    notice = AlertFile(shop.folder / FILE).first("ops")

    assert notice is not None
    assert notice.body["failing_runs"] == ids[1:6]
    assert notice.body["freeze"] == f"redfirst freeze {ids[1]}"


def test_the_companion_starts_and_stops_with_the_service(shop: Shop) -> None:
    """It asks for its outbox rows by name and shows how many alerts fire."""
    alerts = Alerts(POLICY, Receivers(), shop.folder, settings=AlertSettings(), say=shop.said.append)
    for number in range(8):
        shop.land(number, True)
    alerts.start(
        Parts(
            journal=None,  # type: ignore[arg-type]
            store=shop.store,
            reader=shop.store,
            spans=lambda: pytest.fail("alerts read no spans"),
            metrics=shop.metrics,
        )
    )
    eventually(lambda: shop.metrics.value("redfirst_alerts_firing") == 1)
    alerts.stop(5)

    assert alerts.destinations == (OUTBOX,)
    assert alerts.trouble() is None
    assert shop.store.outbox_due(OUTBOX, time.time_ns(), 10) == []
    assert len(shop.said) == 1
    assert shop.said[0].startswith("alert firing: agent support: ")


# --- where a webhook may be


@pytest.mark.parametrize(
    ("address", "needs"),
    [
        ("127.0.0.1", "allow_loopback"),
        ("127.9.9.9", "allow_loopback"),
        ("::1", "allow_loopback"),
        ("::ffff:127.0.0.1", "allow_loopback"),
        ("10.1.2.3", "allow_private"),
        ("172.16.0.1", "allow_private"),
        ("192.168.1.1", "allow_private"),
        ("100.64.0.1", "allow_private"),
        ("169.254.169.254", "allow_private"),
        ("::ffff:169.254.169.254", "allow_private"),
        ("fe80::1%eth0", "allow_private"),
        ("fd00::1", "allow_private"),
        ("0.0.0.0", None),
        ("::", None),
        ("224.0.0.1", None),
        ("ff02::1", None),
        ("8.8.8.8", ""),
        ("2001:4860:4860::8888", ""),
    ],
)
def test_private_addresses_need_permission(address: str, needs: str | None) -> None:
    """Public addresses are free; loopback and private networks each need their own key; the rest never."""
    for key in ("allow_loopback", "allow_private"):
        hook = at("http://x", allow_loopback=False).__class__(name="n", url="http://x", **{key: True})
        assert allowed(address, hook) == (needs in ("", key))
    assert allowed(address, Webhook(name="n", url="http://x")) == (needs == "")


def test_a_name_that_leads_inside_is_refused(receiver: Receiver) -> None:
    """What counts is where the name leads, every address of it; nothing is sent before that is known."""
    hook = Webhook(name="n", url=receiver.url, timeout=1.0)
    refused = Posted(delivered=False, reason="address_not_allowed")

    assert post(hook, {}, event="e", now=0) == refused
    assert post(hook, {}, event="e", now=0, look=lambda _host, _port: ["8.8.8.8", "10.0.0.1"]) == refused
    assert post(hook, {}, event="e", now=0, look=lambda _host, _port: []) == refused
    assert receiver.got == []


def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver) -> None:
    """The name is looked up once, so that a second answer cannot lead elsewhere; the host is still named."""
    port = receiver.server.server_address[1]
    hook = at(f"http://hooks.invalid:{port}/x")

    assert post(hook, {}, event="e", now=0, look=lambda _host, _port: ["127.0.0.1"]).delivered
    assert receiver.got[0][0]["host"] == f"hooks.invalid:{port}"


def test_webhooks_are_checked_when_they_are_configured() -> None:
    """A missing secret stops the start and is named; its value is nowhere to be seen."""
    entry = WebhookSettings(name="ops", url="env:HOOK", secret="env:KEY")
    (made,) = webhooks([entry], {"HOOK": "https://h/t0ken", "KEY": "k3y"})

    assert (made.url, made.secret) == ("https://h/t0ken", "k3y")
    assert "k3y" not in repr(made)
    assert "t0ken" not in repr(made)
    for environment, said in (
        ({"HOOK": "https://h"}, "KEY is not set"),
        ({"KEY": "k"}, "HOOK is not set"),
        ({"HOOK": "ftp://h", "KEY": "k"}, "no http or https URL"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            webhooks([entry], environment)
    with pytest.raises(ConfigurationError, match="two of this name"):
        webhooks([entry, entry], {"HOOK": "https://h", "KEY": "k"})


def test_an_alert_has_the_same_name_in_every_process() -> None:
    """The id depends on the stream and the beginning alone."""
    assert alert_id(AGENT, T0) == "6a119186240d3d58da44497e"
    assert alert_id(AGENT, T0) != alert_id(AGENT, T0 + 1)
    assert alert_id(Stream("a", "b"), 1) != alert_id(Stream("a", "", "b"), 1)


def test_serve_posts_an_alert(stopped: Any, tools: Any, receiver: Receiver) -> None:
    """A whole service: flagged runs over OTLP become one signed message that names them."""
    alerts = {
        "window_seconds": 60,
        "min_runs": 1,
        "threshold": 0.05,
        "z": 1.0,
        "webhooks": [
            {"name": "ops", "url": "env:HOOK", "secret": "env:KEY", "allow_loopback": True, "timeout": 2}
        ],
    }
    served = stopped.start(REDFIRST_ALERTS=json.dumps(alerts), HOOK=receiver.url, KEY="k3y")
    assert served.post("/v1/traces", looping(6), content_type="application/x-protobuf")[0] == 200
    eventually(lambda: receiver.got, within=20)
    message = receiver.messages[0]

    assert message["status"] == "firing"
    assert message["freeze"] == f"redfirst freeze {served.runs()[0]['trace_id']}"
    assert served.metrics()["redfirst_alerts_firing"] == 1
    assert served.stop() == 0
    assert len(receiver.got) == 1


# --- an Alertmanager


def manager(url: str, **more: Any) -> Alertmanager:
    base = url.partition("/hook")[0]
    return Alertmanager(
        **{"name": "am", "url": base, "timeout": 2.0, "resend_seconds": 0.1, "instance": "box", **more}
    )


def alerts_of(receiver: Receiver) -> list[list[dict[str, Any]]]:
    return [json.loads(body) for _, body in receiver.got]


def test_an_alertmanager_is_sent_what_fires_again_and_then_its_end(shop: Shop, receiver: Receiver) -> None:
    """The labels and ``startsAt`` stay what they were, ``endsAt`` lies ahead; once over, the end is sent."""
    watch = shop.watch(alertmanagers=[manager(receiver.url)])
    watch.start()
    for number in range(8):
        shop.land(number, True)
    eventually(lambda: len(receiver.got) >= 3)
    (first,), (second,), *_ = alerts_of(receiver)
    for number in range(100, 200):
        shop.land(number, False)
    eventually(
        lambda: (
            moment_of(alerts_of(receiver)[-1][0]["endsAt"]) < time.time()
            and alerts_of(receiver)[-1] == alerts_of(receiver)[-2]
        )
    )
    assert watch.stop(5)

    assert first["labels"] == {
        "alertname": "RedfirstAgentUnreliable",
        "agent": "support",
        "severity": "page",
        "tenant": "default",
        "instance": "box",
    }
    assert first["annotations"]["flagged"] in {f"{n} of {n}" for n in range(5, 9)}
    assert first["annotations"]["freeze"] == f"redfirst freeze {0:032x}"
    assert (second["labels"], second["startsAt"]) == (first["labels"], first["startsAt"])
    assert moment_of(second["endsAt"]) > moment_of(first["endsAt"]) > time.time()
    over = alerts_of(receiver)[-1][0]
    assert (over["labels"], over["startsAt"]) == (first["labels"], first["startsAt"])


def moment_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def test_an_alertmanager_that_was_down_is_sent_what_fires_after_a_start(
    shop: Shop, receiver: Receiver
) -> None:
    """Nothing but what fires has to be remembered, and it stands in the file."""
    receiver.respond = lambda _: (503, {})
    watch = shop.watch(alertmanagers=[manager(receiver.url)])
    for number in range(8):
        shop.land(number, True)
    watch.start()
    eventually(lambda: len(receiver.got) >= 2)
    assert watch.stop(5)
    receiver.respond = lambda _: (200, {})
    before = len(receiver.got)

    again = shop.watch(alertmanagers=[manager(receiver.url)])
    again.start()
    eventually(lambda: len(receiver.got) > before)
    assert again.stop(5)
    (alert,) = alerts_of(receiver)[-1]
    assert alert["labels"] == alerts_of(receiver)[0][0]["labels"]
    assert alert["startsAt"] == alerts_of(receiver)[0][0]["startsAt"]
    posts = "redfirst_alert_posts_total"
    assert shop.metrics.value(posts, receiver="am", outcome="again", reason="status_503") == before
    assert shop.metrics.value(posts, receiver="am", outcome="delivered", reason="ok") >= 1


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"url": "env:FTP"}, "no http or https URL"),
        ({"url": "env:NOWHERE"}, "NOWHERE is not set"),
        ({"url": "http://h", "lasts_seconds": 30}, "over before it is sent again"),
    ],
)
def test_an_alertmanager_that_cannot_be_is_refused(entry: dict[str, Any], said: str) -> None:
    """The message names the entry and the way out."""
    with pytest.raises(ConfigurationError, match=said):
        alertmanagers([AlertmanagerSettings(name="am", **entry)], {"FTP": "ftp://h"})


# --- links and texts


def test_every_failing_run_has_its_link(shop: Shop, receiver: Receiver) -> None:
    """The template's places are filled with the trace's id and the run's."""
    watch = shop.watch(at(receiver.url), trace_url="https://ui.example/t/{trace_id}?run={run_id}")
    watch.start()
    for number in range(8):
        shop.land(number, True)
    eventually(lambda: receiver.got)
    assert watch.stop(5)

    (message,) = receiver.messages
    assert message["links"] == [f"https://ui.example/t/{run}?run={run}" for run in message["failing_runs"]]


def test_people_are_told_in_words(shop: Shop, receiver: Receiver) -> None:
    """Through apprise: what fires, the reason, the runs, and the command."""
    url = receiver.url.partition("/hook")[0].replace("http://", "json://")
    (person,) = people([NotifySettings(name="team", url="env:CHANNEL")], {"CHANNEL": f"{url}/x"})
    watch = Watch(
        POLICY,
        Receivers(people=(person,)),
        shop.store,
        shop.store,
        AlertFile(shop.folder / FILE),
        shop.metrics,
        settings=AlertSettings(tick_seconds=0.02),
        wait=lambda _number, _after: 0.05,
    )
    for number in range(8):
        shop.land(number, True)
    watch.start()
    eventually(lambda: receiver.got)
    assert watch.stop(5)

    (told_once,) = receiver.messages
    assert told_once["title"] == "redfirst: support firing"
    assert told_once["type"] == "failure"
    assert "8× repeats: refund was called" in told_once["message"]
    assert f"redfirst freeze {0:032x}" in told_once["message"]


def test_a_channel_that_apprise_does_not_know_is_refused() -> None:
    """At the start, with the name of the entry; the URL, which may hold a secret, is not repeated."""
    with pytest.raises(ConfigurationError, match="notify: team: apprise knows no such URL") as raised:
        people([NotifySettings(name="team", url="env:CHANNEL")], {"CHANNEL": "nonsense-s3cret"})
    assert "s3cret" not in str(raised.value)


def test_without_apprise_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever names a channel reads which entry needs what, and how to get it."""
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    entry = NotifySettings(name="team", url="env:CHANNEL")
    with pytest.raises(MissingExtra, match=r"notify: team needs apprise: pip install 'redfirst\[notify\]'"):
        people([entry], {"CHANNEL": "json://localhost"})

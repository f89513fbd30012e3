"""What goes wrong around alerts: checks that give no answer, receivers that do not take what they are told, and
``kill -9`` at every point of the path."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.alerting import file
from redfirst.collector_processor.alerting.alertmanager import Alertmanager
from redfirst.collector_processor.alerting.file import FILE, AlertFile, Notice
from redfirst.collector_processor.alerting.policy import HOUR_NS, Policy
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.watch import OUTBOX, Watch
from redfirst.collector_processor.alerting.webhook import Posted, Webhook
from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.settings import AlertSettings
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState

from .conftest import Served, eventually, free_port, looping
from .receiver import Receiver

S = 1_000_000_000
T0 = 500_000 * HOUR_NS
QUICK = Policy.of(AlertSettings(window_seconds=100, min_runs=5, threshold=0.2, stale_seconds=1000))


def landing(
    number: int, at: int, outcome: str, *, state: RunState = RunState.SCORED, ending: str = "completed"
) -> Landing:
    """One judged run of the agent ``support``."""
    verdict = {
        "check": "repeats",
        "outcome": outcome,
        "severity": "flag",
        "class": "trajectory",
        "because": "because",
        "score": None,
        "numerator": None,
        "denominator": None,
        "revision": "r",
    }
    scored = state is RunState.SCORED
    record = {"verdicts": [verdict], "termination": {"reason": ending, "cap": None}}
    return Landing(
        run_id=f"{number:032x}",
        state=state,
        spans=3,
        span_set_hash=str(number),
        positions=[],
        cut="root",
        arrived_ns=at,
        judged_ns=at,
        record=json.dumps(record) if scored else None,
        agent="support",
        flagged=outcome == "failed",
        because="" if scored else "the scorer did not answer in time",
        verdicts=[verdict] if scored else [],
    )


@contextmanager
def kept(folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(folder / "store.sqlite3")
    yield store
    store.close()


def watched(
    store: SqliteStore,
    folder: Path,
    *webhooks: Webhook,
    alertmanagers: Sequence[Alertmanager] = (),
    policy: Policy = QUICK,
    metrics: Metrics | None = None,
    **more: Any,
) -> Watch:
    return Watch(
        policy,
        Receivers(webhooks=webhooks, alertmanagers=tuple(alertmanagers)),
        store,
        store,
        AlertFile(folder / FILE),
        metrics or Metrics(),
        settings=AlertSettings(tick_seconds=0.02),
        **{"wait": lambda _number, _after: 0.05, **more},
    )


def at(url: str, **more: Any) -> Webhook:
    return Webhook(**{"name": "ops", "url": url, "timeout": 2.0, "allow_loopback": True, **more})


# --- checks that give no answer


@pytest.mark.parametrize("how", ["inconclusive", "unscored"])
def test_an_hour_of_checks_that_time_out_is_a_lack_of_coverage_and_no_drop(tmp_path: Path, how: str) -> None:
    """Three days at nine in ten, then an hour in which nine of ten runs get no answer and the rest fail, then answers
    again: one alert on coverage, a ticket, which ends; none on reliability."""
    policy = Policy.of(AlertSettings(window_seconds=3600, short_window_seconds=600))
    past = [landing(n, T0 + n * 600 * S, "failed" if n % 10 == 9 else "passed") for n in range(432)]
    begin = T0 + 72 * HOUR_NS
    lost = RunState.UNSCORED if how == "unscored" else RunState.SCORED
    outage = [
        landing(1000 + n, begin + n * 60 * S, *(("failed",) if n % 10 == 9 else ("inconclusive",)),
                state=RunState.SCORED if n % 10 == 9 else lost)
        for n in range(60)
    ]  # fmt: skip
    after = [
        landing(2000 + n, begin + HOUR_NS + n * 30 * S, "failed" if n % 10 == 9 else "passed")
        for n in range(240)
    ]
    with kept(tmp_path) as store:
        store.land(past, cursor=START, outbox=[OUTBOX])
        watch = watched(store, tmp_path, at("http://127.0.0.1:9"), policy=policy)
        watch.step(begin - S)
        for batch in (outage[:30], outage[30:], after[:120], after[120:]):
            store.land(batch, cursor=START, outbox=[OUTBOX])
            watch.step(batch[-1].judged_ns)
    told = [notice["body"] for notice in json.loads((tmp_path / FILE).read_text())["queue"]]

    assert [(body["about"], body["status"], body["severity"]) for body in told] == [
        ("coverage", "firing", "ticket"),
        ("coverage", "resolved", "ticket"),
    ]
    assert "could not be judged" in told[0]["text"]


# --- receivers that do not take what they are told


class Deaf:
    """Takes connections and never answers."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.port = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def connections(self) -> int:
        return len(self._taken)

    def _accept(self) -> None:
        while True:
            try:
                self._taken.append(self._socket.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        for one in self._taken:
            one.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    made = Deaf()
    yield made
    made.close()


FAULTS = {
    "timeout": "http://127.0.0.1:{deaf}/",
    "tls": "https://127.0.0.1:{plain}/",
    "connection": "http://127.0.0.1:{nobody}/",
    "name_not_found": "http://redfirst.invalid/",
    "status_500": "http://127.0.0.1:{plain}/",
    "status_429": "http://127.0.0.1:{plain}/",
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_receiver_that_fails_holds_up_neither_detection_nor_others(
    tmp_path: Path, receiver: Receiver, deaf: Deaf, fault: str
) -> None:
    """While one is tried in vain, the other hears of the alert and of its end, once; the failing one's messages wait, and
    the first of them is tried alone."""
    broken = Receiver(lambda _: (int(fault[-3:]), {}) if fault.startswith("status") else (200, {}))
    url = FAULTS[fault].format(deaf=deaf.port, plain=broken.port, nobody=free_port())
    metrics = Metrics()
    with kept(tmp_path) as store:
        watch = watched(
            store, tmp_path, at(url, name="broken", timeout=0.2), at(receiver.url), metrics=metrics
        )
        watch.start()
        tries = {"receiver": "broken", "outcome": "again", "reason": fault}
        store.land([landing(n, time.time_ns(), "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        eventually(lambda: metrics.value("redfirst_alert_posts_total", **tries) >= 2)
        more = [landing(100 + n, time.time_ns(), "passed") for n in range(80)]
        store.land(more, cursor=START, outbox=[OUTBOX])
        eventually(lambda: len(receiver.got) == 2)
        assert watch.stop(5)
    waiting = json.loads((tmp_path / FILE).read_text())["queue"]
    broken.close()

    assert [message["status"] for message in receiver.messages] == ["firing", "resolved"]
    assert [(one["receiver"], one["body"]["status"]) for one in waiting] == [
        ("broken", "firing"),
        ("broken", "resolved"),
    ]
    assert waiting[0]["error"] == fault
    assert waiting[0]["attempts"] >= 2
    assert waiting[1]["attempts"] == 0
    assert deaf.connections == (waiting[0]["attempts"] if fault == "timeout" else 0)


def test_a_receiver_that_asks_to_wait_is_left_alone_for_that_long(tmp_path: Path, receiver: Receiver) -> None:
    """``Retry-After: 7`` reaches what decides how long to wait, and so into the file."""
    receiver.respond = lambda _: (429, {"Retry-After": "7"})
    asked: list[float | None] = []

    def wait(_number: int, after: float | None) -> float:
        asked.append(after)
        return after or 0.0

    with kept(tmp_path) as store:
        watch = watched(store, tmp_path, at(receiver.url), wait=wait)
        store.land([landing(n, time.time_ns(), "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        watch.start()
        eventually(lambda: asked)
        assert watch.stop(5)
    (waiting,) = json.loads((tmp_path / FILE).read_text())["queue"]

    assert asked == [7.0]
    assert waiting["next_ns"] - waiting["created_ns"] >= 7 * S
    assert len(receiver.got) == 1


def test_an_alertmanager_that_is_down_hears_of_what_fires_and_of_what_was_over_meanwhile(
    tmp_path: Path,
) -> None:
    """Nobody listens while an alert fires, and none while it resolves: the first post that is taken names its beginning,
    and a later one its end."""
    port = free_port()
    manager = Alertmanager(
        name="am", url=f"http://127.0.0.1:{port}", timeout=1.0, resend_seconds=0.1, instance="box"
    )
    metrics = Metrics()

    def refused() -> float:
        return metrics.value(
            "redfirst_alert_posts_total", receiver="am", outcome="again", reason="connection"
        )

    with kept(tmp_path) as store:
        watch = watched(store, tmp_path, alertmanagers=[manager], metrics=metrics)
        watch.start()
        store.land([landing(n, time.time_ns(), "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        eventually(lambda: refused() >= 2)
        (body,) = json.loads((tmp_path / FILE).read_text())["firing"]
        back = Receiver(port=port)
        eventually(lambda: back.got)
        back.close()
        more = [landing(100 + n, time.time_ns(), "passed") for n in range(80)]
        store.land(more, cursor=START, outbox=[OUTBOX])
        eventually(lambda: json.loads((tmp_path / FILE).read_text())["over"])
        again = Receiver(port=port)
        eventually(lambda: again.got)
        assert watch.stop(5)
        again.close()

    (fires,) = back.messages[0]
    (over,) = again.messages[0]
    assert fires["startsAt"] == over["startsAt"] == body["since"]
    assert fires["labels"] == over["labels"]
    assert fires["endsAt"] > over["endsAt"] > over["startsAt"]


# --- kill -9


class Killed(BaseException):
    """The process is gone."""


class Fuse:
    """Ends the process at the so-manieth point; a point lies before and behind everything that outlives a process."""

    def __init__(self, blows_at: int) -> None:
        self._blows_at = blows_at
        self.points: list[str] = []

    def __call__(self, name: str) -> None:
        self.points.append(name)
        if len(self.points) - 1 == self._blows_at:
            raise Killed(name)


class World:
    """A store, a receiver, and what is done with them until the end, however often the process is killed."""

    def __init__(self, folder: Path, fuse: Fuse, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.fuse = folder, fuse
        self.heard: list[tuple[str, str]] = []
        write = AlertFile._write

        def guarded(kept: AlertFile) -> None:
            fuse("before the file")
            write(kept)
            fuse("after the file")

        monkeypatch.setattr(file.AlertFile, "_write", guarded)

    def send(self, to: Webhook, notice: Notice, *, now: float) -> Posted:
        self.fuse("before the post")
        self.heard.append((notice.id, notice.body["status"]))
        self.fuse("after the post")
        return Posted(delivered=True, reason="ok")

    def process(self, store: SqliteStore, now_ns: int) -> None:
        """A whole life: start, take what came, tell it."""
        done = store.outbox_done

        def guarded(seqs: Sequence[int]) -> None:
            self.fuse("before the outbox")
            done(seqs)
            self.fuse("after the outbox")

        webhook = at("http://127.0.0.1:9")
        watch = watched(store, self.folder, webhook, send=self.send)
        store.outbox_done = guarded  # type: ignore[method-assign]
        try:
            watch.recall(now_ns)
            watch.step(now_ns)
            while (notice := watch._file.first("ops")) is not None:
                watch._delivery._after("ops", notice, self.send(webhook, notice, now=0.0))
        finally:
            store.outbox_done = done  # type: ignore[method-assign]

    def live(self) -> None:
        bad = [landing(n, T0 + n * S, "failed") for n in range(8)]
        good = [landing(100 + n, T0 + 20 * S + n * S, "passed") for n in range(80)]
        with kept(self.folder) as store:
            for runs in (bad, good):
                store.land(runs, cursor=START, outbox=[OUTBOX])
                try:
                    self.process(store, runs[-1].judged_ns)
                except Killed:
                    self.process(store, runs[-1].judged_ns + S)


def test_killed_at_any_point_nothing_is_lost_and_only_an_unanswered_post_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and behind every write, transaction and post of an alert that fires and resolves."""

    def lived(blows_at: int) -> World:
        folder = tmp_path / str(blows_at)
        folder.mkdir()
        with monkeypatch.context() as patched:
            world = World(folder, Fuse(blows_at), patched)
            world.live()
        return world

    straight = lived(-1)
    points = straight.fuse.points
    assert [status for _, status in straight.heard] == ["firing", "resolved"]
    assert len(points) >= 16, points
    for number, point in enumerate(points):
        world = lived(number)
        assert sorted(set(world.heard)) == sorted(straight.heard), point
        doubled = [one for one, times in Counter(world.heard).items() if times > 1]
        unanswered = point == "after the post" or (
            point == "before the file" and points[number - 1] == "after the post"
        )
        assert len(doubled) == (1 if unanswered else 0), (point, world.heard)
        assert list(dict.fromkeys(world.heard)) == straight.heard, point


def test_a_service_that_is_killed_again_and_again_tells_each_change(
    stopped: Served, receiver: Receiver
) -> None:
    """Killed while an agent turns bad, while that is told, and while it recovers: every alert fires and ends, in order;
    a message comes twice only where the service died before it knew of the answer."""
    alerts = {
        "window_seconds": 3,
        "short_window_seconds": 3,
        "min_runs": 5,
        "z": 1.96,
        "tick_seconds": 0.05,
        "false_alarms_a_week": None,
        "stale_seconds": 2,
        "webhooks": [{"name": "ops", "url": "env:HOOK", "allow_loopback": True, "timeout": 2}],
    }
    environment = {
        "REDFIRST_ALERTS": json.dumps(alerts),
        "HOOK": receiver.url,
        "REDFIRST_SETTLE_SECONDS": "0.1",
    }
    chance, kills = random.Random(5), 0
    for calls in (6, 6, 1, 6, 1):
        stopped.start(**environment)
        for _ in range(8 if calls > 1 else 30):
            body = looping(calls)
            assert stopped.post("/v1/traces", body, content_type="application/x-protobuf")[0] == 200
        time.sleep(chance.uniform(0.1, 1.2))
        stopped.kill()
        kills += 1
    stopped.start(**environment)
    eventually(lambda: receiver.got and ended(stopped.home), within=30)
    assert stopped.stop() == 0

    heard = [(message["alert"], message["status"], message["id"]) for message in receiver.messages]
    once = list(dict.fromkeys(heard))
    assert len(heard) - len(once) <= kills
    assert [status == "firing" for _, status, _ in once] == [n % 2 == 0 for n in range(len(once))]
    for (first, _, _), (last, _, _) in zip(once[::2], once[1::2], strict=True):
        assert first == last


def ended(home: Path) -> bool:
    """Nothing fires, and nothing waits to be told."""
    state = json.loads((home / FILE).read_text())
    return not state["queue"] and not state["firing"]

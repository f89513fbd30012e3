"""Fault 3, at a moment that is known: ``kill -9`` while a check runs, and while a webhook is being answered."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path

from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from tests.service.conftest import Served, a_run, body_of, eventually, looping
from tests.service.endpoint import OK, Endpoint
from tests.service.receiver import Receiver

from .conftest import journalled, names_of

PROTOBUF = "application/x-protobuf"
SLOW = """
import os, pathlib, time
from redfirst.evaluators import passed

def check(run):
    with open("begun", "a") as file:
        file.write(run.run_id + "\\n")
    while not pathlib.Path("go on").exists():
        time.sleep(0.02)
    return passed("ok")
"""
RULES = """
schema: redfirst.rules/1
rules:
  - {id: slow, kind: python, function: "slow:check", severity: flag}
"""


def test_killed_while_a_check_runs_every_run_has_one_version_and_is_told_once(stopped: Served) -> None:
    """The check that was running is run again for the same version key; nothing of the first try was stored or told."""
    folder = stopped.home.parent
    (folder / "slow.py").write_text(SLOW)
    (folder / "rules.yaml").write_text(RULES)
    (folder / "redfirst.yaml").write_text("rules: rules.yaml\n")
    sink = Endpoint(lambda _body, _before: OK)
    environment = {
        "PYTHONPATH": str(folder),
        "REDFIRST_CHECK_SECONDS": "60",
        "REDFIRST_SCORE_SECONDS": "120",
        "REDFIRST_SINKS": json.dumps([{"name": "there", "kind": "otlp", "endpoint": sink.url}]),
    }
    runs = [a_run() for _ in range(5)]
    stopped.start(**environment)
    for run in runs:
        assert stopped.post("/v1/traces", body_of(run), content_type=PROTOBUF)[0] == 200
    begun = folder / "begun"
    eventually(lambda: begun.exists() and begun.read_text())
    stopped.kill()
    (first,) = begun.read_text().split()
    assert versions(stopped.home, first) == []
    assert sink.got == []

    (folder / "go on").touch()
    stopped.start(**environment)
    wanted = {f"{run[0].context.trace_id:032x}" for run in runs}
    eventually(lambda: set(stopped.stored()) == wanted)
    eventually(lambda: len(sink.bodies) >= len(wanted))
    assert stopped.stop() == 0
    sink.close()

    tried = Counter(begun.read_text().split())
    assert tried == {name: 2 if name == first else 1 for name in wanted}
    assert {name: versions(stopped.home, name) for name in wanted} == {name: [1] for name in wanted}
    assert len(sink.bodies) == len(wanted)
    assert journalled(stopped.home) == set().union(*(names_of(run) for run in runs))


def versions(home: Path, run_id: str) -> list[int]:
    reader = SqliteReader(home / "store.sqlite3")
    found = [run.version for run in reader.versions(run_id)]
    reader.close()
    return found


def test_killed_while_a_webhook_is_being_answered_it_is_told_once_more_under_the_same_id(
    stopped: Served,
) -> None:
    """The receiver has the message, and the service dies before it knows: one more, whose id says that it is the same;
    and after a second restart none."""
    arrived, answer = threading.Event(), threading.Event()

    def hold(before: int) -> tuple[int, dict[str, str]]:
        if before == 0:
            arrived.set()
            answer.wait(30)
        return 200, {}

    receiver = Receiver(hold)
    alerts = {
        "window_seconds": 600,
        "min_runs": 5,
        "z": 1.96,
        "tick_seconds": 0.05,
        "false_alarms_a_week": None,
        "webhooks": [{"name": "ops", "url": "env:HOOK", "allow_loopback": True, "timeout": 30}],
    }
    environment = {"REDFIRST_ALERTS": json.dumps(alerts), "HOOK": receiver.url}
    stopped.start(**environment)
    for _ in range(8):
        assert stopped.post("/v1/traces", looping(6), content_type=PROTOBUF)[0] == 200
    assert arrived.wait(20)
    stopped.kill()
    answer.set()
    eventually(lambda: len(receiver.got) == 1)

    stopped.start(**environment)
    eventually(lambda: len(receiver.got) == 2)
    eventually(lambda: stopped.metrics()["redfirst_alert_notices_waiting"] == 0)
    assert stopped.stop() == 0
    stopped.start(**environment)
    assert stopped.post("/v1/traces", looping(6), content_type=PROTOBUF)[0] == 200
    eventually(lambda: len(stopped.stored()) == 9)
    assert stopped.stop() == 0
    receiver.close()

    told = [(message["status"], message["id"]) for message in receiver.messages]
    assert len(told) == 2
    assert len(set(told)) == 1
    assert told[0][0] == "firing"

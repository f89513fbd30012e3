"""What is silenced is not told, by a service that runs meanwhile, and is told when it still fires afterwards."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from redfirst.collector_processor.alerting.file import FILE, AlertFile
from redfirst.collector_processor.alerting.policy import Policy, Stream
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.silences import FILE as SILENCES
from redfirst.collector_processor.alerting.silences import Silence, read_silences, span_ns
from redfirst.collector_processor.alerting.watch import OUTBOX, Watch
from redfirst.collector_processor.alerting.webhook import Webhook
from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.settings import AlertSettings
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.evaluators.errors import ConfigurationError

from .test_alert_faults import QUICK, S, kept, landing

WEBHOOK = Webhook(name="ops", url="http://127.0.0.1:9")


def watched(store: SqliteStore, home: Path, metrics: Metrics | None = None, policy: Policy = QUICK) -> Watch:
    receivers = Receivers(webhooks=(WEBHOOK,))
    file = AlertFile(home / FILE)
    return Watch(policy, receivers, store, store, file, metrics or Metrics(), settings=AlertSettings())


def told(home: Path) -> list[str]:
    path = home / FILE
    queue = json.loads(path.read_text())["queue"] if path.exists() else []
    return [notice["body"]["status"] for notice in queue]


def test_a_silence_holds_back_what_begins_and_what_still_fires_after_it_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made while the service runs; of another agent it changes nothing; when it is ended, the alert is told."""
    now = time.time_ns()
    with kept(tmp_path) as store:
        watch = watched(store, tmp_path)
        watch.step(now)
        assert main(["alerts", "silence", "--home", str(tmp_path), "--agent", "support", "--for", "2h"]) == 0
        name = capsys.readouterr().out.partition(":")[0]
        store.land([landing(n, now + n * S, "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        watch.step(now + 8 * S)
        assert told(tmp_path) == []
        assert main(["alerts", "silence", "--home", str(tmp_path), "--end", name]) == 0
        watch.step(now + 9 * S)
        assert told(tmp_path) == ["firing"]


def test_a_silence_ends_by_itself_and_one_of_another_agent_does_nothing() -> None:
    """Up to its end, and for what it names."""
    one = Silence(id="a", until_ns=10, created_ns=0, agent="support", about="")

    assert one.covers(Stream("default", "support"), 9)
    assert one.covers(Stream("default", "support", "repeats"), 9)
    assert not one.covers(Stream("default", "support"), 10)
    assert not one.covers(Stream("default", "billing"), 9)
    assert not one.covers(Stream("default", "support", about="coverage"), 9)


def test_an_acknowledged_alert_is_told_to_its_end_and_not_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fires, somebody is on it, it resolves, it fires again within the time: two messages and not three."""
    now = time.time_ns()
    home = ["--home", str(tmp_path)]
    with kept(tmp_path) as store:
        watch = watched(store, tmp_path)
        store.land([landing(n, now + n * S, "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        watch.step(now + 8 * S)
        assert main(["alerts", "list", *home]) == 0
        line = capsys.readouterr().out
        assert main(["alerts", "ack", line.split()[0], "--note", "on it", *home]) == 0
        capsys.readouterr()
        assert main(["alerts", "list", *home]) == 0
        seen = capsys.readouterr().out
        assert main(["alerts", "list", "--json", *home]) == 0
        alert, silence = (json.loads(text) for text in capsys.readouterr().out.splitlines())
        good = [landing(100 + n, now + 20 * S + n, "passed") for n in range(80)]
        store.land(good, cursor=START, outbox=[OUTBOX])
        watch.step(now + 30 * S)
        bad = [landing(300 + n, now + 200 * S + n, "failed") for n in range(20)]
        store.land(bad, cursor=START, outbox=[OUTBOX])
        watch.step(now + 201 * S)

    assert line.startswith(alert["alert"][:8])
    assert " ".join(f"{alert['text']} acknowledged".split()) in " ".join(seen.split())
    assert max(map(len, seen.splitlines())) <= 80
    assert (alert["kind"], alert["acknowledged"], alert["agent"]) == ("alert", True, "support")
    assert (silence["alert"], silence["note"], silence["about"]) == (alert["alert"], "on it", "")
    assert told(tmp_path) == ["firing", "resolved"]


def test_silences_that_cannot_be_read_silence_nothing(tmp_path: Path) -> None:
    """The alert is told, and so is what is wrong."""
    now = time.time_ns()
    (tmp_path / SILENCES).write_text("{")
    metrics = Metrics()
    with kept(tmp_path) as store:
        watch = watched(store, tmp_path, metrics)
        store.land([landing(n, now + n * S, "failed") for n in range(8)], cursor=START, outbox=[OUTBOX])
        watch.step(now + 8 * S)

    assert told(tmp_path) == ["firing"]
    assert metrics.value("redfirst_alert_failures_total", reason="silences_unreadable") == 1


def test_what_cannot_be_meant_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No such alert, no such silence, no such time; nothing is kept."""
    with kept(tmp_path):
        home = ["--home", str(tmp_path)]
        assert main(["alerts", "ack", "6a11", *home]) == 2
        assert "no alert that fires begins so" in capsys.readouterr().err
        assert main(["alerts", "silence", "--end", "nope", *home]) == 2
        assert main(["alerts", "silence", "--for", "soon", *home]) == 2
        assert "--for soon: give it as 90m, 2h or 1d" in capsys.readouterr().err
        assert main(["alerts", "list", *home]) == 0
        assert "nothing fires" in capsys.readouterr().out
    assert read_silences(tmp_path) == ()
    assert span_ns("90m") == 5400 * S
    with pytest.raises(ConfigurationError):
        span_ns("91d")

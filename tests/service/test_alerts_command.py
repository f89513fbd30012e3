"""``redfirst alerts``: history told again, a test alert, and rules as files."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from redfirst.collector_processor.alerting.rendering import alertmanager_configuration, prometheus_rules
from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState

ROOT = Path(__file__).parents[2]
S = 1_000_000_000
T0 = 1_800_000_000 * S


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDFIRST_HOME", raising=False)
    return tmp_path


def landed(store: SqliteStore, number: int, at_ns: int, *, bad: bool, version: int = 1) -> None:
    verdict = {
        "check": "repeats",
        "outcome": "failed" if bad else "passed",
        "severity": "flag",
        "class": "trajectory",
        "because": "search was called 6 times",
        "score": None,
        "numerator": None,
        "denominator": None,
        "revision": "r",
    }
    store.land(
        [
            Landing(
                run_id=f"{number:032x}",
                state=RunState.SCORED,
                spans=version,
                span_set_hash=f"{number}.{version}",
                positions=[],
                judged_ns=at_ns,
                arrived_ns=at_ns,
                cut="complete",
                record=json.dumps({"verdicts": [verdict], "flagged": bad}),
                agent="support",
                flagged=bad,
                verdicts=[verdict],
            )
        ],
        cursor=START,
    )


def test_the_stored_history_is_told_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty flagged runs fire within the hour; an hour later their later versions take them back."""
    store = SqliteStore(project / ".redfirst" / "store.sqlite3")
    for number in range(30):
        landed(store, number, T0 + number * 60 * S, bad=True)
    for number in range(30):
        landed(store, number, T0 + (3600 + number) * S, bad=False, version=2)
    store.close()

    assert main(["alerts", "simulate", "--json"]) == 0
    fired, over = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (fired["status"], fired["causes"], fired["agent"]) == ("firing", ["objective"], "support")
    assert fired["since"] == "2027-01-15T08:19:00Z"  # the twentieth run
    assert (over["status"], over["retracted"], over["alert"]) == ("resolved", True, fired["alert"])

    assert main(["alerts", "simulate"]) == 0
    text = capsys.readouterr().out
    assert "30 runs: 2 changes would have been told" in text
    assert "agent support: 20 of 20 runs flagged" in text


def test_nothing_is_told_after_the_last_run_that_is_known(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """30 flagged runs of half a minute: what they raise has the time of the last of them, not a later one."""
    store = SqliteStore(project / ".redfirst" / "store.sqlite3")
    for number in range(30):
        landed(store, number, T0 + number * S, bad=True)
    store.close()

    assert main(["alerts", "simulate", "--json"]) == 0
    (fired,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (fired["status"], fired["at"]) == ("firing", "2027-01-15T08:00:29Z")


def test_too_few_runs_are_no_good_news(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """22 flagged runs, 11 in each of two hours far apart: no window of an hour has the 20 that are asked for."""
    store = SqliteStore(project / ".redfirst" / "store.sqlite3")
    for number in range(22):
        landed(store, number, T0 + (number % 11 * 60 + number // 11 * 9000) * S, bad=True)
    store.close()

    assert main(["alerts", "simulate"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert told == (
        "22 runs: 0 changes would have been told; at most 11 judged runs in any window, fewer than min_runs 20: "
        "the objective can say nothing"
    )


class Hook(ThreadingHTTPServer):
    def __init__(self, status: int) -> None:
        self.got: list[Any] = []
        got = self.got

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                got.append((self.path, json.loads(self.rfile.read(int(self.headers["content-length"])))))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def hooks() -> Iterator[tuple[Hook, Hook]]:
    made = (Hook(200), Hook(500))
    yield made
    for one in made:
        one.shutdown()
        one.server_close()


def test_everybody_is_told_a_test_alert(
    project: Path, hooks: tuple[Hook, Hook], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each receiver is told once, marked as a test; 1 when one did not take it, and which."""
    good, bad = hooks
    alerts = {
        "webhooks": [
            {"name": "ops", "url": good.url, "allow_loopback": True},
            {"name": "broken", "url": bad.url, "allow_loopback": True},
        ],
        "alertmanagers": [{"name": "am", "url": good.url}],
    }
    (project / "redfirst.yaml").write_text(json.dumps({"serve": {"alerts": alerts}}))

    assert main(["alerts", "test"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ops: took the test alert",
        "broken: did not: status_500",
        "am: took the test alert",
    ]
    (_, message), (path, (alert,)) = good.got
    assert message["test"] is True
    assert message["text"].startswith("TEST")
    assert path == "/api/v2/alerts"
    assert alert["labels"]["severity"] == "test"
    assert len(bad.got) == 1


def test_nobody_to_tell_is_no_success(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A test that tells nobody would say that all is well."""
    assert main(["alerts", "test"]) == 2
    assert "There is nobody to tell" in capsys.readouterr().err


def test_the_shipped_files_are_what_is_rendered(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the default objective."""
    shipped = ROOT / "deploy" / "prometheus"
    assert main(["alerts", "render", "--prometheus"]) == 0
    assert capsys.readouterr().out == (shipped / "redfirst.rules.yml").read_text("utf-8")
    assert main(["alerts", "render", "--alertmanager"]) == 0
    assert capsys.readouterr().out == (shipped / "alertmanager.yml").read_text("utf-8")
    assert yaml.safe_load(alertmanager_configuration())["inhibit_rules"]


@pytest.mark.parametrize(("tolerated", "fast"), [(0.2, "0.6"), (0.05, "0.15"), (0.5, "0.75")])
def test_a_fast_burn_can_be_reached(tolerated: float, fast: str) -> None:
    """Three times what is tolerated, or halfway to all runs where that would be more."""
    rules = {
        rule.get("alert"): rule["expr"]
        for group in yaml.safe_load(prometheus_rules(tolerated))["groups"]
        for rule in group["rules"]
    }
    assert f"ratio_rate6h > {fast} and" in rules["RedfirstAgentBurnsFast"]


def test_without_an_objective_there_are_no_rules(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message says what to set."""
    (project / "redfirst.yaml").write_text(json.dumps({"serve": {"alerts": {"threshold": None}}}))
    assert main(["alerts", "render", "--prometheus"]) == 2
    assert "threshold: 0.2" in capsys.readouterr().err

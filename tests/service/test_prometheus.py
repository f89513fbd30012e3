"""With the real Prometheus and the real Alertmanager: a drop fires, reaches a webhook once, and resolves."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from .conftest import Served, Tools, eventually, free_port, looping, needs

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "deploy" / "grafana" / "redfirst.json"
RULES = ROOT / "deploy" / "prometheus" / "redfirst.rules.yml"


def program(*names: str) -> str:
    """The path of a program under one of its names; Debian says ``prometheus-alertmanager``."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    needs(f"{names[0]} (run: deploy/dev/prometheus.sh)", found is not None)
    return str(found)


@contextmanager
def running(command: list[str], ready: str, log: Path) -> Iterator[None]:
    """A server, once it says that it is ready."""
    with log.open("a") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said)
        try:
            eventually(lambda: answers(ready), within=30)
            yield
        finally:
            process.terminate()
            process.wait(20)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def got(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


class Pager(ThreadingHTTPServer):
    """What Alertmanager notifies."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        messages = self.messages

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                messages.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def statuses(self) -> list[str]:
        return [message["status"] for message in self.messages]


@pytest.fixture
def pager() -> Iterator[Pager]:
    made = Pager()
    yield made
    made.shutdown()
    made.server_close()


def send(served: Served, count: int, calls: int) -> None:
    for _ in range(count):
        status, _, _ = served.post("/v1/traces", looping(calls), content_type="application/x-protobuf")
        assert status == 200


def test_a_drop_reaches_alertmanager_and_its_webhook_once_and_resolves(
    tools: Tools, stopped: Served, pager: Pager, tmp_path: Path
) -> None:
    """Eight flagged runs fire; Alertmanager is down while the agent recovers, and hears of it when it is back."""
    alertmanager = program("alertmanager", "prometheus-alertmanager")
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    config = tmp_path / "alertmanager.yml"
    hook = f"http://127.0.0.1:{pager.server_address[1]}/"
    config.write_text(
        json.dumps(
            {
                "route": {
                    "receiver": "pager",
                    "group_by": ["alertname", "agent"],
                    "group_wait": "100ms",
                    "group_interval": "1s",
                    "repeat_interval": "1h",
                },
                "receivers": [{"name": "pager", "webhook_configs": [{"url": hook, "send_resolved": True}]}],
            }
        )
    )
    command = [
        alertmanager,
        f"--config.file={config}",
        f"--storage.path={tmp_path / 'am'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    alerts = {
        "window_seconds": 6,
        "short_window_seconds": 6,
        "min_runs": 5,
        "z": 1.96,
        "tick_seconds": 0.2,
        "alertmanagers": [
            {"name": "am", "url": base, "resend_seconds": 0.5, "lasts_seconds": 60, "resolved_seconds": 60}
        ],
    }
    served = stopped.start(REDFIRST_ALERTS=json.dumps(alerts))
    with running(command, f"{base}/-/ready", tmp_path / "am.log"):
        send(served, 8, calls=6)
        (alert,) = eventually(lambda: got(f"{base}/api/v2/alerts?active=true"), within=30)
        assert alert["labels"]["alertname"] == "RedfirstAgentUnreliable"
        assert alert["labels"]["agent"] == "support"
        assert alert["annotations"]["freeze"].startswith("redfirst freeze ")
        assert alert["status"]["state"] == "active"
        eventually(lambda: pager.statuses() == ["firing"], within=20)
        time.sleep(2)  # sent again several times meanwhile
        assert pager.statuses() == ["firing"]

    send(served, 40, calls=1)
    resolved = 'redfirst_alert_changes_total{status="resolved"}'
    eventually(lambda: served.metrics().get(resolved) == 1, within=40)
    with running(command, f"{base}/-/ready", tmp_path / "am.log"):
        eventually(lambda: pager.statuses() == ["firing", "resolved"], within=40)
        assert got(f"{base}/api/v2/alerts?active=true") == []
    first, last = pager.messages
    assert first["alerts"][0]["fingerprint"] == last["alerts"][0]["fingerprint"]
    assert first["alerts"][0]["startsAt"] == last["alerts"][0]["startsAt"]
    assert served.stop() == 0


def test_prometheus_scrapes_the_service_and_evaluates_the_shipped_rules(
    tools: Tools, served: Served, tmp_path: Path
) -> None:
    """Every rule is healthy against the real series, and the series are those that the rules name."""
    prometheus = program("prometheus")
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    target = urllib.parse.urlsplit(served.page).netloc
    config = tmp_path / "prometheus.yml"
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(RULES)],
                "scrape_configs": [{"job_name": "redfirst", "static_configs": [{"targets": [target]}]}],
            }
        )
    )
    send(served, 3, calls=6)
    send(served, 2, calls=1)
    eventually(lambda: len(served.runs()) == 5)
    command = [
        prometheus,
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    ]
    with running(command, f"{base}/-/ready", tmp_path / "prometheus.log"):

        def value(query: str) -> dict[str, float]:
            asked = urllib.parse.urlencode({"query": query})
            found = got(f"{base}/api/v1/query?{asked}")["data"]["result"]
            return {one["metric"].get("redfirst_verdict", ""): float(one["value"][1]) for one in found}

        counted = eventually(lambda: value('redfirst_traces_total{gen_ai_agent_name="support"}'), within=30)
        assert counted == {"flagged": 3.0, "clean": 2.0}
        assert value("redfirst_ready") == {"": 1.0}
        eventually(lambda: all_evaluated(base), within=30)
        health = {rule["name"]: rule["health"] for rule in rules(base)}
        assert set(health.values()) == {"ok"}
        assert "RedfirstAgentSilent" in health
        for panel, expr in expressions().items():
            asked = urllib.parse.urlencode({"query": expr.replace("$agent", ".*")})
            assert got(f"{base}/api/v1/query?{asked}")["status"] == "success", panel
        flagged = next(expr for panel, expr in expressions().items() if panel.startswith("Flagged"))
        ready = expressions()["Ready"]
        send(served, 3, calls=6)
        send(served, 2, calls=1)
        asked_for = flagged.replace("$agent", ".*")
        eventually(lambda: value(asked_for).get("") == pytest.approx(0.6), within=30)
        assert value(ready) == {"": 1.0}
        traces = {run["trace_id"] for run in served.runs()}
        named = {
            "query": "redfirst_traces_total",
            "start": time.time() - 300,
            "end": time.time() + 300,
        }
        (found, *_) = got(f"{base}/api/v1/query_exemplars?{urllib.parse.urlencode(named)}")["data"]
        assert found["exemplars"][0]["labels"]["trace_id"] in traces


def expressions() -> dict[str, str]:
    """What each panel of the dashboard asks for."""
    board = json.loads(DASHBOARD.read_text())
    return {
        panel["title"]: target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    }


def test_the_shipped_dashboard_is_what_its_script_makes() -> None:
    """It has a fixed uid, asks for its data source, and every panel has one query."""
    spec = importlib.util.spec_from_file_location("grafana_build", DASHBOARD.with_name("build.py"))
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    board = json.loads(DASHBOARD.read_text())

    assert build.dashboard() == board
    assert board["uid"] == "redfirst"
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(expressions()) == len(panels) == 14
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert [one["type"] for one in board["templating"]["list"]] == ["datasource", "query"]


def rules(base: str) -> list[dict[str, Any]]:
    return [rule for group in got(f"{base}/api/v1/rules")["data"]["groups"] for rule in group["rules"]]


def all_evaluated(base: str) -> bool:
    return all(rule["health"] != "unknown" for rule in rules(base))


@pytest.mark.parametrize(
    "arguments", [["check", "rules", RULES], ["test", "rules", RULES.with_suffix(".test.yml")]]
)
def test_the_shipped_rules_do_what_their_tests_say(arguments: list[Any]) -> None:
    """promtool's own check and unit tests."""
    promtool = program("promtool")
    done = subprocess.run([promtool, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

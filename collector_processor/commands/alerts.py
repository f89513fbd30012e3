"""``redfirst alerts``: what alerts would have told, whether receivers hear them, and rules for Prometheus."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from redfirst.collector_processor.alerting import alertmanager
from redfirst.collector_processor.alerting.delivery import send
from redfirst.collector_processor.alerting.file import Notice
from redfirst.collector_processor.alerting.message import SCHEMA, message
from redfirst.collector_processor.alerting.policy import Policy
from redfirst.collector_processor.alerting.receivers import Receivers
from redfirst.collector_processor.alerting.rendering import alertmanager_configuration, prometheus_rules
from redfirst.collector_processor.alerting.simulating import fullest_window, simulated
from redfirst.collector_processor.alerting.webhook import Posted
from redfirst.collector_processor.commands import alert_silences
from redfirst.collector_processor.commands.changing import home_of
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.settings import AlertSettings, ServeSettings, configured, in_force
from redfirst.collector_processor.storing.rows import moment
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState, StoredRun
from redfirst.collector_processor.terminal import Screen, counted
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project, project_at


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--config", metavar="FILE", help="the redfirst.yaml to use (default: the nearest one)"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    simulate = actions.add_parser("simulate", help="what would have been told, and when, on the stored runs")
    simulate.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    simulate.add_argument("--json", action="store_true", help="one JSON object per change, one per line")
    actions.add_parser("test", help="tell every receiver a marked test alert")
    alert_silences.configure(actions)
    render = actions.add_parser("render", help="print rules to be reviewed and committed")
    form = render.add_mutually_exclusive_group(required=True)
    form.add_argument("--prometheus", action="store_true", help="recording and alerting rules for Prometheus")
    form.add_argument("--alertmanager", action="store_true", help="routes and inhibitions for Alertmanager")


def execute(options: argparse.Namespace) -> int:
    """Do the one action."""
    if options.action in ("silence", "ack", "list"):
        return alert_silences.execute(options)
    project = project_at(Path(options.config)) if options.config else load_project(Path.cwd())
    settings = in_force(configured(project))
    if options.action == "simulate":
        return _simulate(options, settings)
    if options.action == "test":
        return _test(settings.alerts)
    print(
        prometheus_rules(settings.alerts.threshold) if options.prometheus else alertmanager_configuration(),
        end="",
    )
    return 0


def _simulate(options: argparse.Namespace, settings: ServeSettings) -> int:
    """Print every change; 0 whatever they are: nothing was asked to pass."""
    policy = Policy.of(settings.alerts)
    reader = SqliteReader(home_of(options.home).store)
    try:
        history = list(_history(reader))
    finally:
        reader.close()
    screen, count = Screen(), 0
    last = max((run.judged_ns for versions in history for run in versions), default=0)
    for change in simulated(history, policy, until_ns=last):
        count += 1
        body = message(change, policy, trace_url=Links.of(settings).template)
        if options.json:
            print(json.dumps(body))
        else:
            said = f"{moment(change.at_ns)[:19]}  {change.status.value:<9}{body['text']}"
            screen.para(said, hang=" " * 30)
    if not options.json:
        told = f"{counted(len(history), 'run')}: {counted(count, 'change')} would have been told"
        screen.para(told + ("" if count else _silence(history, policy)), hang="  ")
    return 0


def _silence(history: Sequence[Sequence[StoredRun]], policy: Policy) -> str:
    """Why nothing was told, where that is no good news."""
    most = fullest_window(history, policy)
    if policy.threshold is None or most >= policy.min_runs:
        return ""
    return (
        f"; at most {counted(most, 'judged run')} in any window, fewer than min_runs {policy.min_runs}: "
        "the objective can say nothing"
    )


def _history(reader: SqliteReader) -> Iterator[Sequence[StoredRun]]:
    """Every version of every run."""
    for run in reader.runs(Query(states=(RunState.SCORED, RunState.UNSCORED), records=True)):
        yield [run] if run.version == 1 else reader.versions(run.run_id)


def _test(settings: AlertSettings, environment: Mapping[str, str] = os.environ) -> int:
    """Tell everybody once; 1 when somebody did not take it."""
    receivers = Receivers.of(settings, environment)
    if not receivers.told and not receivers.alertmanagers:
        raise ConfigurationError(
            "There is nobody to tell: add webhooks, alertmanagers or notify under serve: alerts: in redfirst.yaml."
        )
    now = time.time()
    body = marked(int(now * 1e9))
    notice = Notice(id=f"{body['alert']}.test", receiver="", body=body, created_ns=int(now * 1e9))
    answers: list[tuple[str, Posted]] = [(one.name, send(one, notice, now=now)) for one in receivers.told]
    answers += [(one.name, alertmanager.post(one, [body], [], now=now)) for one in receivers.alertmanagers]
    for name, posted in answers:
        print(f"{name}: {'took the test alert' if posted.delivered else f'did not: {posted.reason}'}")
    return 0 if all(posted.delivered for _, posted in answers) else 1


def marked(now_ns: int) -> dict[str, Any]:
    """A message that nobody can take for a real one."""
    return {
        "schema": SCHEMA,
        "id": f"test-{now_ns}",
        "alert": f"test-{now_ns}",
        "status": "firing",
        "test": True,
        "tenant": "default",
        "agent": "test",
        "check": None,
        "about": "reliability",
        "text": "TEST: redfirst alerts test; nothing is wrong",
        "since": moment(now_ns),
        "at": moment(now_ns),
        "flagged": 0,
        "judged": 0,
        "interval": None,
        "causes": ["test"],
        "severity": "test",
        "failing_runs": [],
        "links": [],
        "reasons": [],
        "covered_by": [],
        "began": [],
        "freeze": None,
    }

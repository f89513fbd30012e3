"""``redfirst backfill``: judge again, by the checks in force, what was judged by others and still has its spans."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

from redfirst.collector_processor.commands.changing import ask, home_of
from redfirst.collector_processor.commands.serve import outbox_destinations
from redfirst.collector_processor.home import Home, HomeLock, OwnApi
from redfirst.collector_processor.journal.format import segments
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.journal_settings import read_up_to
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.reliability.period import begin_of
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.scoring.assembly import AssemblyLimits
from redfirst.collector_processor.scoring.inline import InlineScoring
from redfirst.collector_processor.scoring.judgements import NOT_JUDGED_AGAIN
from redfirst.collector_processor.scoring.pipeline import Pipeline
from redfirst.collector_processor.scoring.worker import revision_of_all
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.terminal import counted
from redfirst.evaluators.check import Check
from redfirst.evaluators.errors import RedfirstError
from redfirst.replay.project import load_project

_IDLE_STEPS = 2000


class NotFinished(RedfirstError):
    """Some runs could not be judged again."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--since", metavar="WHEN", help="judged since then: 24h, 7d, or a date (default: all)"
    )
    parser.add_argument("--rules", metavar="FILE", help="a rules file (default: rules: of redfirst.yaml)")
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def execute(options: argparse.Namespace) -> int:
    """Note the runs, and judge them here where no service does. What was noted and not done is done by the next
    ``backfill`` or ``serve``."""
    home = home_of(options.home)
    project = load_project(Path.cwd())
    checks = checks_of(project, options.rules)
    revision = revision_of_all(checks)
    since_ns = 0 if options.since is None else begin_of(options.since, time.time_ns())
    service = OwnApi.of(home.service())
    if service is not None:
        asked = {"since_ns": since_ns, "revision": revision}
        found = {**ask(service, "/api/backfill", asked), "by": "service"}
    else:
        found = {**_here(home, checks, since_ns, outbox_destinations(project, home)), "by": "backfill"}
    if options.json:
        print(json.dumps(found))
        return 0
    if "judged" in found:
        print(f"{counted(found['judged'], 'run')} judged again")
    else:
        print(f"{counted(found['noted'], 'run')} noted: the service judges them behind what is new")
    for name, why in (("spans_gone", "spans are gone"), ("not_judged", "checks gave no verdict")):
        if found.get(name):
            print(f"{counted(found[name], 'run')} left with the verdict before: {why}")
    return 0


def _here(home: Home, checks: Sequence[Check], since_ns: int, told: Sequence[str]) -> dict[str, int]:
    """What became of the runs: how many were noted, judged, and left as they were."""
    lock = HomeLock(home)
    store = SqliteStore(home.store)
    metrics = Metrics()
    pipeline = Pipeline(lambda: journal, store, limits=AssemblyLimits(), metrics=metrics, destinations=told)
    journal = Journal(
        home.journal,
        metrics=metrics,
        on_durable=pipeline.durable,
        after=read_up_to(store.cursors().values()),
    )
    scoring = InlineScoring(home.journal, checks, pipeline.answered)
    try:
        noted = store.judge_again(
            since_ns=since_ns, revision=scoring.revision, segments=segments(home.journal)
        )
        pipeline.begin(scoring)
        _until_done(pipeline, store)
        left = store.outdated(since_ns=since_ns, revision=scoring.revision)
    finally:
        journal.close()
        scoring.close()
        store.close()
        lock.release()
    not_judged = int(metrics.value("redfirst_late_total", outcome=NOT_JUDGED_AGAIN))
    return {
        "noted": noted.noted,
        "judged": noted.noted + noted.spans_gone - left,
        "spans_gone": left - not_judged,
        "not_judged": not_judged,
    }


def _until_done(pipeline: Pipeline, store: SqliteStore) -> None:
    left, idle = store.left_to_judge_again(), 0
    while left:
        pipeline.step()
        before, left = left, store.left_to_judge_again()
        idle = idle + 1 if left == before else 0
        if idle > _IDLE_STEPS:
            raise NotFinished(
                f"{left} runs could not be judged again; start redfirst serve, which goes on with them."
            )
        if idle:
            time.sleep(0.01)

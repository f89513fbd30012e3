"""``redfirst report``: what the judged runs of a period say of each agent."""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence

from redfirst.collector_processor.commands.changing import home_of
from redfirst.collector_processor.commands.results import add_form_arguments, positive, show
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.reliability.agent_report import AgentReport, report
from redfirst.collector_processor.reliability.period import begin_of
from redfirst.collector_processor.reliability.reliability_tables import gate_table
from redfirst.collector_processor.reliability.report_tables import report_figures, report_json, report_tables
from redfirst.collector_processor.reliability.requirements import (
    Requirement,
    Verdict,
    at_least,
    checked,
    exit_code,
    gates_json,
    parsed,
)
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, StoredRun
from redfirst.evaluators.errors import ConfigurationError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--since", default="24h", metavar="WHEN", help="runs judged since: 24h, 7d, or a date (default: 24h)"
    )
    parser.add_argument("--agent", metavar="NAME", help="this agent alone (default: every one)")
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit 1 unless it holds for every agent, 3 when it has no verdict: 'strict.low>=.9', 'repeats<=.05'",
    )
    parser.add_argument("--min-runs", type=positive, metavar="N", help="no verdict with fewer runs: exit 3")
    add_form_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Report. With ``--require`` or ``--min-runs``: 0 met, 1 not met, 3 no verdict."""
    requirements = [parsed(text) for text in options.require]
    since_ns = begin_of(options.since, time.time_ns())
    reports = _reports(home_of(options.home), since_ns, options.agent)
    every: list[Verdict] = []
    for found in reports:
        verdicts = _gates(found, requirements, options.min_runs)
        every += verdicts
        if options.json:
            print(
                json.dumps(
                    {**report_json(found, since_ns=since_ns), "required": gates_json(verdicts)},
                    allow_nan=False,
                )
            )
        else:
            tables = [
                *report_tables(found, since=options.since),
                *([gate_table(verdicts)] if verdicts else []),
            ]
            show(tables, markdown=options.markdown)
            if found is not reports[-1]:
                print()
    return exit_code(every)


def _gates(found: AgentReport, requirements: Sequence[Requirement], min_runs: int | None) -> list[Verdict]:
    verdicts = checked(requirements, report_figures(found)) if requirements else []
    return verdicts if min_runs is None else [*verdicts, at_least("runs", found.runs, min_runs)]


def _reports(home: Home, since_ns: int, agent: str | None) -> list[AgentReport]:
    """The report of each agent, by name.

    Raises:
        ConfigurationError: no run was judged in the period.
    """
    reader = SqliteReader(home.store)
    try:
        runs = reader.runs(Query(agent=agent, since_ns=since_ns, records=True))
        labels = reader.labels()
    finally:
        reader.close()
    if not runs:
        whose = "" if agent is None else f" of agent {agent!r}"
        raise ConfigurationError(
            f"the store {home.store} holds no run{whose} judged in that time; try --since 7d."
        )
    by_agent: defaultdict[str | None, list[StoredRun]] = defaultdict(list)
    for run in reversed(runs):
        by_agent[run.agent].append(run)
    names = sorted(by_agent, key=lambda name: (name is None, name or ""))
    return [report(by_agent[name], labels, agent=name) for name in names]

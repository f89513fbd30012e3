"""``redfirst show``: one run, or the incident of a scenario, as a timeline that a person reads in a minute."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from redfirst.collector_processor.backends.selecting import is_address
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.prices_file import prices_of
from redfirst.collector_processor.recorded.sources import add_source_arguments, followed, recorded_runs
from redfirst.collector_processor.rules_file import checks_of
from redfirst.collector_processor.showing.page import page
from redfirst.collector_processor.showing.view import View
from redfirst.collector_processor.terminal import Screen, tell
from redfirst.evaluators import flagged
from redfirst.evaluators.check import judge
from redfirst.evaluators.errors import ConfigurationError, UnreadableInput
from redfirst.evaluators.prices import Cost, PriceTable, cost_of, cost_record
from redfirst.evaluators.provenance import provenance
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.record import run_record
from redfirst.replay.covering import covers_of
from redfirst.replay.project import load_project
from redfirst.replay.scenario import SCENARIO_FILE, load
from redfirst.replay.standing import standing


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "run",
        metavar="RUN|DIR",
        help="a trace id, the beginning of one, or the link of its page in a backend; or a scenario folder",
    )
    add_source_arguments(parser)
    parser.add_argument("--json", action="store_true", help="the run as one JSON object, as score prints it")
    parser.add_argument(
        "--explain",
        action="store_true",
        help="for each check, why it failed or did not, and which attributes each fact was read from",
    )


def execute(options: argparse.Namespace) -> int:
    """Show the run. 0, flagged or not."""
    view = _of_scenario(options) if _is_folder(options.run) else _of_traces(options)
    prices = prices_of(load_project(Path.cwd()))
    cost = cost_of(view.run, prices)
    links = Links.of_project(load_project(Path.cwd()))
    url = links.to(view.run.run_id, next(iter(view.run.trace_ids), None))
    view = replace(view, cost=_said(cost, prices), url=url or "")
    if options.json:
        metrics = {"cost": cost_record(cost, prices)}
        record = {**run_record(view.run, view.verdicts, metrics), **({"url": url} if url else {})}
        print(json.dumps(record, ensure_ascii=True, allow_nan=False))
        return 0
    screen = Screen()
    for line in page(view, explain=options.explain):
        print("".join(screen.paint(text, *style.split()) for text, style in line).rstrip(), file=screen.out)
    return 0


def _said(cost: Cost, prices: PriceTable) -> str:
    """The cost, or why it is not known; with the day that the prices are of."""
    told = "not known" if cost.amount is None else f"{cost.amount:.6f} {prices.currency}"
    return f"{told}, prices of {prices.as_of}{f'; {cost.because}' if cost.because else ''}"


def _is_folder(given: str) -> bool:
    return bool(given) and not is_address(given) and (Path(given).is_dir() or "/" in given)


def _of_traces(options: argparse.Namespace) -> View:
    project = load_project(Path.cwd())
    checks = checks_of(project, options.rules)
    wanted, asked = followed(options.run, options.traces)
    found = recorded_runs(project, asked, checks)
    recorded = found.named(wanted)
    known = covers_of(project)
    cover = known.of_run(recorded.run, recorded.verdicts)
    if cover is None and known.untold and flagged(recorded.verdicts):
        tell(known.said_untold)
    traces = [word for path in asked or () for word in ("--traces", path)]
    rules = [] if options.rules is None else ["--rules", options.rules]
    return View(
        run=recorded.run,
        checks=checks,
        verdicts=recorded.verdicts,
        sources=[*traces, *rules],
        origins=provenance(recorded.run, recorded.spans, recorded.logs) if options.explain else {},
        labels=found.labels(recorded.run.run_id),
        cover=cover,
    )


def _of_scenario(options: argparse.Namespace) -> View:
    given = Path(options.run)
    path = given.parent if given.name == SCENARIO_FILE and given.is_file() else given
    folder = load(path)
    wanted = folder.scenario.origin.get("trace_id")
    try:
        found = read_runs(folder.trace, folder.logs)
    except UnreadableInput as problem:
        raise UnreadableInput(f"{path}: the recorded trace: {problem}") from problem
    runs = [run for run in found if wanted in (None, *run.trace_ids)]
    if len(runs) != 1:
        raise ConfigurationError(
            f"{path / SCENARIO_FILE}: the recorded trace holds {len(runs)} runs of trace {wanted}; freeze the run again."
        )
    checks = (*folder.scenario.targets(), *folder.scenario.guards())
    verdicts = judge(runs[0], checks)
    origins = provenance(runs[0], folder.trace, folder.logs) if options.explain else {}
    return View(
        run=runs[0],
        checks=checks,
        verdicts=verdicts,
        origins=origins,
        folder=folder,
        standing=standing(folder),
    )

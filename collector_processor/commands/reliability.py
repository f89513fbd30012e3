"""``redfirst reliability``: how often an agent succeeds when it is asked again, how surely, and what it costs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from redfirst.collector_processor.commands.results import (
    add_form_arguments,
    add_gate_arguments,
    add_reading_arguments,
    positive,
    read,
    show,
)
from redfirst.collector_processor.reliability.figures import as_json, named
from redfirst.collector_processor.reliability.reliability_tables import gate_table, tables_of
from redfirst.collector_processor.reliability.requirements import (
    at_least,
    checked,
    exit_code,
    gates_json,
    parsed,
)
from redfirst.collector_processor.reliability.summary import Reliability, summarise
from redfirst.collector_processor.terminal import tell
from redfirst.evaluators.errors import ConfigurationError


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="FILE",
        help="JSON lines of trials, results of τ-bench or τ²-bench, logs of Inspect, kept runs, a store",
    )
    add_reading_arguments(parser)
    parser.add_argument(
        "--min-trials", type=positive, metavar="N", help="only tasks with N trials that have a verdict"
    )
    add_gate_arguments(parser, example="'pass_hat[4]>=.5', 'success.low>=.8'")
    add_form_arguments(parser)
    parser.add_argument("--plot", metavar="DIR", help="write the pictures there, as SVG and PNG")


def execute(options: argparse.Namespace) -> int:
    """Summarise the trials. With ``--require`` or ``--min-tasks``: 0 met, 1 not met, 3 no verdict."""
    requirements = [parsed(text) for text in options.require]
    results = read(options, options.paths)
    found = summarise(results.trials, min_trials=options.min_trials)
    if not found.tasks:
        raise ConfigurationError(
            f"--min-trials {options.min_trials}: none of {found.tasks_read} tasks has so many trials with a verdict."
        )
    verdicts = checked(requirements, named(found)) if requirements else []
    if options.min_tasks is not None:
        verdicts.append(at_least("tasks", len(found.tasks), options.min_tasks))
    if options.plot is not None:
        _plot(found, Path(options.plot))
    if options.json:
        print(
            json.dumps(
                {**as_json(found, min_trials=options.min_trials), "required": gates_json(verdicts)},
                allow_nan=False,
            )
        )
    else:
        show([*tables_of(found), *([gate_table(verdicts)] if verdicts else [])], markdown=options.markdown)
    return exit_code(verdicts)


def _plot(found: Reliability, folder: Path) -> None:
    from redfirst.collector_processor.reliability.plots import draw_all

    for path in draw_all(found, folder):
        tell(f"wrote {path}")

"""``redfirst reliability``: how often an agent succeeds when it is asked again, how surely, and what it costs."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from redfirst.collector_processor.reliability.figures import as_json, named
from redfirst.collector_processor.reliability.reliability_tables import gate_table, tables_of
from redfirst.collector_processor.reliability.requirements import at_least, checked, exit_code, parsed
from redfirst.collector_processor.reliability.results.reading import Reading, Results, read_results
from redfirst.collector_processor.reliability.summary import Reliability, summarise
from redfirst.collector_processor.reliability.tables import Table, as_markdown, as_text
from redfirst.collector_processor.reliability.trial import require_one_cap
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
    add_gate_arguments(parser)
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
        gates = [
            {"requirement": one.requirement, "gate": one.gate.value, "because": one.because}
            for one in verdicts
        ]
        print(
            json.dumps({**as_json(found, min_trials=options.min_trials), "required": gates}, allow_nan=False)
        )
    else:
        show([*tables_of(found), *([gate_table(verdicts)] if verdicts else [])], markdown=options.markdown)
    return exit_code(verdicts)


def _plot(found: Reliability, folder: Path) -> None:
    from redfirst.collector_processor.reliability.plots import draw_all

    for path in draw_all(found, folder):
        print(f"redfirst: wrote {path}", file=sys.stderr)


def read(options: argparse.Namespace, paths: list[str]) -> Results:
    """The trials that the arguments name, with notes on stderr.

    Raises:
        ConfigurationError: they were run under different limits.
    """
    how = Reading(scorer=options.scorer, mode=options.mode, agent=options.agent, renumber=options.renumber)
    results = read_results(paths, how)
    for note in results.notes:
        print(f"redfirst: {', '.join(paths)}: {note}", file=sys.stderr)
    if not options.unequal_caps:
        require_one_cap(results.trials, ", ".join(paths))
    return results


def show(tables: list[Table], *, markdown: bool) -> None:
    """Print the tables."""
    for line in as_markdown(tables) if markdown else as_text(tables):
        print(line)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """What of the results counts, where they leave a choice."""
    parser.add_argument("--scorer", metavar="NAME", help="the score of an Inspect log that counts")
    parser.add_argument(
        "--mode", metavar="MODE", help="the mode of kept runs that counts: recorded, tools or model"
    )
    parser.add_argument("--agent", metavar="NAME", help="the agent of a store whose runs count")
    parser.add_argument(
        "--renumber", action="store_true", help="take equal trial numbers for further runs of the task"
    )
    parser.add_argument(
        "--unequal-caps", action="store_true", help="put runs together that had different limits"
    )


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """``--require`` and ``--min-tasks``."""
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="CONDITION",
        help="exit 1 unless it holds, 3 when it has no verdict: 'pass_hat[4]>=.5', 'success.low>=.8'",
    )
    parser.add_argument("--min-tasks", type=positive, metavar="N", help="no verdict with fewer tasks: exit 3")


def add_form_arguments(parser: argparse.ArgumentParser) -> None:
    """``--json`` and ``--markdown``."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object")
    form.add_argument("--markdown", action="store_true", help="tables for a pull request")


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number

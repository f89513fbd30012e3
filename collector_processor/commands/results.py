"""What ``reliability``, ``compare``, ``plan`` and ``report`` take and print in common."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from redfirst.collector_processor.reliability.results.reading import Reading, Results, read_results
from redfirst.collector_processor.reliability.tables import Table, as_markdown, as_text
from redfirst.collector_processor.reliability.trial import require_one_cap
from redfirst.collector_processor.terminal import clean


def read(options: argparse.Namespace, paths: list[str]) -> Results:
    """The trials that the arguments name, with notes on stderr.

    Raises:
        ConfigurationError: they were run under different limits.
    """
    how = Reading(scorer=options.scorer, mode=options.mode, agent=options.agent, renumber=options.renumber)
    results = read_results(paths, how)
    for note in results.notes:
        print(clean(f"redfirst: {', '.join(paths)}: {note}"), file=sys.stderr)
    if not options.unequal_caps:
        require_one_cap(results.trials, ", ".join(paths))
    return results


def show(tables: Sequence[Table], *, markdown: bool) -> None:
    """Print the tables."""
    for line in as_markdown(tables) if markdown else as_text(tables):
        print(line)


def add_reading_arguments(parser: argparse.ArgumentParser) -> None:
    """What of the results counts, where they leave a choice."""
    parser.add_argument("--scorer", metavar="NAME", help="the score of an Inspect log that counts")
    parser.add_argument("--mode", metavar="MODE", help="the mode of kept runs that counts: recorded or tools")
    parser.add_argument("--agent", metavar="NAME", help="the agent of a store whose runs count")
    parser.add_argument(
        "--renumber", action="store_true", help="take equal trial numbers for further runs of the task"
    )
    parser.add_argument(
        "--unequal-caps", action="store_true", help="put runs together that had different limits"
    )


def add_gate_arguments(parser: argparse.ArgumentParser, *, example: str) -> None:
    """``--require``, with an example of a condition, and ``--min-tasks``."""
    parser.add_argument(
        "--require",
        action="append",
        default=[],
        metavar="CONDITION",
        help=f"exit 1 unless it holds, 3 when it has no verdict: {example}",
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

"""``redfirst compare``: is the second agent better or worse than the first, and could these runs have shown it."""

from __future__ import annotations

import argparse
import json

from redfirst.collector_processor.commands.results import (
    add_form_arguments,
    add_gate_arguments,
    add_reading_arguments,
    read,
    show,
)
from redfirst.collector_processor.reliability.comparison import VERDICTS, compare
from redfirst.collector_processor.reliability.comparison_tables import (
    comparison_figures,
    comparison_json,
    tables_of,
)
from redfirst.collector_processor.reliability.reliability_tables import gate_table
from redfirst.collector_processor.reliability.requirements import (
    at_least,
    checked,
    exit_code,
    gates_json,
    parsed,
)
from redfirst.collector_processor.reliability.trial import caps
from redfirst.collector_processor.terminal import tell


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("first", metavar="A", help="results of what is in use: as for reliability")
    parser.add_argument("second", metavar="B", help="results of what is to replace it, on the same tasks")
    parser.add_argument(
        "--on",
        choices=list(VERDICTS),
        default="passed",
        help="the verdict that is compared (default: passed)",
    )
    add_reading_arguments(parser)
    add_gate_arguments(parser, example="'difference.low>=-.05'")
    add_form_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare. 1 when B is worse by more than chance, 3 when the design allows no test; with ``--require`` or
    ``--min-tasks`` these alone decide."""
    requirements = [parsed(text) for text in options.require]
    first, second = (read(options, [path]).trials for path in (options.first, options.second))
    found = compare(first, second, on=options.on, unequal_caps=options.unequal_caps)
    if len(caps(first)) + len(caps(second)) == 1:
        tell("only one of the two says what limit it ran under; see that it was the same")
    verdicts = checked(requirements, comparison_figures(found))
    if options.min_tasks is not None:
        verdicts.append(at_least("tasks", found.tasks, options.min_tasks))
    if options.json:
        print(json.dumps({**comparison_json(found), "required": gates_json(verdicts)}, allow_nan=False))
    else:
        show([*tables_of(found), *([gate_table(verdicts)] if verdicts else [])], markdown=options.markdown)
    if verdicts:
        return exit_code(verdicts)
    if found.p is None:
        return 3
    return 1 if found.significant and found.difference.value < 0 else 0

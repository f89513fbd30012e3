"""``redfirst plan``: how many tasks and trials an error bar takes, and how much a run may use."""

from __future__ import annotations

import argparse
import json
import math

from redfirst.collector_processor.commands.results import (
    add_form_arguments,
    add_reading_arguments,
    positive,
    read,
    show,
)
from redfirst.collector_processor.reliability.planning import (
    Plan,
    Variance,
    Wanted,
    caps_of,
    mean_price,
    pilot_variance,
    plan,
)
from redfirst.collector_processor.reliability.planning_tables import cap_table, plan_json, plan_tables
from redfirst.collector_processor.reliability.summary import Reliability, summarise
from redfirst.collector_processor.reliability.tables import Table
from redfirst.evaluators.errors import ConfigurationError

MOST_RUNS = 1_000_000
"""Every number of trials up to it is looked at."""
LEAST_POINTS = 0.001
"""A hundred-thousandth: no budget of runs reaches it."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("paths", nargs="*", metavar="FILE", help="a pilot's results: as for reliability")
    parser.add_argument(
        "--points",
        type=float,
        metavar="P",
        help="wanted half width of the 95 %% interval, in percentage points",
    )
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--runs", type=positive, metavar="N", help="how many runs there may be")
    budget.add_argument(
        "--cost", type=float, metavar="D", help="how many dollars they may cost; needs a pilot with cost"
    )
    parser.add_argument("--tasks", type=positive, metavar="N", help="how many tasks there are")
    parser.add_argument(
        "--trials", type=positive, default=1, metavar="K", help="at least so many trials each, for pass^K"
    )
    parser.add_argument(
        "--between", type=float, metavar="V", help="variance of the tasks' true rates, without a pilot"
    )
    parser.add_argument(
        "--within", type=float, metavar="V", help="mean of p(1-p) over tasks, without a pilot"
    )
    parser.add_argument(
        "--quantile",
        type=float,
        default=0.95,
        metavar="Q",
        help="share of passing runs a cap leaves alone (0.95)",
    )
    add_reading_arguments(parser)
    add_form_arguments(parser)


def execute(options: argparse.Namespace) -> int:
    """Plan. 1 when the budget does not reach what is wanted, else 0."""
    if not 0 < options.quantile < 1:
        raise ConfigurationError(f"--quantile {options.quantile}: give a share between 0 and 1, as in 0.95.")
    pilot = summarise(read(options, options.paths).trials) if options.paths else None
    found = _plan(options, pilot)
    caps = {} if pilot is None else caps_of(pilot, quantile=options.quantile)
    if found is None and not caps:
        raise ConfigurationError(
            "nothing to plan: give --points and --runs, with a pilot's results or with --between and --within."
        )
    if options.json:
        print(json.dumps(plan_json(found, caps), allow_nan=False))
    else:
        tables: list[Table] = [] if found is None else list(plan_tables(found))
        if caps:
            tables.append(cap_table(caps, quantile=options.quantile))
        show(tables, markdown=options.markdown)
    return 1 if found is not None and not found.designs else 0


def _plan(options: argparse.Namespace, pilot: Reliability | None) -> Plan | None:
    if options.points is None:
        for name in ("runs", "cost", "tasks", "between", "within"):
            if getattr(options, name) is not None:
                raise ConfigurationError(f"--{name} says nothing without --points: give both.")
        return None
    if not LEAST_POINTS <= options.points < 100:
        raise ConfigurationError(
            f"--points {options.points}: give percentage points between {LEAST_POINTS} and 100, as in 4."
        )
    price = None if pilot is None else mean_price(pilot)
    wanted = Wanted(
        half_width=options.points / 100,
        runs=_runs(options, price),
        tasks=options.tasks,
        least_trials=options.trials,
    )
    return plan(_variance(options, pilot), wanted, price=price)


def _runs(options: argparse.Namespace, price: float | None) -> int:
    if options.runs is not None:
        if options.runs > MOST_RUNS:
            raise ConfigurationError(f"--runs {options.runs}: give at most {MOST_RUNS}.")
        return int(options.runs)
    if options.cost is None:
        raise ConfigurationError(
            "--points needs a budget: --runs N, or --cost D with a pilot whose runs say their cost."
        )
    if price is None:
        raise ConfigurationError("--cost: no run of the pilot says what it cost; give --runs instead.")
    if not price:
        raise ConfigurationError("--cost: the runs of the pilot cost nothing; give --runs instead.")
    if not 0 < options.cost < math.inf or options.cost / price > MOST_RUNS:
        raise ConfigurationError(
            f"--cost {options.cost:g}: give dollars above 0, for at most {MOST_RUNS} runs of {price:.2g} dollars."
        )
    return int(options.cost / price)


def _variance(options: argparse.Namespace, pilot: Reliability | None) -> Variance:
    given = (options.between, options.within)
    if None not in given:
        if not (min(given) >= 0 and sum(given) <= 0.25):  # written so that a NaN is refused
            raise ConfigurationError(
                f"--between {given[0]} --within {given[1]}: both are at least 0 and together at most 0.25, p(1-p) of a coin."
            )
        return Variance(between=given[0], within=given[1])
    if given != (None, None) or pilot is None:
        raise ConfigurationError(
            "--points needs the variance: a pilot's results, or both --between and --within."
        )
    return pilot_variance(pilot)

"""How many tasks and trials a wanted interval takes, and what a run may use, from a pilot's runs or given numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redfirst.collector_processor.reliability.budgets import BudgetPoint, budget_curve
from redfirst.collector_processor.reliability.summary import AMOUNTS, Reliability
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.statistics.clustered import spread
from redfirst.evaluators.statistics.planning import Design, StepBudget, best_within, designs, step_budget

_SHOWN_TRIALS = (1, 2, 3, 4, 5, 8, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the plan is to reach, and with how much."""

    half_width: float
    """Half of the 95 % interval of success, as a share."""
    runs: int
    tasks: int | None = None
    """How many tasks there are at most."""
    least_trials: int = 1
    """The k of a pass^k that is to be reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance:
    """Where the spread of results comes from."""

    between: float
    within: float
    tasks: int | None = None
    """Tasks of the pilot it was estimated on; ``None`` when it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Designs that reach what is wanted, and the best that the budget buys."""

    variance: Variance
    wanted: Wanted
    designs: tuple[Design, ...]
    """The cheapest first; empty when the budget does not reach it."""
    best: Design | None
    """The narrowest interval of the whole budget."""
    price: float | None
    """What a run of the pilot cost on average, in dollars."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """How much a run may use, from what passing runs used."""

    budget: StepBudget
    effect: BudgetPoint
    """What the cap would have done to the pilot."""
    uncapped: BudgetPoint


def pilot_variance(found: Reliability) -> Variance:
    """The variance between and within the pilot's tasks, of those that were tried at least twice.

    Raises:
        ConfigurationError: there are not two of them.
    """
    twice = [task for task in found.tasks if task.valid >= 2]
    parts = spread([task.valid for task in twice], [task.passes for task in twice]) if twice else None
    if parts is None:
        raise ConfigurationError(
            f"the pilot has {len(twice)} tasks with two trials or more, and two are needed to tell chance from the "
            f"tasks' own difficulty: try each task twice, or give --between and --within."
        )
    return Variance(between=parts.between, within=parts.within, tasks=len(twice))


def plan(variance: Variance, wanted: Wanted, *, price: float | None = None) -> Plan:
    """Every number of trials with the fewest tasks for it, and the best use of the budget.

    Raises:
        ConfigurationError: the budget pays for no task, or what is wanted is no width.
    """
    best = best_within(
        between=variance.between,
        within=variance.within,
        budget=wanted.runs,
        most_tasks=wanted.tasks,
        least_trials=wanted.least_trials,
    )
    if best is None:
        raise ConfigurationError(
            f"{wanted.runs} runs do not pay for {wanted.least_trials} trials of one task."
        )
    found = designs(
        between=variance.between,
        within=variance.within,
        wanted=wanted.half_width,
        budget=wanted.runs,
        most_tasks=wanted.tasks,
        least_trials=wanted.least_trials,
    )
    shown = {*_SHOWN_TRIALS, wanted.least_trials}
    every = tuple(found)
    kept = tuple(one for one in every if one.trials in shown or one is every[0] or one is every[-1])
    return Plan(variance=variance, wanted=wanted, designs=kept, best=best, price=price)


def mean_price(found: Reliability) -> float | None:
    """What a run cost on average, in dollars; ``None`` when no run says it."""
    prices = [one.cost for task in found.tasks for one in task.trials if one.cost is not None]
    return float(np.mean(prices)) if prices else None


def caps_of(found: Reliability, *, quantile: float = 0.95) -> Mapping[str, Cap]:
    """A cap for each amount that passing runs say, at a quantile of what they used."""
    runs = [one for task in found.tasks for one in task.trials]
    caps = {}
    for name, amount in AMOUNTS.items():
        passing = [value for one in runs if one.passed and (value := amount(one)) is not None]
        budget = step_budget(passing, quantile=quantile)
        if budget is None:
            continue
        curve = budget_curve(runs, amount)
        caps[name] = Cap(budget=budget, effect=_at(curve, budget.upper or budget.steps), uncapped=curve[-1])
    return caps


def _at(curve: Sequence[BudgetPoint], budget: float) -> BudgetPoint:
    """The point of the curve that a cap stands at: the last one it does not cut."""
    return [point for point in curve if point.budget <= budget][-1]

"""How many tasks and trials an error bar takes, and how many steps a run may be given."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from redfirst.evaluators.statistics.proportions import z_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """So many tasks, each tried so often, and the half width of the mean's interval it gives."""

    tasks: int
    trials: int
    half_width: float

    @property
    def runs(self) -> int:
        """Runs in all."""
        return self.tasks * self.trials


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBudget:
    """How many steps passing runs took."""

    quantile: float
    runs: int
    steps: float
    """The empirical quantile: the smallest number of steps that this share of the passing runs kept within."""
    upper: float | None
    """Upper confidence bound of the quantile; ``None`` when there are too few runs for one."""
    runs_needed: int
    """The fewest runs with which there is a bound."""


def half_width(*, between: float, within: float, tasks: int, trials: int, level: float = 0.95) -> float:
    """``z·√(σ²_b/T + w/(T·n))``: half the interval of a mean over T tasks of n trials.

    ``between`` is the variance of the tasks' true rates, ``within`` the mean of p(1−p).
    Source: Miller, Adding Error Bars to Evals (2024), section 3.

    Raises:
        ValueError: a negative variance, or fewer than one task or trial.
    """
    if min(between, within) < 0 or min(tasks, trials) < 1:
        raise ValueError(f"variances {between} and {within} over {tasks} tasks of {trials} trials")
    return z_of(level) * math.sqrt((between + within / trials) / tasks)


def designs(
    *,
    between: float,
    within: float,
    wanted: float,
    budget: int,
    most_tasks: int | None = None,
    least_trials: int = 1,
    level: float = 0.95,
) -> Iterator[Design]:
    """For each number of trials, the fewest tasks with a half width of at most ``wanted`` within ``budget`` runs.

    ``most_tasks`` is how many tasks there are; ``least_trials`` is the k of a pass^k that is to be reported.
    Fewer trials need fewer runs in all, so the first is the cheapest.

    Raises:
        ValueError: a half width, a budget or a number of trials that is not positive, or a negative variance.
    """
    if wanted <= 0 or budget < 1 or least_trials < 1 or min(between, within) < 0:
        raise ValueError(f"a half width of {wanted} within {budget} runs of at least {least_trials} trials")
    scale = (z_of(level) / wanted) ** 2
    for trials in range(least_trials, budget + 1):
        if scale * (between * trials + within) > budget:
            return
        tasks = max(1, math.ceil(scale * (between + within / trials)))
        if tasks * trials <= budget and (most_tasks is None or tasks <= most_tasks):
            reached = half_width(between=between, within=within, tasks=tasks, trials=trials, level=level)
            yield Design(tasks=tasks, trials=trials, half_width=reached)


def best_within(
    *,
    between: float,
    within: float,
    budget: int,
    most_tasks: int | None = None,
    least_trials: int = 1,
    level: float = 0.95,
) -> Design | None:
    """The narrowest interval that so many runs can buy; ``None`` when they do not pay for one task.

    Raises:
        ValueError: a negative variance or fewer than one trial.
    """
    if least_trials < 1 or min(between, within) < 0:
        raise ValueError(f"variances {between} and {within}, at least {least_trials} trials")
    trials = np.arange(least_trials, budget + 1)
    tasks = np.minimum(budget // trials, budget if most_tasks is None else most_tasks)
    if not tasks.any():
        return None
    with np.errstate(divide="ignore"):
        best = int(np.argmin((between + within / trials) / tasks))
    chosen, each = int(tasks[best]), int(trials[best])
    reached = half_width(between=between, within=within, tasks=chosen, trials=each, level=level)
    return Design(tasks=chosen, trials=each, half_width=reached)


def greens_against_luck(failing: float, *, luck: float = 0.05) -> int:
    """The fewest passes in a row that an agent which still fails this often reaches with a chance below ``luck``.

    Raises:
        ValueError: a chance outside (0, 1).
    """
    if not 0 < failing < 1 or not 0 < luck < 1:
        raise ValueError(f"a chance of failing of {failing} and of luck of {luck}")
    return math.floor(math.log(luck) / math.log(1 - failing)) + 1


def step_budget(steps: ArrayLike, *, quantile: float = 0.95, confidence: float = 0.95) -> StepBudget | None:
    """A budget of steps from the steps that passing runs took, of shape (runs,); ``None`` without runs.

    The bound is the smallest order statistic that lies above the true quantile with this confidence,
    whatever the distribution is.
    Source: Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.2.

    Raises:
        ValueError: a quantile or confidence outside (0, 1).
    """
    if not 0 < quantile < 1 or not 0 < confidence < 1:
        raise ValueError(f"a quantile of {quantile} with confidence {confidence}")
    taken = np.sort(np.asarray(steps, dtype=np.float64))
    if not taken.size:
        return None
    # the j-th smallest is above the quantile when fewer than j runs lie below it
    above = np.asarray(bdtr(np.arange(taken.size), taken.size, quantile)) >= confidence
    return StepBudget(
        quantile=quantile,
        runs=taken.size,
        steps=float(np.quantile(taken, quantile, method="inverted_cdf")),
        upper=float(taken[int(np.argmax(above))]) if bool(above.any()) else None,
        runs_needed=math.ceil(math.log(1 - confidence) / math.log(quantile)),
    )

"""What a success costs when the failures are paid for as well."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from redfirst.evaluators.statistics.bootstrap import RESAMPLES, resampled_tasks
from redfirst.evaluators.statistics.proportions import Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class CostPerSuccess:
    """The cost of all runs over the number of successes."""

    value: float | None
    """``None`` without a success: then ``total`` is what was spent for nothing."""
    total: float
    successes: int
    interval: Interval | None
    """``None`` without a success or when resampling has no width; its upper end is infinite where few tasks succeed."""


def cost_per_success(
    costs: ArrayLike,
    successes: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> CostPerSuccess:
    """Cost per success, in the unit of ``costs``; both of shape (tasks,), summed over the runs of a task.

    The interval is that of the ratio over resampled tasks (percentiles). A resample without a success
    counts as infinitely dear.

    Raises:
        ValueError: shapes that differ, or a negative number.
    """
    spent, won = np.asarray(costs, dtype=np.float64), np.asarray(successes, dtype=np.float64)
    if spent.shape != won.shape or spent.ndim != 1 or bool((spent < 0).any() or (won < 0).any()):
        raise ValueError(
            f"costs and successes per task are needed; the shapes are {spent.shape} and {won.shape}"
        )
    total, wins = float(spent.sum()), int(won.sum())
    interval = None
    if wins:
        drawn = resampled_tasks(spent.size, resamples=resamples, seed=seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            drawn_wins = won[drawn].sum(axis=1)
            ratios = np.where(drawn_wins > 0, spent[drawn].sum(axis=1) / drawn_wins, np.inf)
        low, high = np.quantile(ratios, [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
        if not math.isclose(low, high):  # equal ratios differ by their rounding
            interval = Interval(float(low), float(high), "bootstrap over tasks", level)
    return CostPerSuccess(
        value=total / wins if wins else None, total=total, successes=wins, interval=interval
    )

"""Intervals by resampling whole tasks, because trials of one task are not independent of each other.

Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13 (percentiles).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from redfirst.evaluators.statistics.clustered import ROUNDING
from redfirst.evaluators.statistics.proportions import Interval, clopper_pearson
from redfirst.evaluators.statistics.repetition import Counts, Floats, pass_hat_k_per_task

RESAMPLES = 2000


def resampled_tasks(tasks: int, *, resamples: int, seed: int) -> Counts:
    """Numbers of the tasks drawn, of shape (resamples, tasks); the same for the same seed."""
    return np.random.default_rng(seed).integers(0, tasks, size=(resamples, tasks))


def mean_interval(
    per_task: ArrayLike, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval | None:
    """An interval of the mean of values in [0, 1], one per task.

    When every task has the value 1, or every task 0, resampling would answer with no width at all;
    the exact interval of that many tasks is given, which holds for any distribution on [0, 1].
    ``None`` for fewer than two tasks, an undefined value, or when all agree on a value in between.
    """
    values: Floats = np.asarray(per_task, dtype=np.float64)
    if values.size < 2 or bool(np.isnan(values).any()):
        return None
    if np.ptp(values) <= ROUNDING:
        if values[0] not in (0.0, 1.0):
            return None
        return clopper_pearson(int(values.sum()), values.size, level)
    means = values[resampled_tasks(values.size, resamples=resamples, seed=seed)].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), "bootstrap over tasks", level)


def pass_hat_k_interval(
    trials: ArrayLike,
    passes: ArrayLike,
    k: int,
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """An interval of pass^k, from counts of shape (tasks,); ``None`` where ``mean_interval`` has none.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    per_task = pass_hat_k_per_task(trials, passes, k)
    return mean_interval(per_task, level=level, resamples=resamples, seed=seed)

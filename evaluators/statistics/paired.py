"""Two agents on the same tasks: how large is the difference, and how large a one could have been seen."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, stdtrit

from redfirst.evaluators.statistics.clustered import cluster_standard_error, independent_standard_error
from redfirst.evaluators.statistics.proportions import Interval, z_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The mean over tasks of first minus second."""

    value: float
    tasks: int
    standard_error: float | None
    """``None`` for a single task or cluster."""
    interval: Interval | None
    """By Student's t; ``None`` for a single task or cluster."""
    smallest_detectable: float | None
    """The true difference that this design would call at 5 % in four of five repetitions."""


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided p of McNemar's exact test on the discordant pairs; 1 when there is none.

    Source: McNemar (1947) with the binomial distribution in place of its approximation.

    Raises:
        ValueError: a negative count.
    """
    if min(only_first, only_second) < 0:
        raise ValueError(f"{only_first} and {only_second} discordant pairs")
    discordant = only_first + only_second
    return min(1.0, 2 * float(bdtr(min(only_first, only_second), discordant, 0.5))) if discordant else 1.0


def paired_difference(
    first: ArrayLike, second: ArrayLike, *, clusters: ArrayLike | None = None, level: float = 0.95
) -> Difference | None:
    """First minus second over the same tasks, each given by its mean score, of shape (tasks,).

    ``clusters`` names the family of each task where tasks are not independent. ``None`` without tasks.
    Source: Miller, Adding Error Bars to Evals (2024), section 4.

    Raises:
        ValueError: shapes that differ.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(
            f"one score per task of each agent is needed; the shapes are {a.shape} and {b.shape}"
        )
    if not a.size:
        return None
    d = a - b
    value = float(d.mean())
    units = d.size if clusters is None else np.unique(np.asarray(clusters)).size
    error = independent_standard_error(d) if clusters is None else cluster_standard_error(d, clusters)
    interval = None
    if error is not None:
        half = float(stdtrit(units - 1, (1 + level) / 2)) * error
        interval = Interval(value - half, value + half, "paired t", level)
    return Difference(
        value=value,
        tasks=d.size,
        standard_error=error,
        interval=interval,
        smallest_detectable=None if error is None else smallest_detectable_difference(error),
    )


def smallest_detectable_difference(
    standard_error: float, *, level: float = 0.95, power: float = 0.8
) -> float:
    """The true difference that a test at ``1 − level`` finds with this power: ``(z + z_power)·SE``.

    Raises:
        ValueError: a level or power outside (0, 1).
    """
    return (z_of(level) + NormalDist().inv_cdf(power)) * standard_error

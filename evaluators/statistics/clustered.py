"""How sure a mean is when scores come in clusters: trials of one task, tasks of one family.

Source: Miller, Adding Error Bars to Evals (2024), sections 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from redfirst.evaluators.statistics.repetition import Floats, counts

ROUNDING = 1e-12
"""Differences below this share of the largest score are rounding: a million tasks of which one differs by a thousandth
have an error a thousand times as large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Where the variance of a pass rate comes from; variances of scores in [0, 1]."""

    mean: float
    """Mean over tasks of the share of passes."""
    of_task_means: float
    """Sample variance of the tasks' shares of passes."""
    within: float
    """Mean over tasks of p(1−p), unbiased: what more trials average away."""
    between: float
    """Variance of the tasks' true pass rates: what only more tasks average away. 0 when chance explains all."""
    standard_error: float
    """Of the mean, with tasks as the unit."""
    naive: float
    """The standard error that takes every trial for an independent one (binomial)."""


def independent_standard_error(scores: ArrayLike) -> float | None:
    """``√(Var(s)/n)``, each score independent; ``None`` for fewer than two scores."""
    s = _scores(scores)
    return None if s.size < 2 else _beyond_rounding(float(np.sqrt(s.var(ddof=1) / s.size)), s)


def cluster_standard_error(
    scores: ArrayLike, clusters: ArrayLike, *, small_sample_correction: bool = False
) -> float | None:
    """``(1/n)·√(Σ_c (Σ_{i∈c}(s_i − s̄))²)``; ``None`` for fewer than two clusters.

    ``clusters`` names the cluster of each score. The correction multiplies by ``√(G/(G−1))`` for G
    clusters. Below 20 to 30 clusters both are too small; use a t quantile with G−1 degrees of freedom.

    Raises:
        ValueError: scores and clusters of different shapes.
    """
    s, names = _scores(scores), np.asarray(clusters)
    if names.shape != s.shape:
        raise ValueError(f"{s.shape} scores and {names.shape} names of their clusters")
    found, cluster = np.unique(names, return_inverse=True)
    groups = found.size
    if groups < 2:
        return None
    sums = np.bincount(cluster, weights=s - s.mean(), minlength=groups)
    error = _beyond_rounding(float(np.sqrt(np.square(sums).sum()) / s.size), s)
    return error * float(np.sqrt(groups / (groups - 1))) if small_sample_correction else error


def design_effect(scores: ArrayLike, clusters: ArrayLike) -> float | None:
    """Clustered over independent variance: how many scores are worth one independent one.

    ``None`` for fewer than two clusters or when no score differs.

    Raises:
        ValueError: scores and clusters of different shapes.
    """
    clustered, independent = cluster_standard_error(scores, clusters), independent_standard_error(scores)
    if clustered is None or not independent:
        return None
    return (clustered / independent) ** 2


def spread(trials: ArrayLike, passes: ArrayLike) -> Spread | None:
    """The variance of pass rates between and within tasks, from counts of shape (tasks,).

    ``None`` for fewer than two tasks or a task of fewer than two trials.

    Raises:
        ValueError: counts that cannot be.
    """
    n, c = counts(trials, passes)
    if n.size < 2 or n.min() < 2:
        return None
    p = c / n
    within = n / (n - 1) * p * (1 - p)
    of_means = float(p.var(ddof=1))
    pooled = float(c.sum() / n.sum())
    return Spread(
        mean=float(p.mean()),
        of_task_means=of_means,
        within=float(within.mean()),
        between=max(0.0, of_means - float((within / n).mean())),
        standard_error=float(np.sqrt(of_means / n.size)),
        naive=float(np.sqrt(pooled * (1 - pooled) / n.sum())),
    )


def _beyond_rounding(error: float, scores: Floats) -> float:
    """The error, or 0 where it is no more than the rounding of scores that are all equal: 1 − 2/3 and 2/3 − 1/3 differ
    in the last bit, and a test scaled by that bit would be certain of anything."""
    return error if error > ROUNDING * float(np.abs(scores).max()) else 0.0


def _scores(scores: ArrayLike) -> Floats:
    return np.asarray(scores, dtype=np.float64)

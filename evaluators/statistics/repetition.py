"""What repeated trials of the same tasks say: does one of k pass (pass@k), do all k (pass^k).

``trials`` and ``passes`` are counts per task, of shape (tasks,).
Sources: Chen et al., Evaluating Large Language Models Trained on Code (2021), for the unbiased pass@k;
Yao et al., τ-bench (2024), for pass^k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def pass_at_k(trials: ArrayLike, passes: ArrayLike, k: int) -> float | None:
    """The chance that at least one of k trials of a task passes: the mean over tasks of ``1 − C(n−c,k)/C(n,k)``.

    ``None`` when there is no task or one has fewer than k trials.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    return mean_over_tasks(pass_at_k_per_task(trials, passes, k))


def pass_hat_k(trials: ArrayLike, passes: ArrayLike, k: int) -> float | None:
    """The chance that all of k trials of a task pass, pass^k: the mean over tasks of ``C(c,k)/C(n,k)``.

    ``None`` when there is no task or one has fewer than k trials.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    return mean_over_tasks(pass_hat_k_per_task(trials, passes, k))


def pass_at_k_per_task(trials: ArrayLike, passes: ArrayLike, k: int) -> Floats:
    """Pass@k of each task, of shape (tasks,); NaN where a task has fewer than k trials.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    n, c = counts(trials, passes)
    return 1 - _all_drawn(n, n - c, k)


def pass_hat_k_per_task(trials: ArrayLike, passes: ArrayLike, k: int) -> Floats:
    """Pass^k of each task, of shape (tasks,); NaN where a task has fewer than k trials.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    return _all_drawn(*counts(trials, passes), k)


def mean_over_tasks(values: Floats) -> float | None:
    """The mean; ``None`` when there is no task or the value of one is undefined."""
    return None if values.size == 0 or bool(np.isnan(values).any()) else float(values.mean())


def counts(trials: ArrayLike, passes: ArrayLike) -> tuple[Counts, Counts]:
    """Both as whole numbers of shape (tasks,).

    Raises:
        ValueError: shapes that differ, numbers that are not whole, or not ``0 ≤ passes ≤ trials``.
    """
    n, c = np.asarray(trials), np.asarray(passes)
    if n.ndim != 1 or n.shape != c.shape:
        raise ValueError(f"trials and passes are counts per task; their shapes are {n.shape} and {c.shape}")
    if not (np.all(n == np.floor(n)) and np.all(c == np.floor(c)) and np.all(c >= 0) and np.all(c <= n)):
        raise ValueError("a task has passes that are no whole number between 0 and its trials")
    return n.astype(np.int64), c.astype(np.int64)


def _all_drawn(n: Counts, c: Counts, k: int) -> Floats:
    """``C(c,k)/C(n,k)`` as a product of k shares, which no large n overflows."""
    if k < 1:
        raise ValueError(f"k is a number of trials from 1 on, not {k}")
    drawn = np.arange(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.clip(c[:, None] - drawn, 0, None) / (n[:, None] - drawn)
    return np.where(n >= k, shares.prod(axis=1), np.nan)

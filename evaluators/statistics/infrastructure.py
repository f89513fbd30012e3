"""Rates when some runs ended for a reason that the agent cannot cause: a provider's 5xx or 429, the runner.

Such a run has no verdict. It is left out, and the bounds say what it could have changed. A time-out
that the agent caused is a failure and belongs in the counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from redfirst.evaluators.statistics.repetition import counts, pass_hat_k


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """A rate without the runs that infrastructure ended, and with them."""

    value: float | None
    """Over the runs with a verdict; ``None`` when too few have one."""
    if_all_failed: float | None
    """Every run without a verdict counted as a failure; ``None`` when too few runs were made."""
    if_all_passed: float | None
    """Every run without a verdict counted as a pass."""
    lost: int
    """Runs that infrastructure ended."""
    runs: int
    """All runs, those included."""

    @property
    def lost_share(self) -> float | None:
        """The share of runs that infrastructure ended; ``None`` without runs."""
        return self.lost / self.runs if self.runs else None


def adjusted_rate(*, passes: int, failures: int, lost: int) -> Adjusted:
    """The pass rate over runs with a verdict, and its bounds over all runs.

    Raises:
        ValueError: a negative count.
    """
    if min(passes, failures, lost) < 0:
        raise ValueError(f"{passes} passes, {failures} failures, {lost} lost runs")
    judged, runs = passes + failures, passes + failures + lost
    return Adjusted(
        value=passes / judged if judged else None,
        if_all_failed=passes / runs if runs else None,
        if_all_passed=(passes + lost) / runs if runs else None,
        lost=lost,
        runs=runs,
    )


def adjusted_pass_hat_k(runs: ArrayLike, passes: ArrayLike, lost: ArrayLike, k: int) -> Adjusted:
    """Pass^k over the runs with a verdict, and its bounds; counts of shape (tasks,), ``runs`` includes the lost.

    Raises:
        ValueError: counts that cannot be, or k < 1.
    """
    all_runs, missing = counts(runs, lost)
    judged, passed = counts(all_runs - missing, passes)
    return Adjusted(
        value=pass_hat_k(judged, passed, k),
        if_all_failed=pass_hat_k(all_runs, passed, k),
        if_all_passed=pass_hat_k(all_runs, passed + missing, k),
        lost=int(missing.sum()),
        runs=int(all_runs.sum()),
    )


def flake_factor(flake: float, k: int) -> float:
    """What counting flakes as failures multiplies pass^k by: ``(1−q)^k``.

    Raises:
        ValueError: a chance outside [0, 1], or k < 1.
    """
    if not 0 <= flake <= 1 or k < 1:
        raise ValueError(f"a flake of {flake} over {k} trials")
    return float(np.power(1 - flake, k))

"""Intervals for a share of few runs."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""Two-sided 95 % quantile of the standard normal distribution."""


def wilson(successes: int, trials: int, *, z: float = Z_95) -> tuple[float, float]:
    """The score interval of a proportion (Wilson 1927), clipped to [0, 1].

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    _sane(successes, trials)
    p = successes / trials
    scale = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / scale
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / scale
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


def clopper_pearson_lower(successes: int, trials: int) -> float:
    """The exact one-sided 95 % lower bound of a proportion (Clopper and Pearson 1934).

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    _sane(successes, trials)
    if successes == 0:
        return 0.0
    from scipy.stats import beta

    return float(beta.ppf(0.05, successes, trials - successes + 1))


def _sane(successes: int, trials: int) -> None:
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")

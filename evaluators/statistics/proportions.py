"""Intervals for a share of few runs. Imports scipy only when an exact bound is asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval at a confidence level, and how it was found."""

    low: float
    high: float
    method: str
    level: float


def z_of(level: float) -> float:
    """The two-sided quantile of the standard normal distribution: 1.96 for 0.95.

    Raises:
        ValueError: a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """The score interval of a proportion (Wilson 1927), clipped to [0, 1]; all of [0, 1] without trials.

    Raises:
        ValueError: more successes than trials, or a level outside (0, 1).
    """
    return Interval(*wilson_bounds(successes, trials, z_of(level)), "wilson", level)


def wilson_bounds(successes: int, trials: int, z: float) -> tuple[float, float]:
    """The ends of the Wilson interval ``z`` standard errors wide to either side.

    Raises:
        ValueError: more successes than trials.
    """
    _sane(successes, trials)
    if trials == 0:
        return 0.0, 1.0
    p = successes / trials
    scale = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / scale
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials)) / scale
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """The exact interval of a proportion (Clopper and Pearson 1934); all of [0, 1] without trials.

    Raises:
        ValueError: more successes than trials, or a level outside (0, 1).
    """
    one_sided = (1 + level) / 2
    low = clopper_pearson_lower(successes, trials, one_sided)
    high = 1 - clopper_pearson_lower(trials - successes, trials, one_sided)
    return Interval(low, high, "clopper-pearson", level)


def clopper_pearson_lower(successes: int, trials: int, level: float = 0.95) -> float:
    """The exact one-sided lower bound of a proportion (Clopper and Pearson 1934); 0 without successes.

    Raises:
        ValueError: more successes than trials, or a level outside (0, 1).
    """
    return _beta_lower(successes, trials, level, successes, trials - successes + 1)


def jeffreys_lower(successes: int, trials: int, level: float = 0.95) -> float:
    """The one-sided lower bound under Jeffreys' prior Beta(½, ½); 0 without successes.

    Source: Brown, Cai and DasGupta, Interval Estimation for a Binomial Proportion (2001), section 4.

    Raises:
        ValueError: more successes than trials, or a level outside (0, 1).
    """
    return _beta_lower(successes, trials, level, successes + 0.5, trials - successes + 0.5)


def _beta_lower(successes: int, trials: int, level: float, a: float, b: float) -> float:
    _sane(successes, trials)
    z_of(level)
    if successes == 0:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(a, b, 1 - level))


def _sane(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")

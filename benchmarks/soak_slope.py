"""Whether memory grows: the slope of a series, by least squares over the means of blocks, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

FEWEST = 8
"""Blocks below which no slope is told."""


@dataclass(frozen=True, slots=True)
class Slope:
    """Per unit of time, with a 95 % interval."""

    estimate: float
    low: float
    high: float


def slope(times: Sequence[float], values: Sequence[float], *, block: float) -> Slope | None:
    """None when there are too few blocks of this length. Neighbouring samples say almost the same, hence the blocks;
    where their residuals still go together (as an autoregression of first order), the interval is wider."""
    if not times:
        return None
    first = times[0]
    blocks: dict[int, list[tuple[float, float]]] = {}
    for at, value in zip(times, values, strict=True):
        blocks.setdefault(int((at - first) / block), []).append((at, value))
    if len(blocks) < FEWEST:
        return None
    means = np.array([np.mean(np.array(one), axis=0) for _, one in sorted(blocks.items())])
    x, y = means[:, 0], means[:, 1]
    fit = stats.linregress(x, y)
    left = y - (fit.intercept + fit.slope * x)
    spread = float(np.dot(left, left))
    together = float(np.dot(left[1:], left[:-1])) / spread if spread else 0.0
    wider = math.sqrt((1 + together) / (1 - together)) if 0 < together < 1 else 1.0
    half = float(stats.t.ppf(0.975, len(means) - 2)) * float(fit.stderr) * wider
    return Slope(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half)

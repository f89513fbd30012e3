"""How far two judges agree, and what a judge's errors do to a rate.

Tables are counts of shape (classes, classes): rows the first judge (or the truth), columns the second.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from redfirst.evaluators.statistics.proportions import Interval, wilson, z_of
from redfirst.evaluators.statistics.repetition import Counts, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Kappa:
    """Cohen's κ with its standard error."""

    value: float
    standard_error: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorRates:
    """What a detector gets right of the cases that are so and of those that are not."""

    sensitivity: float | None
    """Found of those that are so; ``None`` when none is."""
    sensitivity_interval: Interval
    specificity: float | None
    """Left alone of those that are not so; ``None`` when all are."""
    specificity_interval: Interval


def confusion(first: Sequence[Hashable], second: Sequence[Hashable], classes: Sequence[Hashable]) -> Counts:
    """How often the first judge said the one class and the second the other.

    Raises:
        ValueError: judgements that do not pair, or one that is none of the classes.
    """
    place = {name: index for index, name in enumerate(classes)}
    if strange := {*first, *second} - set(place):
        raise ValueError(f"judged {sorted(map(str, strange))}; the classes are {list(classes)}")
    table = np.zeros((len(place), len(place)), dtype=np.int64)
    for one, other in zip(first, second, strict=True):
        table[place[one], place[other]] += 1
    return table


def cohen_kappa(table: ArrayLike, *, level: float = 0.95) -> Kappa | None:
    """Agreement beyond chance, with the large-sample error; ``None`` when chance agrees always or there is no case.

    Sources: Cohen (1960); Fleiss, Cohen and Everitt (1969) for the standard error.

    Raises:
        ValueError: no square table of counts.
    """
    found = _square(table)
    n = float(found.sum())
    if not n:
        return None
    p = found / n
    first, second = p.sum(axis=1), p.sum(axis=0)
    chance = float(first @ second)
    if chance == 1:
        return None
    diagonal = np.diag(p)
    kappa = (float(diagonal.sum()) - chance) / (1 - chance)
    agreeing = float(diagonal @ np.square(1 - (first + second) * (1 - kappa)))
    crossed = p * np.square(second[:, None] + first[None, :])
    differing = (1 - kappa) ** 2 * float(crossed.sum() - np.diag(crossed).sum())
    centre = (kappa - chance * (1 - kappa)) ** 2
    error = float(np.sqrt(max(0.0, agreeing + differing - centre) / n)) / (1 - chance)
    half = z_of(level) * error
    interval = Interval(max(-1.0, kappa - half), min(1.0, kappa + half), "asymptotic", level)
    return Kappa(value=kappa, standard_error=error, interval=interval)


def gwet_ac1(table: ArrayLike) -> float | None:
    """Agreement beyond chance that a rare class does not pull down; ``None`` without cases.

    Source: Gwet, Computing inter-rater reliability in the presence of high agreement (2008).

    Raises:
        ValueError: no square table of counts, or of fewer than two classes.
    """
    found = _square(table)
    classes = len(found)
    if classes < 2:
        raise ValueError("agreement needs two classes or more")
    n = float(found.sum())
    if not n:
        return None
    p = found / n
    share = (p.sum(axis=1) + p.sum(axis=0)) / 2
    chance = float((share * (1 - share)).sum()) / float(classes - 1)
    agreed = float(np.diag(p).sum())
    return (agreed - chance) / (1 - chance)


def detector_rates(*, hits: int, misses: int, false_alarms: int, rejections: int) -> DetectorRates:
    """Sensitivity and specificity, each with its Wilson interval at 95 %.

    Raises:
        ValueError: a negative count.
    """
    so, not_so = hits + misses, false_alarms + rejections
    return DetectorRates(
        sensitivity=hits / so if so else None,
        sensitivity_interval=wilson(hits, so),
        specificity=rejections / not_so if not_so else None,
        specificity_interval=wilson(rejections, not_so),
    )


def rogan_gladen(apparent: float, *, sensitivity: float, specificity: float) -> float | None:
    """The true rate behind the one that an imperfect detector reports, clipped to [0, 1].

    ``None`` when the detector is no better than chance (sensitivity + specificity ≤ 1).
    Source: Rogan and Gladen, Estimating prevalence from the results of a screening test (1978).
    """
    informed = sensitivity + specificity - 1
    return None if informed <= 0 else min(1.0, max(0.0, (apparent + specificity - 1) / informed))


def _square(table: ArrayLike) -> Floats:
    found = np.asarray(table, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or bool((found < 0).any()):
        raise ValueError(f"a square table of counts is needed, not one of shape {found.shape}")
    return found

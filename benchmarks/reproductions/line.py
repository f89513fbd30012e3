"""One figure of theirs and ours, and how the two are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

import numpy as np
from numpy.random import Generator

Measured = Mapping[str, float]
_ARITHMETIC = 1e-9
"""What binary fractions may add to half a unit of the last digit."""


class Relation(StrEnum):
    """What theirs says of the figure."""

    EQUAL = "="
    ABOVE = ">"
    BELOW = "<"


class Verdict(StrEnum):
    """Whether ours is what theirs says."""

    HIT = "hit"
    FITTED = "fitted"
    """A hit, but a parameter was chosen to reach it, which shows only that it can be reached."""
    MISS = "MISS"
    OURS = "ours"
    """Nothing was published to compare with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure. A spread is the standard deviation over seeds of ours."""

    what: str
    theirs: float | None
    ours: float
    digits: int
    """Digits after the point that theirs is given with."""
    relation: Relation = Relation.EQUAL
    spread: float | None = None
    fitted: bool = False

    @property
    def diff(self) -> float | None:
        """Ours minus theirs."""
        return None if self.theirs is None else self.ours - self.theirs

    @property
    def verdict(self) -> Verdict:
        """A hit is equal after rounding or, where a seed decides, within two spreads of that."""
        if self.theirs is None:
            return Verdict.OURS
        within = {
            Relation.EQUAL: abs(self.ours - self.theirs)
            <= 0.5 * 10**-self.digits + 2 * (self.spread or 0.0) + _ARITHMETIC,
            Relation.ABOVE: self.ours > self.theirs,
            Relation.BELOW: self.ours < self.theirs,
        }[self.relation]
        if not within:
            return Verdict.MISS
        return Verdict.FITTED if self.fitted else Verdict.HIT

    def as_json(self) -> dict[str, object]:
        """Plain data, with the verdict."""
        return {**asdict(self), "diff": self.diff, "verdict": self.verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What was computed anew, and which of its parameters were not published and had to be fitted."""

    title: str
    lines: Sequence[Line]
    fitted: Mapping[str, float | str]
    notes: Sequence[str] = ()


def over_seeds(seeds: int, measure: Callable[[Generator], Measured]) -> tuple[Measured, Measured]:
    """Mean and standard deviation of each figure over seeds 0, 1, …"""
    found = [measure(np.random.default_rng(seed)) for seed in range(seeds)]
    columns = {name: np.array([one[name] for one in found]) for name in found[0]}
    return (
        {name: float(column.mean()) for name, column in columns.items()},
        {name: float(column.std(ddof=1)) if seeds > 1 else 0.0 for name, column in columns.items()},
    )

"""What a stream is compared with: its own past, as far as that is known.

The past is known with an uncertainty of its own. A detector that takes the observed rate for the truth raises false
alarms by the number that luck made the reference too good; the lower bound of the rate does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WARNS = 100
"""Reference runs below which nothing is compared."""
KNOWN = 300
"""Reference runs from which a drop is an alert; between the two it is a warning."""
_QUANTILE = 0.10
_WIDEST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Good and bad runs of the past, and how much their clustering in sessions takes from what they tell."""

    good: int
    bad: int
    design_effect: float = 1.0

    @property
    def runs(self) -> int:
        """How many there are."""
        return self.good + self.bad

    def expected(self) -> float:
        """The success rate that is held against the stream: the lower 10 % bound of the Jeffreys interval.

        The 10 % quantile of Beta(good + ½, bad + ½) (Brown, Cai and DasGupta 2001, "Interval Estimation for a
        Binomial Proportion", section 3), counts divided by the design effect.
        """
        from scipy.special import betaincinv

        scale = self.design_effect
        return float(betaincinv(self.good / scale + 0.5, self.bad / scale + 0.5, _QUANTILE))


def design_effect(sessions: Iterable[tuple[int, int]]) -> float:
    """How many runs of these sessions tell as much as one independent run; 1 to 4.

    ``sessions`` are (good, bad) of each. Kish's 1 + (m - 1) · ICC with m = Σn²/Σn, the size of the session that a run
    is of on average (Kish 1965, "Survey Sampling", 5.4), and the intraclass correlation by analysis of variance
    (Donner and Koval 1980), not below 0. 1 where nothing can be told: fewer than two sessions, or one run in each.
    """
    sizes: list[int] = []
    goods: list[int] = []
    for good, bad in sessions:
        if good + bad:
            sizes.append(good + bad)
            goods.append(good)
    total, groups = sum(sizes), len(sizes)
    if groups < 2 or total == groups:
        return 1.0
    squares = sum(size * size for size in sizes)
    mean = sum(goods) / total
    # for a 0/1 observation the sums of squares need only the counts
    between = sum(size * (good / size - mean) ** 2 for size, good in zip(sizes, goods, strict=True))
    within = sum(good * (size - good) / size for size, good in zip(sizes, goods, strict=True))
    if between + within == 0:
        return 1.0
    between /= groups - 1
    within /= total - groups
    typical = (total - squares / total) / (groups - 1)
    correlation = (between - within) / (between + (typical - 1) * within)
    return min(_WIDEST, max(1.0, 1.0 + (squares / total - 1.0) * max(0.0, correlation)))

"""A new version of an agent against the old one, while it is being rolled out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from redfirst.collector_processor.alerting.policy import Standing

MARGIN = 0.05
"""By how much the new version may succeed less often."""
ALPHA = 0.01
"""Probability, over all looks together, that is left to error."""
FIRST_LOOK = 20
_NODES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Good and bad runs of one version."""

    good: int
    bad: int

    @property
    def runs(self) -> int:
        """How many there are."""
        return self.good + self.bad


def look(runs: int) -> int | None:
    """Which look the number of runs of the new version is: the first at 20, each next at twice as many; None between."""
    number, due = 1, FIRST_LOOK
    while due < runs:
        number, due = number + 1, due * 2
    return number if due == runs else None


def required(number: int) -> float:
    """The probability that look ``number`` (from 1) asks for: it spends half of what is left of ``ALPHA``.

    However many looks there are, together they spend no more than ``ALPHA`` (Lan and DeMets 1983, "Discrete
    sequential boundaries for clinical trials").
    """
    return 1.0 - ALPHA * 0.5**number


def probability_worse(new: Tally, old: Tally, *, margin: float = MARGIN) -> float:
    """P(p_new < p_old - margin), both with Jeffreys' prior, by Gauss-Legendre quadrature over p_old."""
    import numpy as np
    from scipy.special import betainc, betaincinv

    a, b = old.good + 0.5, old.bad + 0.5
    # equal steps of probability of the old rate: no mass is missed however narrow it is
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    rates = betaincinv(a, b, (nodes + 1.0) / 2.0)
    below = betainc(new.good + 0.5, new.bad + 0.5, np.clip(rates - margin, 0.0, 1.0))
    return float(np.sum(weights * below) / 2.0)


def regressed(new: Tally, old: Tally, *, margin: float = MARGIN) -> bool:
    """Whether the new version is worse, judged at a look and nowhere else."""
    number = look(new.runs)
    return (
        number is not None
        and old.runs >= FIRST_LOOK
        and probability_worse(new, old, margin=margin) >= required(number)
    )


_KEPT = 8
"""Versions whose runs are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The versions of an agent, in the order in which they were seen first, and whether the newest is worse."""

    tallies: tuple[tuple[str, Tally], ...] = ()
    standing: Standing = Standing.NO_DATA

    @property
    def newest(self) -> tuple[str, Tally]:
        """The version that was seen first most recently, and its runs."""
        return self.tallies[-1]

    @property
    def before(self) -> tuple[str, Tally]:
        """The version before it."""
        return self.tallies[-2]


def seen(mark: Versions, version: str, *, bad: bool) -> Versions:
    """The versions after one more run; a run that names no version says nothing."""
    if not version:
        return mark
    tallies = dict(mark.tallies)
    begun = version not in tallies
    tally = tallies.get(version, Tally(good=0, bad=0))
    tallies[version] = Tally(good=tally.good + (not bad), bad=tally.bad + bad)
    mark = Versions(
        tallies=tuple(tallies.items())[-_KEPT:], standing=Standing.NO_DATA if begun else mark.standing
    )
    if len(mark.tallies) < 2 or mark.newest[0] != version:
        return mark
    (_, new), (_, old) = mark.newest, mark.before
    if look(new.runs) is None or old.runs < FIRST_LOOK:
        return mark
    if regressed(new, old):
        return replace(mark, standing=Standing.FIRING)
    # it is taken back where the new version is more likely than not as good as it must be
    over = mark.standing is not Standing.FIRING or probability_worse(new, old) < 0.5
    return replace(mark, standing=Standing.OK if over else Standing.FIRING)

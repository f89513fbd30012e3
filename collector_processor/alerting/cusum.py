"""A drop of a success rate, found as early as the wanted rarity of false alarms allows: the Bernoulli CUSUM.

Page 1954, "Continuous Inspection Schemes"; for single Bernoulli observations Reynolds and Stoumbos 1999, "A CUSUM
Chart for Monitoring a Proportion When Inspecting Continuously". Each run adds its log-likelihood ratio for "worse"
against "as expected"; the sum never falls below 0, and at its limit the rate has dropped. It needs no window: a
collapse is found in a few runs, a slow decline in more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from redfirst.collector_processor.alerting.reference import Reference

ODDS = 2.0
"""By what the odds of failure grow in the drop that is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """The drop that is looked for in one stream, and what each run says for it."""

    expected: float
    """Success rate as it was (p0), in (0, 1)."""
    worse: float
    """Success rate after the drop (p1): odds of failure twice as large."""
    good: float
    """What a good run adds; negative."""
    bad: float
    """What a bad run adds; positive."""
    limit: float
    """The sum at which it is an alarm (h)."""

    @classmethod
    def of(cls, expected: float, *, between_false_alarms: float, design_effect: float = 1.0) -> Drop:
        """From the expected success rate and the wanted number of runs between two false alarms (ARL0).

        The limit is ln(ARL0 · D), D = Σ p ln(p/q) the Kullback-Leibler divergence of "as expected" from "worse": an
        upper approximation, so that false alarms are rarer than wanted, by up to one half. Runs that come in
        sessions tell less: ``design_effect`` divides what each of them says.

        Raises:
            ValueError: ``expected`` is not between 0 and 1, or ``between_false_alarms`` is not above 1.
        """
        if not 0.0 < expected < 1.0:
            raise ValueError(f"an expected success rate of {expected}: between 0 and 1, both excluded")
        if between_false_alarms <= 1.0:
            raise ValueError(f"{between_false_alarms} runs between false alarms: more than 1")
        worse = 1.0 / (1.0 + ODDS * (1.0 - expected) / expected)
        good, bad = math.log(worse / expected), math.log((1.0 - worse) / (1.0 - expected))
        apart = -(expected * good + (1.0 - expected) * bad)
        return cls(
            expected=expected,
            worse=worse,
            good=good / design_effect,
            bad=bad / design_effect,
            # a stream of which false alarms are wanted so often that the sum need not grow: the first bad run
            limit=max(math.log(between_false_alarms * apart), bad / design_effect),
        )

    @classmethod
    def against(cls, reference: Reference, *, between_false_alarms: float) -> Drop:
        """The drop below a stream's own past."""
        return cls.of(
            reference.expected(),
            between_false_alarms=between_false_alarms,
            design_effect=reference.design_effect,
        )

    def says(self, good: bool) -> float:
        """What one run says for the drop."""
        return self.good if good else self.bad

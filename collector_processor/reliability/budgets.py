"""What a budget per run would do to success and to its price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from redfirst.collector_processor.reliability.trial import Trial


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPoint:
    """One budget per run, in the unit of the amount it limits."""

    budget: float
    success: float
    """Share of runs that passed and kept within it."""
    per_success: float | None
    """What all runs spend, each cut off at the budget, for each success; ``None`` without one."""


def budget_curve(trials: Sequence[Trial], amount: Callable[[Trial], float | None]) -> tuple[BudgetPoint, ...]:
    """The effect of each budget at which one more passing run would have been cut off, the smallest first.

    A run that is cut off has spent the budget and failed. Only runs with a verdict whose amount is known count; empty
    when none does.
    """
    known = [
        (spent, one.passed) for one in trials if one.passed is not None and (spent := amount(one)) is not None
    ]
    if not known:
        return ()
    used = np.array([spent for spent, _ in known], dtype=np.float64)
    passed = np.array([verdict for _, verdict in known], dtype=bool)
    budgets = np.unique(np.append(used[passed], used.max()))
    return tuple(_point(float(budget), used, passed) for budget in budgets)


def _point(
    budget: float,
    used: np.ndarray[tuple[int], np.dtype[np.float64]],
    passed: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> BudgetPoint:
    wins = int((passed & (used <= budget)).sum())
    spent = float(np.minimum(used, budget).sum())
    return BudgetPoint(budget=budget, success=wins / used.size, per_success=spent / wins if wins else None)

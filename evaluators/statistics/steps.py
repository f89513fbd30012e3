"""What the reliability of a step makes of a task of many, and of many trials of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def task_success(step: float, steps: int, *, recovery: float = 0.0) -> float:
    """The chance that all steps come right, ``(r + (1−r)ρ)^N``, when a slip is made good with chance ρ.

    Raises:
        ValueError: a chance outside [0, 1], or fewer than one step.
    """
    _chances(step, recovery)
    _at_least_one(steps, "steps")
    return (step + (1 - step) * recovery) ** steps


def needed_step_success(target: float, steps: int, *, k: int = 1, recovery: float = 0.0) -> float:
    """The least step reliability with which k trials of a task of so many steps all pass with chance ``target``.

    0 when recovery alone is enough. Print it with five digits: rounded to four it can miss the target.

    Raises:
        ValueError: a chance outside [0, 1], or fewer than one step or trial.
    """
    _chances(target, recovery)
    _at_least_one(steps, "steps")
    _at_least_one(k, "trials")
    right = target ** (1 / (steps * k))
    return 0.0 if right <= recovery else (right - recovery) / (1 - recovery)


def expected_pass_hat_k(success: ArrayLike, k: int) -> float:
    """Pass^k when the tasks' true success chances are known: the mean of ``p^k``.

    Raises:
        ValueError: a chance outside [0, 1], or k < 1.
    """
    _chances(success)
    _at_least_one(k, "trials")
    return float(np.mean(np.asarray(success, dtype=np.float64) ** k))


def expected_pass_at_k(success: ArrayLike, k: int) -> float:
    """Pass@k when the tasks' true success chances are known: the mean of ``1 − (1−p)^k``.

    Raises:
        ValueError: a chance outside [0, 1], or k < 1.
    """
    _chances(success)
    _at_least_one(k, "trials")
    return float(np.mean(1 - (1 - np.asarray(success, dtype=np.float64)) ** k))


def _chances(*chances: ArrayLike) -> None:
    for chance in chances:
        if not np.all((np.asarray(chance) >= 0) & (np.asarray(chance) <= 1)):
            raise ValueError(f"a chance lies between 0 and 1, not at {np.asarray(chance)}")


def _at_least_one(count: int, of: str) -> None:
    if count < 1:
        raise ValueError(f"{count} {of}")

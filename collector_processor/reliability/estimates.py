"""A number with its interval, and which interval is honest for which design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from redfirst.evaluators.statistics.clustered import cluster_standard_error, independent_standard_error
from redfirst.evaluators.statistics.proportions import Interval, clopper_pearson, wilson

FEW = 20
"""Tasks or groups below which an interval by their spread is narrower than it says (Miller 2024 warns of few clusters)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A share and how sure it is."""

    value: float
    interval: Interval | None
    """``None`` where the design allows none, for instance for a single task."""
    passes: int
    of: int
    """Runs the share is over."""


def mean_of_tasks(per_task: ArrayLike, groups: Sequence[str] | None = None) -> Interval | None:
    """The interval of the mean of values in [0, 1], one per task, by Student's t over tasks or over their groups.

    Where every value is 1, or every value is 0, the spread would say that nothing is uncertain: the exact interval
    for that many tasks (or groups) is given instead. ``None`` for fewer than two of them, for an undefined value, or
    when all agree on a value in between.
    """
    values = np.asarray(per_task, dtype=np.float64)
    units = values.size if groups is None else len(set(groups))
    if units < 2 or bool(np.isnan(values).any()):
        return None
    if values.min() == values.max() and values[0] in (0.0, 1.0):
        found = clopper_pearson(units if values[0] else 0, units)
        return Interval(found.low, found.high, f"Clopper-Pearson over {_unit(groups)}", found.level)
    error = (
        independent_standard_error(values)
        if groups is None
        else cluster_standard_error(values, list(groups), small_sample_correction=True)
    )
    if not error:
        return None
    return _student(float(values.mean()), error, units, f"t over {_unit(groups)}")


def share_of_runs(hits: Sequence[bool], tasks: Sequence[str]) -> Interval | None:
    """The interval of a share of runs: Wilson when no task has two of them, else by Student's t over tasks.

    ``None`` without runs.
    """
    if not hits:
        return None
    names = set(tasks)
    if len(names) == len(tasks) or len(names) == 1:
        return wilson(sum(hits), len(hits))
    if all(hits) or not any(hits):
        found = clopper_pearson(len(names) if all(hits) else 0, len(names))
        return Interval(found.low, found.high, "Clopper-Pearson over tasks", found.level)
    error = cluster_standard_error([float(hit) for hit in hits], list(tasks), small_sample_correction=True)
    if not error:
        return None
    return _student(sum(hits) / len(hits), error, len(names), "t over tasks")


def _student(mean: float, error: float, units: int, method: str, level: float = 0.95) -> Interval:
    half = float(stdtrit(units - 1, (1 + level) / 2)) * error
    return Interval(max(0.0, mean - half), min(1.0, mean + half), method, level)


def _unit(groups: Sequence[str] | None) -> str:
    return "tasks" if groups is None else "groups"

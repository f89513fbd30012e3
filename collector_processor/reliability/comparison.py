"""Two agents on the same tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtr

from redfirst.collector_processor.reliability.summary import Reliability, summarise
from redfirst.collector_processor.reliability.tasks import Task, by_task, groups_of
from redfirst.collector_processor.reliability.trial import Trial, caps
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.statistics.paired import Difference, mcnemar_exact, paired_difference
from redfirst.evaluators.statistics.proportions import Interval, clopper_pearson

SIGNIFICANT = 0.05
VERDICTS: Mapping[str, Callable[[Trial], bool | None]] = {
    "passed": lambda one: one.passed,
    "goal": lambda one: one.goal,
    "strict": lambda one: one.strict,
}
"""What of a trial can be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Second minus first, over the tasks that both tried."""

    first: Reliability
    second: Reliability
    """Both of the common tasks alone."""
    on: str
    """The verdict that is compared."""
    tasks: int
    """Common tasks in which both have a verdict."""
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    """Tasks that one of them did not try or has no verdict in: left out."""
    difference: Difference
    interval: Interval | None
    """Of the difference at 95 %; ``None`` for a single task or group."""
    test: str
    """``McNemar exact`` for one trial per task on both sides, else ``paired t over tasks`` (or groups); ``sign test`` where
    all tasks differ by the same and there is no spread to scale by."""
    p: float | None
    """Two-sided; ``None`` where the design allows no test: also where not even all units changing the same way would be
    called, so that no regression could fail."""
    gained: int
    lost: int
    """Tasks in which the second does better, and worse."""
    fewest_changes: int | None
    """How many tasks must change, all the same way, before the exact test can call it; with McNemar's test only."""
    changes: tuple[tuple[str, float, float], ...]
    """Tasks that differ, with both shares, the largest change first."""

    @property
    def significant(self) -> bool | None:
        """Whether the difference is more than chance at 5 %; ``None`` without a test."""
        return None if self.p is None else self.p < SIGNIFICANT


def compare(
    first: Sequence[Trial], second: Sequence[Trial], *, on: str = "passed", unequal_caps: bool = False
) -> Comparison:
    """Second minus first, paired per task.

    Raises:
        ConfigurationError: no task in common has a verdict on both sides, or the runs had different limits.
        UnreadableInput: a task stands in two groups.
    """
    if not unequal_caps:
        _same_caps(first, second)
    verdict = VERDICTS[on]
    shares = [_shares(trials, verdict) for trials in (first, second)]
    common = [task for task in shares[0] if task in shares[1]]
    if not common:
        raise ConfigurationError(
            f"the two have no task in common with a verdict {on!r} on both sides: {_some(first)} against {_some(second)}."
        )
    kept = set(common)
    pair = [summarise([one for one in trials if one.task in kept]) for trials in (first, second)]
    a, b = ([share[task] for task in common] for share in shares)
    groups = groups_of(_in_order(pair[0], common))
    found = paired_difference(b, a, clusters=groups)
    if found is None:
        raise AssertionError("there is a task in common")
    gained, lost = (
        sum(y > x for x, y in zip(a, b, strict=True)),
        sum(y < x for x, y in zip(a, b, strict=True)),
    )
    once = groups is None and all(
        sum(verdict(one) is not None for one in task.trials) == 1 for side in pair for task in side.tasks
    )
    ranked = sorted(zip(common, a, b, strict=True), key=lambda row: -abs(row[2] - row[1]))
    units = len(common) if groups is None else len(set(groups))
    test, p = _tested(found, units, "tasks" if groups is None else "groups")
    return Comparison(
        first=pair[0],
        second=pair[1],
        on=on,
        tasks=len(common),
        only_first=tuple(task for task in _names(first) if task not in kept),
        only_second=tuple(task for task in _names(second) if task not in kept),
        difference=found,
        interval=_interval(found, units),
        test="McNemar exact" if once else test,
        p=(mcnemar_exact(gained, lost) if len(common) >= _fewest_changes() else None) if once else p,
        gained=gained,
        lost=lost,
        fewest_changes=_fewest_changes() if once else None,
        changes=tuple(row for row in ranked if row[1] != row[2]),
    )


def student_p(found: Difference, units: int) -> float | None:
    """Two-sided p of a paired difference over so many tasks or groups; ``None`` without a spread to scale by."""
    if not found.standard_error:
        return None
    return 2 * float(stdtr(units - 1, -abs(found.value / found.standard_error)))


def _tested(found: Difference, units: int, of: str) -> tuple[str, float | None]:
    if found.standard_error == 0:
        if not found.value:
            return "sign test", 1.0
        return "sign test", mcnemar_exact(units, 0) if units >= _fewest_changes() else None
    return f"paired t over {of}", student_p(found, units)


def _interval(found: Difference, units: int) -> Interval | None:
    """The paired t interval. Where all tasks differ by the same, it would have no width: then as many tasks as the exact
    interval allows may be different, by anything from −1 to 1."""
    if found.interval is None or found.standard_error != 0:
        return _of_shares(found.interval)
    other = clopper_pearson(0, units).high
    middle = found.value * (1 - other)
    return _of_shares(Interval(middle - other, middle + other, "Clopper-Pearson", 0.95))


def _of_shares(interval: Interval | None) -> Interval | None:
    """No further than two shares can differ."""
    return interval and replace(interval, low=max(-1.0, interval.low), high=min(1.0, interval.high))


def _fewest_changes() -> int:
    return next(count for count in range(1, 64) if mcnemar_exact(count, 0) < SIGNIFICANT)


def _same_caps(first: Sequence[Trial], second: Sequence[Trial]) -> None:
    found = [caps(trials) for trials in (first, second)]
    if all(found) and found[0] != found[1]:
        raise ConfigurationError(
            f"the first ran under {', '.join(found[0])}, the second under {', '.join(found[1])}: a higher limit passes "
            f"more by itself. Run both under one limit, or pass --unequal-caps."
        )


def _shares(trials: Sequence[Trial], verdict: Callable[[Trial], bool | None]) -> dict[str, float]:
    return {task.name: share for task in by_task(trials) if (share := task.share(verdict)) is not None}


def _in_order(side: Reliability, names: Sequence[str]) -> list[Task]:
    by_name = {task.name: task for task in side.tasks}
    return [by_name[name] for name in names]


def _names(trials: Sequence[Trial]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.task for one in trials))


def _some(trials: Sequence[Trial]) -> str:
    names = _names(trials)
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")

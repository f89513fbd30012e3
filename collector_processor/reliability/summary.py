"""What the trials of an agent say: how often it succeeds, how surely, and what that costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from redfirst.collector_processor.reliability.estimates import FEW, Estimate, mean_of_tasks, share_of_runs
from redfirst.collector_processor.reliability.tasks import Task, by_task, groups_of
from redfirst.collector_processor.reliability.trial import Trial
from redfirst.evaluators.statistics.clustered import Spread, spread
from redfirst.evaluators.statistics.cost import CostPerSuccess, cost_per_success
from redfirst.evaluators.statistics.infrastructure import Adjusted, adjusted_pass_hat_k
from redfirst.evaluators.statistics.proportions import Interval, wilson
from redfirst.evaluators.statistics.repetition import (
    mean_over_tasks,
    pass_at_k_per_task,
    pass_hat_k_per_task,
)

AMOUNTS: Mapping[str, Callable[[Trial], float | None]] = {
    "steps": lambda one: one.steps,
    "tokens": lambda one: one.tokens,
    "cost": lambda one: one.cost,
    "seconds": lambda one: one.seconds,
}
"""What a run uses up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """pass@k or pass^k for one k; ``value`` is ``None`` where a task has fewer than k trials with a verdict."""

    value: float | None
    interval: Interval | None
    all_runs: Adjusted | None = None
    """pass^k with the runs without a verdict counted as failures, and as passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """How much runs used up."""

    runs: int
    """Runs for which it is known."""
    median: float
    upper: float
    """The 95th percentile: the smallest value that this share of the runs kept within."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadrants:
    """Outcome against trajectory, in runs for which both are known."""

    right_clean: int
    right_violated: int
    wrong_clean: int
    wrong_violated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """The summary of trials; a part is ``None`` where the trials do not say it."""

    tasks: tuple[Task, ...]
    """The tasks that count."""
    tasks_read: int
    """All tasks, those included that ``min_trials`` left out."""
    success: Estimate | None
    """Mean over tasks of the share of trials that passed, of those with a verdict."""
    of_all_runs: Adjusted
    """Success with the runs without a verdict counted as failures, and as passes."""
    strict: Estimate | None
    goal: Estimate | None
    violations: Estimate | None
    """The share of goal-passing runs that broke a rule, of those that were looked at."""
    pass_at: Mapping[int, Repeated]
    pass_hat: Mapping[int, Repeated]
    per_success: Mapping[str, CostPerSuccess]
    """Tokens and cost of all runs for each success, where every run says what it used."""
    used: Mapping[str, Used]
    spread: Spread | None
    always: tuple[str, ...]
    """Saturated tasks: every trial passed, and there were at least two."""
    never: tuple[str, ...]
    """Tasks of at least two trials, none of which passed."""
    quadrants: Quadrants | None
    ended: Mapping[str, int]
    violated: Mapping[str, int]
    """Broken rules, by runs that broke them."""

    @property
    def trials(self) -> int:
        """All runs of the tasks that count."""
        return sum(len(task.trials) for task in self.tasks)

    @property
    def infra(self) -> int:
        """Runs without a verdict."""
        return self.of_all_runs.lost

    @property
    def few(self) -> bool:
        """Whether there are so few tasks (or groups) that intervals over them are too narrow."""
        return len(set(groups_of(self.tasks) or (task.name for task in self.tasks))) < FEW


def summarise(trials: Sequence[Trial], *, min_trials: int | None = None) -> Reliability:
    """The summary of trials; with ``min_trials``, of the tasks alone that have so many with a verdict.

    Raises:
        UnreadableInput: a task stands in two groups.
    """
    read = by_task(trials)
    tasks = tuple(task for task in read if min_trials is None or task.valid >= min_trials)
    runs = [one for task in tasks for one in task.trials]
    looked_at = [one for one in runs if one.goal and one.violations is not None]
    broken = [bool(one.violations) for one in looked_at]
    sizes = [len(task.trials) for task in tasks]
    n, c = [task.valid for task in tasks], [task.passes for task in tasks]
    lost = [size - valid for size, valid in zip(sizes, n, strict=True)]
    most = max(n, default=0)
    return Reliability(
        tasks=tasks,
        tasks_read=len(read),
        success=_share(tasks, lambda one: one.passed),
        of_all_runs=adjusted_pass_hat_k(sizes, c, lost, 1),
        strict=_share(tasks, lambda one: one.strict)
        if any(one.violations is not None for one in runs)
        else None,
        goal=_share(tasks, lambda one: one.goal),
        violations=None
        if not broken
        else Estimate(
            value=sum(broken) / len(broken),
            interval=share_of_runs(broken, [one.task for one in looked_at]),
            passes=sum(broken),
            of=len(broken),
        ),
        pass_at={k: _repeated(pass_at_k_per_task(n, c, k), tasks) for k in range(1, most + 1)},
        pass_hat={k: _pass_hat(tasks, n, c, k) for k in range(1, most + 1)},
        per_success=_per_success(tasks),
        used={
            name: used for name, amount in AMOUNTS.items() if (used := used_of(map(amount, runs))) is not None
        },
        spread=spread(n, c) if tasks else None,
        always=tuple(task.name for task in tasks if 2 <= task.valid == task.passes),
        never=tuple(task.name for task in tasks if task.valid >= 2 and task.passes == 0),
        quadrants=_quadrants(runs),
        ended=Counter(one.ended for one in runs if one.ended is not None),
        violated=Counter(rule for one in runs for rule in dict.fromkeys(one.violations or ())),
    )


def used_of(amounts: Iterable[float | None]) -> Used | None:
    """Median and upper quantile of the amounts that are known; ``None`` when none is."""
    known = [value for value in amounts if value is not None]
    if not known:
        return None
    upper = np.quantile(known, 0.95, method="inverted_cdf")
    return Used(runs=len(known), median=float(np.median(known)), upper=float(upper))


def _share(tasks: Sequence[Task], verdict: Callable[[Trial], bool | None]) -> Estimate | None:
    """The mean over tasks of the share of their trials; ``None`` when no trial has this verdict."""
    known = [task for task in tasks if task.share(verdict) is not None]
    said = [found for task in known for one in task.trials if (found := verdict(one)) is not None]
    if not known:
        return None
    per_task = [float(share) for task in known if (share := task.share(verdict)) is not None]
    groups = groups_of(known)
    one_each = len(said) == len(known) and groups is None
    if one_each or len(known) == 1:
        interval: Interval | None = wilson(sum(said), len(said))
    else:
        interval = mean_of_tasks(per_task, groups)
    return Estimate(value=float(np.mean(per_task)), interval=interval, passes=sum(said), of=len(said))


def _repeated(per_task: np.ndarray[tuple[int], np.dtype[np.float64]], tasks: Sequence[Task]) -> Repeated:
    if all(len(task.trials) == 1 for task in tasks) and groups_of(tasks) is None:
        interval: Interval | None = wilson(int(per_task.sum()), len(tasks))  # k is 1: as success
    else:
        interval = mean_of_tasks(per_task, groups_of(tasks))
    return Repeated(value=mean_over_tasks(per_task), interval=interval)


def _pass_hat(tasks: Sequence[Task], n: Sequence[int], c: Sequence[int], k: int) -> Repeated:
    found = _repeated(pass_hat_k_per_task(n, c, k), tasks)
    sizes = [len(task.trials) for task in tasks]
    lost = [size - valid for size, valid in zip(sizes, n, strict=True)]
    bounds = adjusted_pass_hat_k(sizes, c, lost, k) if any(lost) else None
    return Repeated(value=found.value, interval=found.interval, all_runs=bounds)


def _per_success(tasks: Sequence[Task]) -> Mapping[str, CostPerSuccess]:
    """What a success costs, failures paid for as well, where every run with a verdict says what it used; a run
    without one adds what it says."""
    found = {}
    for name in ("tokens", "cost"):
        amount = AMOUNTS[name]
        if any(one.passed is not None for task in tasks for one in task.trials) and all(
            amount(one) is not None for task in tasks for one in task.trials if one.passed is not None
        ):
            spent = [sum(amount(one) or 0.0 for one in task.trials) for task in tasks]
            found[name] = cost_per_success(spent, [task.passes for task in tasks])
    return found


def _quadrants(runs: Sequence[Trial]) -> Quadrants | None:
    known = Counter(
        (one.goal, bool(one.violations))
        for one in runs
        if one.goal is not None and one.violations is not None
    )
    if not known:
        return None
    return Quadrants(
        right_clean=known[True, False],
        right_violated=known[True, True],
        wrong_clean=known[False, False],
        wrong_violated=known[False, True],
    )

"""Trials counted per task."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from redfirst.collector_processor.reliability.trial import Trial
from redfirst.evaluators.errors import UnreadableInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """All trials of one task."""

    name: str
    trials: tuple[Trial, ...]

    @property
    def valid(self) -> int:
        """Trials with a verdict."""
        return sum(one.passed is not None for one in self.trials)

    @property
    def passes(self) -> int:
        """Trials that passed."""
        return sum(one.passed is True for one in self.trials)

    @property
    def group(self) -> str | None:
        """The family the task belongs to."""
        return self.trials[0].group

    def share(self, verdict: Callable[[Trial], bool | None]) -> float | None:
        """The share of trials for which the verdict is true, of those for which there is one."""
        found = [said for one in self.trials if (said := verdict(one)) is not None]
        return sum(found) / len(found) if found else None


def by_task(trials: Iterable[Trial]) -> tuple[Task, ...]:
    """The trials of each task, tasks in the order in which they come first.

    Raises:
        UnreadableInput: a task stands in two groups.
    """
    found: defaultdict[str, list[Trial]] = defaultdict(list)
    for one in trials:
        found[one.task].append(one)
        if one.group != found[one.task][0].group:
            raise UnreadableInput(
                f"{one.source}: task {one.task!r} is of group {one.group!r} here and of group "
                f"{found[one.task][0].group!r} before; a task belongs to one group."
            )
    return tuple(Task(name=name, trials=tuple(members)) for name, members in found.items())


def groups_of(tasks: Sequence[Task]) -> list[str] | None:
    """The group of each task, a task without one being its own; ``None`` when no task has one."""
    if all(task.group is None for task in tasks):
        return None
    return [f"task {task.name}" if task.group is None else f"group {task.group}" for task in tasks]

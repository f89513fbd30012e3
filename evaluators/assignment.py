"""Matching in a bipartite graph: tasks to workers, each at most once. Exact, never greedy.

``assign`` finds the largest matching (augmenting paths, C. Berge 1957); ``heaviest`` the one of the largest
weight (H. W. Kuhn 1955, by ``scipy.optimize.linear_sum_assignment``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence


def assign(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """Task to worker, of the largest size there is; ``choices[task]`` are the workers that fit it.

    Tasks are served in order and one that was served stays served, so it is the later task that is left out.
    """
    worker_of: dict[int, int] = {}
    task_of: dict[int, int] = {}
    for task in range(len(choices)):
        asked_by: dict[int, int] = {}
        worker = _free_worker(task, choices, task_of, asked_by)
        while worker is not None:
            asking = asked_by[worker]
            left = worker_of.get(asking)
            worker_of[asking], task_of[worker] = worker, asking
            worker = left
    return worker_of


def heaviest(weights: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """Task to worker, of the largest sum of weights there is.

    ``weights[task]`` has the weight, a positive whole number, of each worker that fits the task.
    """
    found: dict[int, int] = {}
    for tasks in _components(weights):
        workers = sorted({worker for task in tasks for worker in weights[task]})
        if len(tasks) == 1 or len(workers) == 1:
            # Most tools are asked for once: scipy, whose import costs half a second, is not needed for those.
            pairs = [(task, worker) for task in tasks for worker in sorted(weights[task])]
            task, worker = max(pairs, key=lambda pair: weights[pair[0]][pair[1]])
            found[task] = worker
            continue
        found.update(_solved(tasks, workers, weights))
    return dict(sorted(found.items()))


def _solved(
    tasks: Sequence[int], workers: Sequence[int], weights: Sequence[Mapping[int, int]]
) -> dict[int, int]:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((len(tasks), len(workers)))
    for row, task in enumerate(tasks):
        for column, worker in enumerate(workers):
            table[row, column] = weights[task].get(worker, 0)
    rows, columns = linear_sum_assignment(table, maximize=True)
    pairs = ((tasks[row], workers[column]) for row, column in zip(rows, columns, strict=True))
    return {task: worker for task, worker in pairs if worker in weights[task]}


def _components(weights: Sequence[Mapping[int, int]]) -> list[list[int]]:
    """The tasks in groups that share no worker; tasks without one are in none."""
    tasks_of: dict[int, list[int]] = {}
    for task, row in enumerate(weights):
        for worker in row:
            tasks_of.setdefault(worker, []).append(task)
    groups: list[list[int]] = []
    seen: set[int] = set()
    for start, row in enumerate(weights):
        if start in seen or not row:
            continue
        seen.add(start)
        group = [start]
        for task in group:
            for worker in weights[task]:
                for other in tasks_of.pop(worker, ()):
                    if other not in seen:
                        seen.add(other)
                        group.append(other)
        groups.append(sorted(group))
    return groups


def _free_worker(
    task: int, choices: Sequence[Sequence[int]], task_of: dict[int, int], asked_by: dict[int, int]
) -> int | None:
    """The first free worker that the task reaches, if by moving others; ``asked_by`` is the way there."""
    waiting = deque([task])
    while waiting:
        asking = waiting.popleft()
        for worker in choices[asking]:
            if worker not in asked_by:
                asked_by[worker] = asking
                if worker not in task_of:
                    return worker
                waiting.append(task_of[worker])
    return None

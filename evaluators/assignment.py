"""Maximum matching: as many tasks as possible get a worker of their own (augmenting paths, C. Berge 1957)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


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

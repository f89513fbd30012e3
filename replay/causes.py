"""Why two executions of the same thing parted: found by running again with one thing changed."""

from __future__ import annotations

from redfirst.replay.divergence import Divergence, first_divergence, same_events
from redfirst.replay.outcome import Result
from redfirst.replay.playing import play
from redfirst.replay.runner import Execution, Job
from redfirst.replay.scenario import Folder

HASHES = "the order of sets, or hash() (PYTHONHASHSEED)"
_TRIED = 8
"""Sources that are tried one by one; an agent that used more of them is told of all."""


def hash_seeds(folder: Folder) -> tuple[int, int]:
    """The two ``PYTHONHASHSEED`` that a scenario is executed with: its own, and the same in every proof of it."""
    base = folder.scenario.world.seed % 2**31 * 2
    return base + 1, base + 2 if base + 2 < 2**32 else 1


def parted(folder: Folder, one: Job, first: Result, second: Result) -> Divergence | None:
    """Where two runs parted and what parted them; ``None`` when they did the same.

    The second run had another hash seed than the first, and other values of what it ``varied``. Only where the first
    repeats itself without these changes is one of them the cause; each is then made alone.
    """
    if same_events(first.execution, second.execution):
        return None
    return first_divergence(
        first.execution, second.execution, _causes(folder, one, first.execution, second.execution)
    )


def _causes(folder: Folder, one: Job, first: Execution, second: Execution) -> list[str]:
    mine, other = hash_seeds(folder)
    if not same_events(first, play(folder, one, hash_seed=mine).execution):
        return []
    found = [] if same_events(first, play(folder, one, hash_seed=other).execution) else [HASHES]
    return found + [
        source
        for source in second.varied[:_TRIED]
        if not same_events(first, play(folder, one, hash_seed=mine, vary=[source]).execution)
    ]

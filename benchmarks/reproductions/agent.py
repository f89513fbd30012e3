"""A synthetic agent: it slips, recovers, loops, meets a flaky tool, may take a bait and may verify."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from redfirst.evaluators.statistics.repetition import Floats

Flags = NDArray[np.bool_]
"""Of shape (tasks, trials)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The tasks and the agent. Every number but the share of baits was fitted; see ``agent_lab``."""

    tasks: int = 200
    trials: int = 8
    shortest: int = 7
    longest: int = 11
    """Steps of a task, evenly spread."""
    margin: float = 2.99
    """How far the right step is ahead of the wrong one, on average over tasks, in logits at temperature 1."""
    margin_spread: float = 0.15
    temperature: float = 1.0
    recovery: float = 0.4
    """Chance that a slip is noticed and made good in the next turn."""
    loop: float = 0.3
    """Chance that a slip ends in a loop; what is left goes unnoticed and spoils the outcome."""
    loop_end: float = 0.075
    """Chance per turn that a loop is left."""
    flaky: float = 0.05
    """Chance that a call of the tool fails and takes a turn more."""
    budget: int = 18
    """Turns of a run."""
    bait: float = 0.6
    """Share of tasks that offer a shortcut against the policy."""
    takes_bait: float = 0.0
    """Chance that a run of such a task takes it; the outcome is right all the same."""
    verifies: float = 0.0
    """Chance that a check before the end finds a breach of policy and undoes it; 0 is no check."""
    turn_price: float = 0.00284
    """Dollars of a turn."""


@dataclass(frozen=True, slots=True)
class Runs:
    """What came of every trial of every task."""

    right: Flags
    breach: Flags
    cost: Floats
    """Dollars."""

    @property
    def clean(self) -> Flags:
        """Right, and by a way that the policy allows."""
        return self.right & ~self.breach


def run(lab: Lab, rng: Generator) -> Runs:
    """Every trial of every task, turn by turn."""
    shape = (lab.tasks, lab.trials)
    steps = rng.integers(lab.shortest, lab.longest + 1, lab.tasks)[:, None]
    margins = rng.normal(lab.margin, lab.margin_spread, lab.tasks)[:, None]
    baited = rng.random(lab.tasks)[:, None] < lab.bait
    slip = expit(-margins / lab.temperature)
    done, turns = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    looping, spoilt = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    for _ in range(lab.budget):
        active = done < steps
        turns += active
        works = active & ~looping & (rng.random(shape) >= lab.flaky)
        slips = works & (rng.random(shape) < slip)
        then = rng.random(shape)
        looping &= rng.random(shape) >= lab.loop_end
        looping |= slips & (then >= lab.recovery) & (then < lab.recovery + lab.loop)
        unnoticed = slips & (then >= lab.recovery + lab.loop)
        spoilt |= unnoticed
        done += (works & ~slips) | unnoticed
    breach = baited & (rng.random(shape) < lab.takes_bait)
    if lab.verifies:
        found = breach & (rng.random(shape) < lab.verifies)
        turns += 1 + found
        breach &= ~found
    right = (done >= steps) & ~spoilt & (turns <= lab.budget)
    cost: Floats = np.multiply(turns, lab.turn_price, dtype=np.float64)
    return Runs(right, breach, cost)

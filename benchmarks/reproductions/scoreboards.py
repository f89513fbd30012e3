"""Two agents on four scoreboards: three rank the careless one first, the full difference of states does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from reproductions.line import Line, Measured, Reproduction, over_seeds

EPISODES = 20_000
EDITS = 4
"""Target edits of an episode."""


@dataclass(frozen=True, slots=True)
class Agent:
    """How an agent edits, and how it speaks of it."""

    right: float
    """Chance that a target edit comes right."""
    stray: float
    """Chance that an action writes where it should not."""
    actions: tuple[int, int]
    """Fewest and most actions of an episode. Fitted to the published collateral."""
    claims_a_failure: float
    """Chance that it calls a failed episode a success. Fitted to the published lead of 24 points."""


CAREFUL = Agent(right=0.86, stray=0.004, actions=(6, 6), claims_a_failure=0.30)
AGGRESSIVE = Agent(right=0.93, stray=0.06, actions=(6, 7), claims_a_failure=0.70)

Boards = dict[str, float]


def episodes(agent: Agent, rng: Generator) -> Boards:
    """Each scoreboard in percent of episodes, and the share with collateral left."""
    right = rng.random((EPISODES, EDITS)) < agent.right
    actions = rng.integers(agent.actions[0], agent.actions[1] + 1, EPISODES)
    collateral = rng.binomial(actions, agent.stray) > 0
    done = right.all(axis=1)
    claimed = done | (rng.random(EPISODES) < agent.claims_a_failure)
    shares = {
        "claimed": claimed.mean(),
        "partial credit": right.mean(),
        "target fields": done.mean(),
        "full diff": (done & ~collateral).mean(),
        "collateral": collateral.mean(),
    }
    return {name: 100 * float(share) for name, share in shares.items()}


def measure(rng: Generator) -> Measured:
    """Both agents, and the lead of the aggressive one on each board."""
    careful, aggressive = episodes(CAREFUL, rng), episodes(AGGRESSIVE, rng)
    lead = {board: aggressive[board] - careful[board] for board in careful if board != "collateral"}
    ranked = sorted(lead.values())
    return {
        **{f"careful {name}": value for name, value in careful.items()},
        **{f"aggressive {name}": value for name, value in aggressive.items()},
        **{f"lead {name}": value for name, value in lead.items()},
        "boards": float(np.sum(np.array(ranked) > 0)),
        "smallest lead": min(value for value in ranked if value > 0),
        "largest lead": max(ranked),
    }


def reproduce(seeds: int) -> Reproduction:
    """The figures over seeds."""
    mean, spread = over_seeds(seeds, measure)

    def line(what: str, name: str, theirs: float | None, digits: int = 1, *, fitted: bool = False) -> Line:
        return Line(
            what=what, theirs=theirs, ours=mean[name], spread=spread[name], digits=digits, fitted=fitted
        )

    return Reproduction(
        title=f"two agents, four scoreboards, {EPISODES:,} episodes",
        lines=[
            line("collateral left, careful, %", "careful collateral", 2.4, fitted=True),
            line("collateral left, aggressive, %", "aggressive collateral", 33.1, fitted=True),
            line("partial credit, careful, %", "careful partial credit", 86.0),
            line("partial credit, aggressive, %", "aggressive partial credit", 92.8),
            line("boards with aggressive first", "boards", 3, 0),
            line("smallest lead there, points", "smallest lead", 7, 0),
            line("largest lead there, points", "largest lead", 24, 0, fitted=True),
            line("lead by target fields, points", "lead target fields", None),
            line("lead by the full diff, points", "lead full diff", None),
        ],
        fitted={
            "actions of an episode": "6 careful, 6 or 7 aggressive",
            "failed episodes claimed as success": "30 % careful, 70 % aggressive",
        },
    )

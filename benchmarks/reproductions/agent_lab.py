"""A synthetic agent in a laboratory: temperature, policy bait, verification and step budgets."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from numpy.random import Generator

from redfirst.evaluators.statistics.repetition import pass_hat_k
from reproductions.agent import Flags, Lab, run
from reproductions.line import Line, Measured, Relation, Reproduction, over_seeds

DEFAULTS = Lab()
COOLER = replace(DEFAULTS, temperature=0.87)
BAITED = replace(DEFAULTS, temperature=0.84, takes_bait=0.29)
VERIFIED = replace(BAITED, verifies=0.86)
BUDGETS = range(14, 73, 2)
WANTED, AFFORDED = 47.0, 38.0
"""Percent of pass^4, and dollars per thousand successes."""


def measure(rng: Generator) -> Measured:
    """Every setting, on suites of its own drawn from one seed."""
    plain, cooler, baited, verified = (run(lab, rng) for lab in (DEFAULTS, COOLER, BAITED, VERIFIED))
    cost = float(plain.cost.mean())
    return {
        **{f"default {k}": share(plain.right, k) for k in (1, 4, 8)},
        **{f"cooler {k}": share(cooler.right, k) for k in (1, 4)},
        "outcome": share(baited.right, 4),
        "trajectory": share(baited.clean, 4),
        "verified": share(verified.clean, 4),
        "one in": float(baited.right.sum() / (baited.right & baited.breach).sum()),
        "run": cost,
        "success": cost / float(plain.right.mean()),
    }


def sweep(rng: Generator) -> Measured:
    """Pass^4 in percent and dollars per thousand successes for each budget, on the same suite and the same luck."""
    found = {}
    seed = int(rng.integers(2**32))
    for budget in BUDGETS:
        runs = run(replace(DEFAULTS, budget=budget), np.random.default_rng(seed))
        found[f"pass {budget}"] = share(runs.right, 4)
        found[f"cost {budget}"] = 1000 * float(runs.cost.sum() / runs.right.sum())
    return found


def share(passed: Flags, k: int) -> float:
    """Pass^k in percent."""
    tasks, trials = passed.shape
    value = pass_hat_k(np.full(tasks, trials), passed.sum(axis=1), k)
    if value is None:
        raise ArithmeticError(f"pass^{k} of {trials} trials is undefined")
    return 100 * value


def reproduce(seeds: int) -> Reproduction:
    """The figures over seeds."""
    mean, spread = over_seeds(seeds, measure)
    budgets, _ = over_seeds(seeds, sweep)
    band = [b for b in BUDGETS if budgets[f"pass {b}"] >= WANTED and budgets[f"cost {b}"] <= AFFORDED]
    published = [
        ("pass@1 at its defaults, %", "default 1", 80, 0),
        ("pass^4 at its defaults, %", "default 4", 42, 0),
        ("pass@1, lower temperature, %", "cooler 1", 86, 0),
        ("pass^4, lower temperature, %", "cooler 4", 59, 0),
        ("baited: pass^4 by outcome, %", "outcome", 62, 0),
        ("baited: pass^4 by trajectory, %", "trajectory", 34, 0),
        ("… with a verification step, %", "verified", 55, 0),
        ("passing runs per breach of policy", "one in", 6, 0),
        ("dollars a run", "run", 0.030, 3),
        ("dollars a success", "success", 0.0375, 4),
    ]
    lines = [
        Line(what=what, theirs=theirs, ours=mean[name], spread=spread[name], digits=digits, fitted=True)
        for what, name, theirs, digits in published
    ]
    below = Line(
        what="pass^8 at its defaults, %",
        theirs=20,
        ours=mean["default 8"],
        spread=spread["default 8"],
        digits=0,
        relation=Relation.BELOW,
        fitted=True,
    )
    counted = [
        Line(
            what="budgets within the band",
            theirs=0,
            ours=len(band),
            digits=0,
            relation=Relation.ABOVE,
            fitted=True,
        ),
        *(
            Line(what=f"the band's {end} budget, turns", theirs=None, ours=budget, digits=0)
            for end, budget in zip(("least", "largest"), (band[0], band[-1]) if band else (), strict=False)
        ),
    ]
    return Reproduction(
        title=f"a synthetic agent lab, {DEFAULTS.tasks} tasks of {DEFAULTS.trials} trials",
        lines=[*lines[:2], below, *lines[2:], *counted],
        fitted={
            **{one.name.replace("_", " "): getattr(DEFAULTS, one.name) for one in fields(Lab)[2:-4]},
            "turn price": DEFAULTS.turn_price,
            "lower temperature": COOLER.temperature,
            "baited temperature": BAITED.temperature,
            "takes bait": BAITED.takes_bait,
            "verifies": VERIFIED.verifies,
        },
        notes=[
            "the published lab's parameters are not known: these were chosen to reach its figures, so the table shows "
            "that slips, loops and baits of such sizes are enough for them, not that they are the cause.",
            f"band: pass^4 ≥ {WANTED:.0f} % at ≤ ${AFFORDED:.0f} per thousand successes. Below it loops are cut "
            "before they end; above it runs that go on looping cost more than the ones they save are worth.",
        ],
    )

"""A suite of easy and hard tasks: what its pass^8 is, and what three ways to estimate it say."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from redfirst.evaluators.statistics.repetition import pass_hat_k
from redfirst.evaluators.statistics.steps import expected_pass_hat_k
from reproductions.line import Line, Measured, Reproduction, over_seeds

TASKS, TRIALS = 120, 8
STEPS = (4, 30)
STEP_SUCCESS = 0.966
STEP_SPREAD = 0.0225
"""Standard deviation over tasks of the step success. Fitted to the published true pass^1."""
AGAIN = 200
"""Times the same suite is tried, for the standard deviation of the unbiased estimate."""


def measure(rng: Generator) -> Measured:
    """One suite: its tasks drawn, tried, and estimated."""
    steps = rng.integers(STEPS[0], STEPS[1] + 1, TASKS)
    both = STEP_SUCCESS * (1 - STEP_SUCCESS) / STEP_SPREAD**2 - 1
    step = rng.beta(STEP_SUCCESS * both, (1 - STEP_SUCCESS) * both, TASKS)
    success = step**steps
    trials = np.full(TASKS, TRIALS)
    passes = rng.binomial(TRIALS, success, (AGAIN, TASKS))
    estimates = [pass_hat_k(trials, row, TRIALS) or 0.0 for row in passes]
    first = passes[0]
    return {
        "steps": float(steps.mean()),
        "step": float(step.mean()),
        "true 1": 100 * float(success.mean()),
        "true 8": 100 * expected_pass_hat_k(success, TRIALS),
        "unbiased": 100 * estimates[0],
        "sd": 100 * float(np.std(estimates, ddof=1)),
        "naive": 100 * float(first.mean() / TRIALS) ** TRIALS,
        "homogeneous": 100 * float(step.mean() ** steps.mean()) ** TRIALS,
        "all pass": 100 * float((first == TRIALS).mean()),
        "all fail": 100 * float((first == 0).mean()),
    }


def reproduce(seeds: int) -> Reproduction:
    """The figures over seeds, each a suite of its own."""
    mean, spread = over_seeds(seeds, measure)
    published = [
        ("steps of a task, mean", "steps", 16.8, 1, False),
        ("step success, mean", "step", 0.966, 3, False),
        ("true pass^1, %", "true 1", 62.1, 1, True),
        ("true pass^8, %", "true 8", 12.2, 1, True),
        ("unbiased estimate of pass^8, %", "unbiased", 10.0, 1, False),
        ("its standard deviation, points", "sd", 2.6, 1, False),
        ("estimated pass^1 to the 8th, %", "naive", 2.0, 1, False),
        ("all tasks alike, %", "homogeneous", 0.9, 1, False),
        ("tasks that pass all 8, %", "all pass", 10, 0, False),
        ("tasks that fail all 8, %", "all fail", 2.5, 1, False),
    ]
    return Reproduction(
        title=f"{TASKS} mixed tasks of {STEPS[0]} to {STEPS[1]} steps, {TRIALS} trials",
        lines=[
            Line(what=what, theirs=theirs, ours=mean[name], spread=spread[name], digits=digits, fitted=fitted)
            for what, name, theirs, digits, fitted in published
        ],
        fitted={"step success": f"Beta with mean {STEP_SUCCESS} and standard deviation {STEP_SPREAD}"},
        notes=[
            "theirs is one suite; ours is the mean of one suite per seed, so the spread is that of a single suite."
        ],
    )

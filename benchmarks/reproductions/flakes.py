"""Infrastructure that fails a run in twenty: what it does to pass^8, and which retries are honest."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from redfirst.evaluators.statistics.infrastructure import adjusted_pass_hat_k, flake_factor
from redfirst.evaluators.statistics.repetition import Counts, pass_hat_k
from reproductions.line import Line, Measured, Relation, Reproduction, over_seeds

SUITES, TASKS, TRIALS = 4_000, 200, 8
SUCCESS, FLAKE, RETRIES = 0.70, 0.05, 3


def retried(rng: Generator, *, on_any_failure: bool) -> Counts:
    """Passes per task when a run is tried again, up to three times, after a detected fault or any failure."""
    open_runs = np.full(SUITES * TASKS, TRIALS)
    passes = np.zeros_like(open_runs)
    for _ in range(1 + RETRIES):
        faults = rng.binomial(open_runs, FLAKE)
        passed = rng.binomial(open_runs - faults, SUCCESS)
        passes += passed
        open_runs = open_runs - passed if on_any_failure else faults
    return passes


def measure(rng: Generator) -> Measured:
    """Mean pass^8 over the suites, by each way to treat a fault."""
    trials = np.full(SUITES * TASKS, TRIALS)
    faults = rng.binomial(trials, FLAKE)
    passes = rng.binomial(trials - faults, SUCCESS)
    kept = trials - faults >= TRIALS
    left_out = adjusted_pass_hat_k(trials[kept], passes[kept], faults[kept], TRIALS)
    return {
        "naive": pass_hat_k(trials, passes, TRIALS) or 0.0,
        "left out": left_out.value or 0.0,
        "faults": pass_hat_k(trials, retried(rng, on_any_failure=False), TRIALS) or 0.0,
        "any": pass_hat_k(trials, retried(rng, on_any_failure=True), TRIALS) or 0.0,
    }


def reproduce(seeds: int) -> Reproduction:
    """The figures over seeds."""
    mean, spread = over_seeds(seeds, measure)
    true = SUCCESS**TRIALS

    def line(what: str, name: str, theirs: float, relation: Relation = Relation.EQUAL) -> Line:
        return Line(
            what=what, theirs=theirs, ours=mean[name], spread=spread[name], digits=4, relation=relation
        )

    return Reproduction(
        title=f"infrastructure flakes of {FLAKE:.0%}, {SUITES:,} suites of {TASKS} tasks at {SUCCESS}",
        lines=[
            Line(what="pass^8 is multiplied by", theirs=0.66, ours=flake_factor(FLAKE, TRIALS), digits=2),
            line("pass^8, faults counted as failures", "naive", true * flake_factor(FLAKE, TRIALS)),
            line("pass^8, three retries on faults", "faults", true),
            line("pass^8, tasks without a fault", "left out", true),
            line("pass^8, three retries on a failure", "any", true, Relation.ABOVE),
        ],
        fitted={},
        notes=[f"theirs in the last four lines is the closed form; the true pass^8 is .7^8 = {true:.4f}."],
    )

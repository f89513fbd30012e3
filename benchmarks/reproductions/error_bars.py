"""How wide an error bar is for so many tasks and trials, what a plan says, and a gate that shows its interval."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from redfirst.evaluators.statistics.bootstrap import pass_hat_k_interval
from redfirst.evaluators.statistics.planning import designs, half_width
from redfirst.evaluators.statistics.repetition import pass_hat_k
from reproductions.line import Line, Measured, Reproduction, over_seeds

BETWEEN, WITHIN = 0.04, 0.12
"""Variance of the tasks' true rates, and the mean of p(1−p)."""
RATES = (2.4, 0.6)
"""The Beta distribution of rates with these variances: mean .8, variance .04, mean of p(1−p) .12."""
GATE, GATE_TASKS, GATE_TRIALS = 0.50, 300, 4


def gate(rng: Generator) -> Measured:
    """One suite of 300 tasks tried four times, judged by "pass^4 ≥ 50 %"."""
    passes = rng.binomial(GATE_TRIALS, rng.beta(*RATES, GATE_TASKS))
    trials = np.full(GATE_TASKS, GATE_TRIALS)
    value = pass_hat_k(trials, passes, GATE_TRIALS)
    interval = pass_hat_k_interval(trials, passes, GATE_TRIALS)
    if value is None or interval is None:
        raise ArithmeticError("a suite of 300 tasks of four trials has a pass^4")
    return {
        "value": 100 * value,
        "low": 100 * interval.low,
        "high": 100 * interval.high,
        "by value": 100.0 * (value >= GATE),
        "by bound": 100.0 * (interval.low >= GATE),
    }


def reproduce(seeds: int) -> Reproduction:
    """The figures; the gate over seeds."""
    bars = [
        Line(
            what=f"{tasks} tasks × {trials}, ± points",
            theirs=theirs,
            ours=100 * half_width(between=BETWEEN, within=WITHIN, tasks=tasks, trials=trials),
            digits=1,
        )
        for tasks, trials, theirs in ((40, 16, 6.8), (300, 2, 3.6), (400, 1, 3.9))
    ]
    plan = [
        Line(
            what=f"plan: {one.tasks} tasks × {one.trials}, ± points",
            theirs=None,
            ours=100 * one.half_width,
            digits=1,
        )
        for one in designs(between=BETWEEN, within=WITHIN, wanted=0.04, budget=800)
    ]
    mean, spread = over_seeds(seeds, gate)
    gates = [
        Line(what=what, theirs=None, ours=mean[name], spread=None if "by" in name else spread[name], digits=1)
        for what, name in (
            (f"gate: pass^4 of {GATE_TASKS} tasks, %", "value"),
            ("gate: lower end of its interval, %", "low"),
            ("gate: upper end of its interval, %", "high"),
            ("suites that pass it by the value, %", "by value"),
            ("suites that pass it by the bound, %", "by bound"),
        )
    ]
    true = np.prod([(RATES[0] + i) / (sum(RATES) + i) for i in range(GATE_TRIALS)])
    return Reproduction(
        title="error bars of designs, a plan and a gate",
        lines=[*bars, *plan, *gates],
        fitted={},
        notes=[
            "variances .04 between and .12 within tasks; the plan is for ±4 points within 800 runs, fewest runs first.",
            f"the true pass^4 of the gate's suites is {100 * true:.1f} %; the gate asks for {100 * GATE:.0f} %.",
        ],
    )

"""Thirty tasks scored by their outcome and by their trajectory, read from spans and judged by the default checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from redfirst.evaluators.statistics.cost import cost_per_success
from redfirst.evaluators.statistics.paired import mcnemar_exact
from redfirst.evaluators.statistics.proportions import wilson
from reproductions.line import Line, Reproduction
from reproductions.scored_runs import AGAIN, CLEAN, DETOURS, TASKS, Scored, broken, scored, sound
from reproductions.shop_runs import SPOKEN, STEP_CAP

_SHARES: Mapping[str, Callable[[Scored], bool]] = {
    "outcome right, %": lambda one: one.outcome,
    "trajectory right, %": lambda one: one.trajectory,
    "both, %": lambda one: one.outcome and one.trajectory,
    "outcome only, %": lambda one: one.outcome and not one.trajectory,
    "trajectory only, %": lambda one: one.trajectory and not one.outcome,
    "neither, %": lambda one: not one.outcome and not one.trajectory,
    "ended by the cap, %": lambda one: one.capped,
}
_MEANS: Mapping[str, tuple[Callable[[Scored], float], int]] = {
    "calls of a run": (lambda one: one.calls, 2),
    "repeats among them": (lambda one: one.repeats, 2),
    "tokens of a run": (lambda one: one.tokens, 0),
}
"""What is averaged, and with how many digits it was published."""
_PUBLISHED: Mapping[str, tuple[Sequence[float | None], Sequence[float | None], float]] = {
    "sound": ((100, 100, 100, 0, 0, 0, None), (2.00, None, 829), 829),
    "broken": ((36.7, 33.3, 33.3, 3.3, 0, 63.3, 63.3), (7.10, 5.00, 1557), 4246),
}
"""Of each agent the shares, the means, and the tokens per right answer."""


def reproduce(seeds: int) -> Reproduction:  # noqa: ARG001 - nothing here is random
    """The figures."""
    runs = {
        name: [scored(script(task)) for task in range(TASKS)]
        for name, script in (("sound", sound), ("broken", broken))
    }
    return Reproduction(
        title=f"{TASKS} tasks as spans, scored by outcome and by trajectory",
        lines=[
            *(line for name in runs for line in _of(name, runs[name])),
            *_compared(runs["sound"], runs["broken"]),
            *_intervals(runs["sound"], runs["broken"]),
        ],
        fitted={
            "step cap": STEP_CAP,
            "runs without fault, with one repeat, looping": f"{CLEAN}, {AGAIN}, {TASKS - CLEAN - AGAIN}",
            "looping runs with one call more": DETOURS,
            "tokens of prompt, request, answer": ", ".join(map(str, SPOKEN)),
        },
        notes=[
            "which runs do what was chosen so that their counts come out; that the reader and the default "
            "checks find just these counts in the spans is what is shown."
        ],
    )


def _of(name: str, runs: Sequence[Scored]) -> list[Line]:
    shares, means, price = _PUBLISHED[name]
    return [
        *(
            Line(what=f"{name}: {what}", theirs=theirs, ours=100 * _mean(runs, hit), digits=1, fitted=True)
            for (what, hit), theirs in zip(_SHARES.items(), shares, strict=True)
        ),
        *(
            Line(what=f"{name}: {what}", theirs=theirs, ours=_mean(runs, of), digits=digits, fitted=True)
            for (what, (of, digits)), theirs in zip(_MEANS.items(), means, strict=True)
        ),
        Line(what=f"{name}: tokens per right answer", theirs=price, ours=_price(runs), digits=0),
    ]


def _compared(first: Sequence[Scored], second: Sequence[Scored]) -> list[Line]:
    pairs = [(one.outcome, other.outcome) for one, other in zip(first, second, strict=True)]
    p = mcnemar_exact(pairs.count((True, False)), pairs.count((False, True)))
    by_run = _mean(second, lambda one: one.tokens) / _mean(first, lambda one: one.tokens)
    by_right_answer = _price(second) / _price(first)
    return [
        Line(what="dearer by right answer, times", theirs=5.1, ours=by_right_answer, digits=1),
        Line(what="dearer by run, times", theirs=1.9, ours=by_run, digits=1),
        Line(what="McNemar p of the outcomes × 1e6", theirs=4, ours=1e6 * p, digits=0),
    ]


def _intervals(first: Sequence[Scored], second: Sequence[Scored]) -> list[Line]:
    """Of the published shares of thirty."""
    counted = [
        ("sound", sum(one.outcome for one in first), (88.6, 100.0)),
        ("broken", sum(one.outcome for one in second), (21.9, 54.5)),
        ("cap", sum(one.capped for one in second), (45.5, 78.1)),
        ("outcome only", sum(one.outcome and not one.trajectory for one in second), (0.6, 16.7)),
    ]
    found = []
    for name, count, published in counted:
        interval = wilson(count, TASKS)
        for end, theirs, ours in zip(("low", "high"), published, (interval.low, interval.high), strict=True):
            what = f"Wilson {end}, {name} ({count}/{TASKS}), %"
            found.append(Line(what=what, theirs=theirs, ours=100 * ours, digits=1))
    return found


def _mean(runs: Sequence[Scored], of: Callable[[Scored], float]) -> float:
    return sum(map(of, runs)) / len(runs)


def _price(runs: Sequence[Scored]) -> float:
    found = cost_per_success([one.tokens for one in runs], [one.outcome for one in runs])
    if found.value is None:
        raise ArithmeticError("an agent without a right answer has no price")
    return found.value

"""Eight tasks tried eight times: four always pass, four pass half of the time. Closed form."""

from __future__ import annotations

from redfirst.evaluators.statistics.repetition import pass_at_k, pass_hat_k
from reproductions.line import Line, Reproduction

TRIALS, PASSES = [8] * 8, [8, 8, 8, 8, 4, 4, 4, 4]


def reproduce(seeds: int) -> Reproduction:  # noqa: ARG001 - nothing here is random
    """The figures."""
    lines = []
    for k, at, hat, digits in ((2, 0.8929, 0.6071, 4), (8, 1.0, 0.5, 4)):
        for name, theirs, estimate in (("pass@", at, pass_at_k), ("pass^", hat, pass_hat_k)):
            ours = estimate(TRIALS, PASSES, k)
            if ours is None:
                raise ArithmeticError(f"{name}{k} of eight trials is undefined")
            lines.append(Line(what=f"{name}{k}", theirs=theirs, ours=ours, digits=digits))
    return Reproduction(title="eight tasks of eight trials, closed form", lines=lines, fitted={})

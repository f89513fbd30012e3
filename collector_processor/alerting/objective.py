"""An agent against its objective: the share of flagged runs that is tolerated.

Of the runs that were judged for the first time within the window, ``k`` of ``n`` were flagged. It fires when ``n`` is
at least ``min_runs``, the lower Wilson bound of k/n (at ``z``) is above the threshold, and so is the share of the
short window: what is over is no reason to wake anybody. It resolves when the upper Wilson bound (at ``resolve_z``) is
below the threshold: between the two lies the hysteresis, in which a state stays what it is. Too few runs, or none,
are ``no_data``: no failure and no page. It outlives a lull; after ``stale`` without enough runs it is given up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from redfirst.collector_processor.alerting.policy import Count, Policy, Standing
from redfirst.evaluators.statistics.proportions import wilson_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """Where a stream stands with its objective."""

    standing: Standing = Standing.NO_DATA
    thin_since_ns: int | None = None
    """Since when it fires with too few runs."""


def judged(mark: Objective, long: Count, short: Count, policy: Policy, now_ns: int) -> Objective:
    """The next mark, with these counts of the window and of its newest part."""
    if policy.threshold is None:
        return mark
    if mark.thin_since_ns is not None and now_ns >= mark.thin_since_ns + policy.stale_ns:
        mark = Objective()
    firing = mark.standing is Standing.FIRING
    k, n, tolerated = long.flagged, long.judged, policy.threshold
    if n < policy.min_runs:
        return replace(mark, thin_since_ns=mark.thin_since_ns or now_ns) if firing else Objective()
    # the bounds lie on either side of k/n, so most windows need no square root
    if firing:
        resolved = k < tolerated * n and wilson_bounds(k, n, policy.resolve_z)[1] < tolerated
        return Objective(standing=Standing.OK if resolved else Standing.FIRING)
    above = (
        k > tolerated * n
        and short.flagged > tolerated * short.judged
        and wilson_bounds(k, n, policy.z)[0] > tolerated
    )
    return Objective(standing=Standing.FIRING if above else Standing.OK)


def due(mark: Objective, policy: Policy) -> tuple[int, ...]:
    """The moments at which time alone may change it, but for runs that leave a window."""
    return () if mark.thin_since_ns is None else (mark.thin_since_ns + policy.stale_ns,)

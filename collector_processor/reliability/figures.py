"""A summary as plain numbers: for JSON, and by name for gates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from redfirst.collector_processor.reliability.estimates import Estimate
from redfirst.collector_processor.reliability.summary import Reliability, Repeated
from redfirst.evaluators.statistics.cost import CostPerSuccess
from redfirst.evaluators.statistics.infrastructure import Adjusted
from redfirst.evaluators.statistics.proportions import Interval

Json = Any


def as_json(found: Reliability, *, min_trials: int | None = None) -> dict[str, Json]:
    """The summary as the one object that ``reliability --json`` prints. What is not defined is null."""
    tokens, cost = found.per_success.get("tokens"), found.per_success.get("cost")
    return {
        "tasks": len(found.tasks),
        "tasks_read": found.tasks_read,
        "min_trials": min_trials,
        "trials": found.trials,
        "infra": found.infra,
        "pass_at": {str(k): one.value for k, one in found.pass_at.items()},
        "pass_at_interval": {str(k): pair(one.interval) for k, one in found.pass_at.items()},
        "pass_hat": {str(k): one.value for k, one in found.pass_hat.items()},
        "pass_hat_interval": {str(k): pair(one.interval) for k, one in found.pass_hat.items()},
        "pass_hat_all_runs": {
            str(k): bounds
            for k, one in found.pass_hat.items()
            if (bounds := _bounds(one.all_runs)) is not None
        },
        "success": estimate_json(found.success),
        "success_all_runs": _bounds(found.of_all_runs),
        "strict": estimate_json(found.strict),
        "goal": estimate_json(found.goal),
        "violations_among_goal": estimate_json(found.violations),
        "violations": dict(found.violated),
        "tokens_per_success": None if tokens is None else tokens.value,
        "tokens_per_success_interval": None if tokens is None else pair(tokens.interval),
        "tokens_total": None if tokens is None else tokens.total,
        "cost_per_success": None if cost is None else cost.value,
        "cost_per_success_interval": None if cost is None else pair(cost.interval),
        "cost_total": None if cost is None else cost.total,
        "used": {name: asdict(one) for name, one in found.used.items()},
        "variance": None
        if found.spread is None
        else {"between_tasks": found.spread.between, "within_tasks": found.spread.within},
        "always_passed": list(found.always),
        "never_passed": list(found.never),
        "outcome_by_trajectory": None if found.quadrants is None else asdict(found.quadrants),
        "ended": dict(found.ended),
    }


def named(found: Reliability) -> Mapping[str, float | None]:
    """Every figure that a gate can ask for."""
    figures: dict[str, float | None] = {
        "tasks": len(found.tasks),
        "trials": found.trials,
        "infra": found.of_all_runs.lost_share,
    }
    most = max([20, *found.pass_hat])  # a k that no task reaches is not defined, and no mistake of the gate
    none = Repeated(value=None, interval=None)
    for name, repeated in (("pass_at", found.pass_at), ("pass_hat", found.pass_hat)):
        for k in range(1, most + 1):
            one = repeated.get(k, none)
            figures |= with_ends(f"{name}[{k}]", one.value, one.interval)
    for name, share in (
        ("success", found.success),
        ("strict", found.strict),
        ("goal", found.goal),
        ("violations_among_goal", found.violations),
    ):
        value, interval = (None, None) if share is None else (share.value, share.interval)
        figures |= with_ends(name, value, interval)
    for name in ("tokens", "cost"):
        figures |= _paid(f"{name}_per_success", found.per_success.get(name))
        used = found.used.get(name)
        figures |= {
            f"{name}.median": None if used is None else used.median,
            f"{name}.p95": None if used is None else used.upper,
        }
    return figures


def _paid(name: str, paid: CostPerSuccess | None) -> dict[str, float | None]:
    value, interval = (None, None) if paid is None else (paid.value, paid.interval)
    return with_ends(name, value, interval)


def with_ends(name: str, value: float | None, interval: Interval | None) -> dict[str, float | None]:
    """A figure and the ends of its interval, by name."""
    ends = (None, None) if interval is None else (interval.low, interval.high)
    return {name: value, f"{name}.low": ends[0], f"{name}.high": ends[1]}


def estimate_json(one: Estimate | None) -> Json:
    """A share with its interval; null where there is none."""
    if one is None:
        return None
    interval = one.interval
    return {
        "estimate": one.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "method": None if interval is None else interval.method,
        "passes": one.passes,
        "of": one.of,
    }


def pair(interval: Interval | None) -> Json:
    """The ends of an interval; one that is infinite is null, as JSON has no other word for it."""
    if interval is None:
        return None
    return [end if math.isfinite(end) else None for end in (interval.low, interval.high)]


def _bounds(one: Adjusted | None) -> Json:
    return None if one is None else {"if_all_failed": one.if_all_failed, "if_all_passed": one.if_all_passed}

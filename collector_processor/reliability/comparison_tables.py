"""A comparison as tables, and as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from redfirst.collector_processor.reliability.comparison import Comparison
from redfirst.collector_processor.reliability.estimates import FEW, Estimate
from redfirst.collector_processor.reliability.figures import as_json
from redfirst.collector_processor.reliability.summary import Reliability
from redfirst.collector_processor.reliability.tables import Table
from redfirst.collector_processor.reliability.words import UNKNOWN, amount, percent, points

Json = Any

_MOST_CHANGES = 8


def tables_of(found: Comparison) -> Iterator[Table]:
    """The answer first, then what it rests on."""
    yield Table(title=answer(found), notes=list(_why(found)))
    yield Table(
        title=f"{found.tasks} tasks in common",
        header=("", "A", "B", "B − A"),
        rows=list(_rows(found)),
        notes=list(_left_out(found)),
    )
    if found.changes:
        shown = found.changes[:_MOST_CHANGES]
        rest = len(found.changes) - len(shown)
        yield Table(
            header=("tasks that differ", "A", "B", "B − A"),
            rows=[(task, percent(a), percent(b), points(b - a)) for task, a, b in shown],
            notes=[f"… and {rest} more"] if rest else [],
        )


def answer(found: Comparison) -> str:
    """The finding in one sentence."""
    value, interval = found.difference.value, found.interval
    between = "" if interval is None else f", 95 % interval [{points(interval.low)}, {points(interval.high)}]"
    change = f"B − A = {points(value)} points{between}"
    if found.p is None:
        return f"NO VERDICT: {change}; this design allows no test"
    p = f"{found.test}, p = {found.p:.2g}"
    if not found.significant:
        return f"NOT SHOWN: {change}; no more than chance would do ({p})"
    return f"{'B IS BETTER' if value > 0 else 'B IS WORSE'}: {change} ({p})"


def _why(found: Comparison) -> Iterator[str]:
    same = found.tasks - found.gained - found.lost
    yield f"B does better on {found.gained} tasks, worse on {found.lost}, the same on {same}"
    seen = found.difference.smallest_detectable
    if seen:
        yield f"this design finds a true difference of {100 * seen:.1f} points four times in five, a smaller one less often"
    if found.fewest_changes is not None:
        share = found.fewest_changes / found.tasks
        enough = (
            f"{100 * share:.1f} points of {found.tasks} tasks" if share <= 1 else f"there are {found.tasks}"
        )
        yield (
            f"tried once each, {found.fewest_changes} tasks must change, all the same way, before p < 0.05: {enough}"
        )
    if found.tasks < FEW:
        yield f"fewer than {FEW} tasks: the interval can be too narrow; redfirst plan says how many it takes"


def _rows(found: Comparison) -> Iterator[tuple[str, str, str, str]]:
    pairs: tuple[tuple[str, Estimate | None, Estimate | None], ...] = (
        ("success", found.first.success, found.second.success),
        ("goal only", found.first.goal, found.second.goal),
        ("strict", found.first.strict, found.second.strict),
        ("violations in goal-passing runs", found.first.violations, found.second.violations),
    )
    for name, a, b in pairs:
        if a is not None or b is not None:
            yield _row(name, None if a is None else a.value, None if b is None else b.value)
    k = _largest_k(found.first, found.second)
    if k > 1:
        yield _row(f"pass^{k}", found.first.pass_hat[k].value, found.second.pass_hat[k].value)
    for name in ("tokens", "cost"):
        prices = [side.per_success.get(name) for side in (found.first, found.second)]
        values = [None if price is None else price.value for price in prices]
        if any(value is not None for value in values):
            change = UNKNOWN if None in values or not values[0] else f"×{(values[1] or 0) / values[0]:.2f}"
            yield (f"{name} per success", amount(values[0]), amount(values[1]), change)
    yield ("runs", str(found.first.trials), str(found.second.trials), "")
    if found.first.infra or found.second.infra:
        yield ("without a verdict", str(found.first.infra), str(found.second.infra), "")


def _row(name: str, a: float | None, b: float | None) -> tuple[str, str, str, str]:
    return (name, percent(a), percent(b), UNKNOWN if a is None or b is None else points(b - a))


def _largest_k(*sides: Reliability) -> int:
    """The largest k for which pass^k is defined on both sides; 0 without one."""
    defined = [{k for k, one in side.pass_hat.items() if one.value is not None} for side in sides]
    return max(defined[0] & defined[1], default=0)


def _left_out(found: Comparison) -> Iterator[str]:
    for side, names in (("A", found.only_first), ("B", found.only_second)):
        if names:
            some = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
            yield f"{len(names)} tasks have a verdict in {side} alone, or nowhere, and are left out: {some}"
    yield f"tested: {found.on}; the other rows are shown beside it"


def comparison_json(found: Comparison) -> dict[str, Json]:
    """The comparison as one JSON object."""
    interval = found.interval
    return {
        "tasks": found.tasks,
        "only_a": list(found.only_first),
        "only_b": list(found.only_second),
        "difference": found.difference.value,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "standard_error": found.difference.standard_error,
        "test": found.test,
        "p": found.p,
        "significant": found.significant,
        "smallest_detectable": found.difference.smallest_detectable,
        "fewest_changes": found.fewest_changes,
        "better": found.gained,
        "worse": found.lost,
        "changes": [{"task": task, "a": a, "b": b} for task, a, b in found.changes],
        "a": as_json(found.first),
        "b": as_json(found.second),
    }


def comparison_figures(found: Comparison) -> Mapping[str, float | None]:
    """What a gate can ask for."""
    interval = found.interval
    return {
        "difference": found.difference.value,
        "difference.low": None if interval is None else interval.low,
        "difference.high": None if interval is None else interval.high,
        "p": found.p,
        "smallest_detectable": found.difference.smallest_detectable,
        "tasks": found.tasks,
    }

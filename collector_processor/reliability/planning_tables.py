"""A plan as tables, and as plain numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from redfirst.collector_processor.reliability.planning import Cap, Plan
from redfirst.collector_processor.reliability.tables import Table
from redfirst.collector_processor.reliability.words import UNKNOWN, amount, percent
from redfirst.evaluators.statistics.planning import Design, half_width

Json = Any

_SMALL_PILOT = 20


def plan_tables(found: Plan) -> Iterator[Table]:
    """What is wanted, whether the budget reaches it, and by which designs."""
    variance = found.variance
    source = "given" if variance.tasks is None else f"from {variance.tasks} tasks of the pilot"
    notes = [f"variance between tasks {variance.between:.4f}, within {variance.within:.4f} ({source})"]
    if variance.tasks is not None and variance.tasks < _SMALL_PILOT:
        notes.append(
            f"a pilot of fewer than {_SMALL_PILOT} tasks: take the plan for a first guess, and plan again"
        )
    yield Table(title=_answer(found), notes=notes)
    shown = [
        *found.designs,
        *([found.best] if found.best is not None and found.best not in found.designs else []),
    ]
    yield Table(
        header=("tasks", "trials", "runs", "half width", *(["about $"] if found.price is not None else [])),
        rows=[_row(one, found.price) for one in shown],
        notes=list(_reading(found)),
        left=frozenset(),
    )


def _reading(found: Plan) -> Iterator[str]:
    """How the designs are to be read."""
    if found.designs:
        yield "fewest tasks for each number of trials"
    if found.best not in found.designs:
        yield "the last row spends the whole budget" if found.designs else "what the whole budget buys"
    tasks = _tasks(found)
    yield f"with {tasks} tasks, more trials of each never get below ±{100 * _floor(found):.1f} points"
    least = found.wanted.least_trials
    if least > 1:
        yield f"at least {least} trials of each task, so that pass^{least} is defined"


def _answer(found: Plan) -> str:
    wanted = found.wanted
    aim = f"±{100 * wanted.half_width:g} points within {wanted.runs} runs"
    if found.wanted.tasks is not None:
        aim += f" and {found.wanted.tasks} tasks"
    if found.designs:
        first = found.designs[0]
        return f"{aim}: {first.tasks} tasks × {first.trials}, {first.runs} runs"
    best = found.best
    reached = (
        ""
        if best is None
        else f"; the best is ±{100 * best.half_width:.1f} points, {best.tasks} tasks × {best.trials}"
    )
    return f"{aim}: NOT REACHED{reached}"


def _tasks(found: Plan) -> int:
    best = found.designs[0] if found.designs else found.best
    return 1 if best is None else best.tasks


def _floor(found: Plan) -> float:
    """The half width that so many tasks leave however often each is tried."""
    return half_width(between=found.variance.between, within=0, tasks=_tasks(found), trials=1)


def _row(one: Design, price: float | None) -> tuple[str, ...]:
    cells = (str(one.tasks), str(one.trials), str(one.runs), f"±{100 * one.half_width:.2f}")
    return cells if price is None else (*cells, amount(one.runs * price))


def cap_table(caps: Mapping[str, Cap], *, quantile: float) -> Table:
    """What a run may use, from what passing runs used."""
    rows = []
    for name, cap in caps.items():
        budget = cap.budget
        bound = UNKNOWN if budget.upper is None else amount(budget.upper)
        kept = f"{percent(cap.uncapped.success)} → {percent(cap.effect.success)}"
        rows.append((name, str(budget.runs), amount(budget.steps), bound, kept, _price_change(cap)))
    needed = max(cap.budget.runs_needed for cap in caps.values())
    return Table(
        title=f"a cap that {100 * quantile:g} % of passing runs keep within",
        header=("per run", "passing", "cap", "sure cap", "success", "per success"),
        rows=rows,
        notes=[
            f"sure cap: the upper bound at 95 % confidence, which takes {needed} passing runs; success and use per "
            f"success: without a cap, and at the sure cap (at the cap where there is none), a run that is cut off failing",
        ],
    )


def _price_change(cap: Cap) -> str:
    return f"{amount(cap.uncapped.per_success)} → {amount(cap.effect.per_success)}"


def plan_json(found: Plan | None, caps: Mapping[str, Cap]) -> dict[str, Json]:
    """Both as one JSON object."""
    return {
        "reached": None if found is None else bool(found.designs),
        "variance": None if found is None else asdict(found.variance),
        "wanted": None if found is None else asdict(found.wanted),
        "designs": [] if found is None else [_design(one) for one in found.designs],
        "best": None if found is None or found.best is None else _design(found.best),
        "cost_per_run": None if found is None else found.price,
        "caps": {
            name: {
                "quantile": cap.budget.quantile,
                "passing_runs": cap.budget.runs,
                "cap": cap.budget.steps,
                "sure_cap": cap.budget.upper,
                "runs_needed": cap.budget.runs_needed,
                "uncapped": asdict(cap.uncapped),
                "capped": asdict(cap.effect),
            }
            for name, cap in caps.items()
        },
    }


def _design(one: Design) -> dict[str, Json]:
    return {"tasks": one.tasks, "trials": one.trials, "runs": one.runs, "half_width": one.half_width}

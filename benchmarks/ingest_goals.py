"""The goals for the service beside what ``ingest.py`` reached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Goal:
    """What is to be reached, and what was."""

    what: str
    wanted: str
    reached: float
    met: bool


def goals(figures: Mapping[str, Any]) -> Iterable[Goal]:
    """Of the parts that were measured."""
    for row in figures.get("loop", ()):
        yield _least("spans per CPU second, whole loop", 30_000, row["spans_per_cpu_second"])
    for row in figures.get("peers", ()):
        for name, least in (("phoenix", 200), ("mlflow", 25)):
            if f"{name}_ratio" in row:
                yield _least(f"CPU per span: {name} ÷ redfirst", least, row[f"{name}_ratio"])
    for row in figures.get("rotel", ()):
        yield _most("CPU per span, accept: redfirst ÷ rotel", 0.4, row["accept_to_rotel_ratio"])
    for row in figures.get("memory", ()):
        what = f"MiB per 1,000 of {row['open_runs']:,.0f} open runs"
        yield _most(what, 2, row["mib_per_1000_open_runs"])
    for row in figures.get("latency", ()):
        scorers = f"{row['scorers']} scorer" + "s" * (row["scorers"] > 1)
        at = f"{row['offered']:,}/s, {scorers}"
        if row["offered"] != 2_000:
            continue  # no goal was set for other rates
        yield _most(f"root to verdict p99, ms: {at}", row["settle_ms"] + 100, row["verdict_p99_ms"])
        yield _most(f"acknowledged p50, ms: {at}", 20, row["ack_p50_ms"])


def _least(what: str, wanted: float, reached: float) -> Goal:
    return Goal(what, f"≥ {wanted:,g}", reached, reached >= wanted)


def _most(what: str, wanted: float, reached: float) -> Goal:
    return Goal(what, f"≤ {wanted:,g}", reached, reached <= wanted)


def print_goals(figures: Mapping[str, Any]) -> None:
    """A table of them."""
    print(f"{'goal':43}{'wanted':>10}{'reached':>12}")
    for goal in goals(figures):
        print(f"{goal.what:43}{goal.wanted:>10}{goal.reached:>12,.2f}  {'met' if goal.met else 'not met'}")
    print()

"""The evaluation lab: which metric notices which break of an agent?

    python benchmarks/lab.py [--keep DIR]

Twenty requests to the bookshop, one more that is served right by a route of ten times the price, and one with an unwanted
side effect; five runs each, with a healthy agent and with one thing broken at a time. Outcome and trajectory are measured
in every run, and a metric has caught a break when it moved by more than chance (paired per scenario, Student's t, Holm
over the metrics). Seeded: the same table every time. ``--keep`` leaves the runs as JSON lines for ``redfirst reliability``
and ``redfirst compare``. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
from lab_scenarios import ANSWERS, BREAKS, DEAR, HEALTHY, SCENARIOS, SEEDS, SIDE, Condition, Scenario
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redfirst.collector_processor.reliability.comparison import SIGNIFICANT, student_p
from redfirst.collector_processor.reliability.tables import Table, as_text
from redfirst.collector_processor.reliability.words import amount
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.statistics.paired import paired_difference
from redfirst.evaluators.verdict import CheckClass, Outcome, Verdict
from redfirst.examples.bookshop import agent as shop_agent
from redfirst.instrumentation import configure, shutdown
from redfirst.instrumentation.otlp_file import to_otlp_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured in one run."""

    scenario: str
    trial: int
    answer: bool
    """The answer says what a right one says."""
    state: bool
    """Everything the customer asked for is changed."""
    failed: tuple[str, ...]
    """Checks that flag the run, goal checks aside."""
    capped: bool
    errors: int
    model_calls: int
    tool_calls: int
    tokens: int

    @property
    def right(self) -> bool:
        """The outcome: answer and state."""
        return self.answer and self.state


METRICS: Mapping[str, Callable[[Run], float]] = {
    "right answer": lambda run: run.answer,
    "right end state": lambda run: run.state,
    "outcome (both)": lambda run: run.right,
    "broken rule": lambda run: any(not name.startswith(("repeats", "state.")) for name in run.failed),
    "unwanted change": lambda run: "state.collateral" in run.failed,
    "repeats": lambda run: "repeats" in run.failed,
    "ended by the cap": lambda run: run.capped,
    "tool errors": lambda run: run.errors,
    "model calls": lambda run: run.model_calls,
    "tool calls": lambda run: run.tool_calls,
    "tokens": lambda run: run.tokens,
}
"""Outcome first, then trajectory, then what was used."""
SHARES = frozenset(list(METRICS)[:7])


def main() -> int:
    """Play every condition and print the tables. 0 when each break moved some metric."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="leave the runs there as JSON lines")
    options = parser.parse_args()
    played = {condition.name: list(play(condition)) for condition in (HEALTHY, *BREAKS)}
    if options.keep is not None:
        keep(options.keep, played)
    found = {one.name: seen(played[HEALTHY.name], played[one.name]) for one in BREAKS}
    for line in as_text(
        [hand_in(played, found), answers(found), prices(played), odd_ones(played[HEALTHY.name])]
    ):
        print(line)
    return 0 if all(one.caught or one.moved for one in found.values()) else 1


def play(condition: Condition, scenarios: Sequence[Scenario] = SCENARIOS) -> Iterator[Run]:
    """The scenarios under a condition, five runs each, judged by the shop's policy."""
    rules = resources.files("redfirst.examples.bookshop") / "rules.yaml"
    checks = (*default_checks(), *load_rules(rules.read_text("utf-8"), "rules.yaml"))
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)
    try:
        with patch.object(shop_agent, "STEP_CAP", condition.step_cap):
            for scenario in scenarios:
                for trial, seed in enumerate(scenario.seeds):
                    exporter.clear()
                    yield _played(condition, scenario, trial, seed, exporter, checks)
    finally:
        shutdown()


def _played(
    condition: Condition,
    scenario: Scenario,
    trial: int,
    seed: int,
    exporter: InMemorySpanExporter,
    checks: Sequence[Check],
) -> Run:
    shop = scenario.task.shop()
    answer = condition.agent(scenario, shop, seed)(list(scenario.task.messages))
    (run,) = read_runs(decode_traces(orjson.dumps(to_otlp_json(exporter.get_finished_spans()))))
    verdicts = judge(run, checks)
    state = shop.snapshot()
    return Run(
        scenario=scenario.name,
        trial=trial,
        answer=re.search(ANSWERS[scenario.task.id], answer) is not None,
        state=all(_at(state, path) == value for path, value in scenario.task.changes.items()),
        failed=tuple(one.check for one in verdicts if one.flags and one.check_class is not CheckClass.GOAL),
        capped=any(one.check == "termination" and one.outcome is Outcome.FAILED for one in verdicts),
        errors=_wrong(verdicts),
        model_calls=len(run.model_calls),
        tool_calls=len(run.tool_calls),
        tokens=(run.tokens.input or 0) + (run.tokens.output or 0),
    )


def _at(state: Any, path: str) -> str | None:
    for key in path.split("."):
        state = state.get(key) if isinstance(state, dict) else None
    return None if state is None else str(state)


def _wrong(verdicts: Sequence[Verdict]) -> int:
    found = next(one for one in verdicts if one.check == "tool_errors")
    return (found.denominator or 0) - (found.numerator or 0)


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of the metrics under a break."""

    caught: frozenset[str]
    """Moved by more than chance, after Holm (1979)."""
    moved: frozenset[str]
    """Moved at all: in runs of the same seeds, so by the break, but in too few scenarios to tell it from chance."""


def seen(healthy: Sequence[Run], broken: Sequence[Run]) -> Seen:
    """The metrics that a break moved."""
    found: dict[str, float] = {}
    for name, metric in METRICS.items():
        before, after = (_per_scenario(runs, metric) for runs in (healthy, broken))
        difference = paired_difference(list(after.values()), [before[key] for key in after])
        p = None if difference is None else student_p(difference, len(after))
        if p is not None and before != after:
            found[name] = p
    caught: set[str] = set()
    for rank, (name, p) in enumerate(sorted(found.items(), key=lambda item: item[1])):
        if p >= SIGNIFICANT / (len(METRICS) - rank):
            break
        caught.add(name)
    return Seen(frozenset(caught), frozenset(found) - caught)


def _per_scenario(runs: Sequence[Run], metric: Callable[[Run], float]) -> dict[str, float]:
    names = dict.fromkeys(run.scenario for run in runs)
    return {name: _mean([metric(run) for run in runs if run.scenario == name]) for name in names}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def hand_in(played: Mapping[str, Sequence[Run]], found: Mapping[str, Seen]) -> Table:
    """Which metric caught which break."""
    rows = []
    for name, metric in METRICS.items():
        cells = []
        for condition, runs in played.items():
            value = _mean([metric(run) for run in runs])
            shown = f"{100 * value:.0f} %" if name in SHARES else amount(round(value, 2))
            cells.append(f"{shown} {_mark(name, found.get(condition))}")
        rows.append((name, *cells))
    return Table(
        title=f"Which metric caught which break: {len(SCENARIOS)} scenarios × {len(SEEDS)} runs a column",
        header=("mean over runs", *(f"{name}  " for name in played)),
        rows=rows,
        notes=[
            "* moved by more than chance: paired per scenario, p < .05 after Holm over the metrics",
            "~ moved in runs of the same seeds, but in too few scenarios to tell it from chance",
        ],
    )


def _mark(name: str, found: Seen | None) -> str:
    if found is None:
        return " "
    return "*" if name in found.caught else "~" if name in found.moved else " "


def answers(found: Mapping[str, Seen]) -> Table:
    """The same the other way round: for each break what noticed it, and what noticed nothing at all."""
    rows = [
        (f"{name}:", ", ".join(one for one in METRICS if one in seen_of.caught) or "nothing beyond chance")
        for name, seen_of in found.items()
    ]
    silent = [name for name in METRICS if not any(name in one.caught | one.moved for one in found.values())]
    return Table(rows=[*rows, ("never moved:", ", ".join(silent) or "none")], left=frozenset({0, 1}))


def prices(played: Mapping[str, Sequence[Run]]) -> Table:
    """Tokens of all runs for each right outcome, and which checks failed."""
    rows = []
    for name, runs in played.items():
        right = sum(run.right for run in runs)
        strict = sum(run.right and not run.failed for run in runs)
        paid = sum(run.tokens for run in runs)
        price = [amount(paid / wins) if wins else "no success" for wins in (right, strict)]
        failed = sum(bool(run.failed) for run in runs)
        rows.append((name, f"{right} of {len(runs)}", f"{failed} of {len(runs)}", *price))
    return Table(
        title="What a right outcome costs, failures paid for as well",
        header=("", "right", "violated", "tokens per right", "and clean"),
        rows=rows,
    )


def odd_ones(runs: Sequence[Run]) -> Table:
    """The two scenarios with a right answer and something wrong, beside the same requests served well."""
    rows = []
    for odd in (DEAR, SIDE):
        mine, plain = ([run for run in runs if run.scenario == name] for name in (odd.name, odd.task.id))
        rows.append(
            (
                f"{odd.name} ({odd.task.id})",
                f"{sum(run.right for run in mine)} of {len(mine)}",
                f"×{_mean([run.tokens for run in mine]) / _mean([run.tokens for run in plain]):.1f}",
                f"×{_mean([run.tool_calls for run in mine]) / _mean([run.tool_calls for run in plain]):.1f}",
                ", ".join(sorted({check for run in mine for check in run.failed})) or "none",
            )
        )
    return Table(
        title="Right outcome, and yet: beside the same request served well",
        header=("scenario", "right", "tokens", "tool calls", "checks that failed"),
        rows=rows,
        left=frozenset({0, 4}),
    )


def keep(folder: Path, played: Mapping[str, Sequence[Run]]) -> None:
    """One file of JSON lines a condition."""
    folder.mkdir(parents=True, exist_ok=True)
    caps = {one.name: one.step_cap for one in (HEALTHY, *BREAKS)}
    for name, runs in played.items():
        path = folder / f"{re.sub('[^a-z]+', '-', name.lower()).strip('-')}.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for run in runs:
                line = {
                    "task": run.scenario,
                    "trial": run.trial,
                    "passed": run.right and not run.failed,
                    "goal": run.right,
                    "violations": list(run.failed),
                    "tokens": run.tokens,
                    "steps": run.model_calls,
                    "cap": caps[name],
                }
                out.write(f"{json.dumps(line)}\n")
        print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())

"""Playing scenarios under a condition, and what is measured in each run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import orjson
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lab.scenarios import ANSWERS, SCENARIOS, Condition, Scenario
from redfirst.evaluators.check import Check, default_checks, judge
from redfirst.evaluators.otlp import decode_traces
from redfirst.evaluators.reading import read_runs
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.verdict import CheckClass, Outcome, Verdict
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


def play(condition: Condition, scenarios: Sequence[Scenario] = SCENARIOS) -> Iterator[Run]:
    """The scenarios under a condition, five runs each, judged by the shop's policy."""
    rules = resources.files("redfirst.examples.bookshop") / "rules.yaml"
    checks = (*default_checks(), *load_rules(rules.read_text("utf-8"), "rules.yaml"))
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    configure(provider=provider)
    try:
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

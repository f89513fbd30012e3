"""What a run cost, out of the spans of its model calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redfirst.evaluators.dialects.costs import cost_of
from redfirst.evaluators.otlp import decode
from redfirst.evaluators.reading import read_runs


def run_of(*costs: float | None) -> Any:
    """A run of one agent with a model call for each cost."""
    spans: list[dict[str, Any]] = [_span(1, "invoke_agent", {})]
    for place, cost in enumerate(costs):
        spans.append(_span(2 + place, "chat", {} if cost is None else {"llm.cost.total": cost}))
    found = decode(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode())
    (run,) = read_runs(found.spans, found.logs)
    return run


def _span(number: int, operation: str, more: dict[str, float]) -> dict[str, Any]:
    attributes = [
        {"key": "gen_ai.operation.name", "value": {"stringValue": operation}},
        *({"key": key, "value": {"doubleValue": value}} for key, value in more.items()),
    ]
    parent = {} if number == 1 else {"parentSpanId": f"{1:016x}"}
    return {
        "traceId": f"{1:032x}",
        "spanId": f"{number:016x}",
        "name": operation,
        "startTimeUnixNano": str(number * 1000),
        "endTimeUnixNano": str(90_000 if number == 1 else number * 1000 + 500),
        "attributes": attributes,
        **parent,
    }


@pytest.mark.parametrize(
    ("costs", "total"), [((0.25, 0.5), 0.75), ((0.25, None), None), ((None,), None), ((), None)]
)
def test_costs_are_summed_over_model_calls(costs: tuple[float | None, ...], total: float | None) -> None:
    """One that does not say leaves the sum unknown."""
    assert run_of(*costs).cost_usd == total


@pytest.mark.parametrize(
    ("attributes", "cost"),
    [
        ({"operation.cost": 0.5}, 0.5),
        ({"gen_ai.usage.cost": 1}, 1.0),
        ({"langfuse.observation.cost_details": '{"input": 0.1, "total": 0.25}'}, 0.25),
        ({"mlflow.llm.cost": '{"total_cost": 0.25}'}, 0.25),
        ({"llm.cost.total": "0.5"}, None),
        ({"llm.cost.total": True}, None),
        ({"llm.cost.total": -1.0}, None),
        ({"llm.cost.total": float("nan")}, None),
        ({"mlflow.llm.cost": "[]"}, None),
        ({}, None),
    ],
)
def test_a_cost_in_the_words_of_each_dialect(attributes: dict[str, object], cost: float | None) -> None:
    """An amount that is none is not guessed."""
    assert cost_of(attributes) == cost

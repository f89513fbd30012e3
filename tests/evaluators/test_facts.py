"""Facts: established by any tool that tells them, before the answer, and never guessed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import (
    CheckClass,
    ConfigurationError,
    Message,
    ModelCall,
    Outcome,
    RequestedCall,
    ToolCall,
    Trajectory,
    Verdict,
)
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import ROOT, a_run, call

P, F, I, N = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE  # noqa: E741 - a table

PRICE = {
    "id": "price-of-F2",
    "from_any": [
        {"tool": "search_flights", "path": "result.F2.price", "equals": 120},
        {"tool": "get_schedule", "path": "result.fare", "must": {"gt": 100, "lt": 130}},
    ],
}
SEEN = {"id": "seat", "from_any": [{"tool": "get_seats", "path": "result.0", "must": {"exists": True}}]}


def facts(run: Trajectory, *asked: object, **how: Any) -> Verdict:
    """The verdict on these facts."""
    (found,) = judge(run, [check_from_spec({"kind": "recall.facts", "id": "f", "facts": list(asked), **how})])
    return found


def search(price: object, **how: Any) -> ToolCall:
    return call("search_flights", result={"F2": {"price": price}}, **how)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([search("120.00")], P),
        ([call("get_schedule", result={"fare": 125})], P),
        ([search(90), call("get_schedule", result={"fare": 125})], P),
        ([search(90)], F),
        ([], F),
        ([call("look", result={"F2": {"price": 120}})], F),
        ([call("search_flights", status="tool_error")], F),
        ([call("search_flights", status="unknown", result={"F2": {"price": 120}})], I),
        ([call("search_flights", result={})], I),
    ],
)
def test_any_tool_may_tell_a_fact(calls: list[ToolCall], outcome: Outcome) -> None:
    """Tools are interchangeable; only a success with the value counts, and an absent value is unknown."""
    assert facts(a_run(*calls), PRICE).outcome is outcome


def test_facts_are_counted() -> None:
    """Facts established ÷ facts that could be judged; the subject is the fact, the absence points at the root."""
    run = a_run(search(120), call("get_seats", result=[]))
    one = facts(run, PRICE, SEEN)

    assert (one.outcome, one.numerator, one.denominator) == (F, 1, 2)
    assert [finding.subject for finding in one.findings] == ["seat"]
    assert [item.span_id for item in one.evidence] == [ROOT, "0000000000000002"]
    assert one.because.endswith("(result.0 is present); get_seats told something else")
    assert (facts(a_run(search(120)), PRICE).score, facts(a_run(search(120)), PRICE).check_class) == (
        1.0,
        CheckClass.GOAL,
    )
    partly = facts(a_run(call("search_flights", result={})), PRICE, SEEN)
    assert (partly.outcome, partly.numerator, partly.denominator) == (F, 0, 1)
    assert partly.because.endswith("; 1 more could not be told")


def answered(run: Trajectory, start: int, index: int = 9) -> Trajectory:
    """The run with a model call that answered, begun at this time, and one before and after that did not answer."""
    asks = Message(role="assistant", content="look", tool_calls=(RequestedCall(name="search_flights"),))
    models = (
        ModelCall(index=0, span_id="m0", output=asks),
        ModelCall(index=index, span_id="m1", output=Message(role="assistant", content="120"), start_ns=start),
        ModelCall(index=index + 1, span_id="m2"),
    )
    return replace(run, model_calls=models)


def test_a_fact_comes_before_the_answer() -> None:
    """What was read while or after the answer was written did not inform it; without times the turns tell."""
    run = a_run(search(120, at=(100, 200)))

    assert facts(answered(run, 200), PRICE).outcome is P
    late = facts(answered(run, 199), PRICE)
    assert (late.outcome, "told only after the answer began" in late.because) == (F, True)
    assert facts(answered(run, 0), PRICE).outcome is P
    assert facts(answered(run, 0, index=0), PRICE).outcome is F
    turnless = replace(run, tool_calls=(replace(run.tool_calls[0], turn=None),))
    assert facts(answered(turnless, 0), PRICE).outcome is I


@pytest.mark.parametrize("how", [{"complete": False}, {"missing": ["tool_calls"]}])
def test_where_calls_may_be_missing_no_fact_is(how: dict[str, Any]) -> None:
    """Neither that it was not established, nor that all were."""
    assert facts(a_run(**how), PRICE).outcome is I
    assert facts(a_run(search(120), **how), PRICE).outcome is I


def test_a_task_asks_for_facts_of_its_own_runs() -> None:
    """Beside required calls or a reference, or alone."""
    text = """
schema: redfirst.rules/1
tasks:
  - id: quote
    when: {request: {matches: price}}
    required_calls: [search_flights]
    facts: [{id: price, from_any: [{tool: search_flights, path: result.price, equals: 120}]}]
"""
    checks = load_rules(text, "r.yaml")

    assert [check.id for check in checks] == ["recall:quote", "recall.facts:quote"]
    assert judge(a_run(request="what price?"), checks)[1].outcome is F
    assert judge(a_run(request="cancel"), checks)[1].outcome is N


def test_a_way_to_learn_a_fact_says_what_is_told() -> None:
    """Either a value or a condition."""
    with pytest.raises(ConfigurationError, match="give either equals"):
        facts(a_run(), {"id": "f", "from_any": [{"tool": "a", "path": "result.x"}]})
    with pytest.raises(ConfigurationError, match="does not begin with one of"):
        facts(a_run(), {"id": "f", "from_any": [{"tool": "a", "path": "x", "equals": 1}]})

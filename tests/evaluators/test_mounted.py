"""What other libraries' evaluators are given, and what is made of their answers. The libraries themselves are mounted
in ``tests/frameworks``."""

import sys
from types import ModuleType
from typing import Any

import pytest

from redfirst.evaluators import MISSING, Outcome
from redfirst.evaluators.mounted import agentevals, chat_messages
from redfirst.evaluators.testing import a_run, call


def test_a_run_as_messages() -> None:
    """Calls of one turn stand in one message, each with its result or its error after it."""
    run = a_run(
        call("get", id="A-1", result={"n": 1}, turn=0),
        call("get", id="A-2", status="tool_error", error="no such order", result=MISSING, turn=0),
        call("pay", id="A-1", result="paid", turn=1),
    )
    messages = chat_messages(run)

    assert [one["role"] for one in messages] == [
        *("user", "assistant", "tool", "tool", "assistant", "tool", "assistant"),
    ]
    asked = [one["function"] for one in messages[1]["tool_calls"]]
    assert asked == [{"name": "get", "arguments": f'{{"id": "A-{n}"}}'} for n in (1, 2)]
    assert [messages[n]["content"] for n in (0, 2, 3, 5, 6)] == [
        "please",
        '{"n": 1}',
        "no such order",
        "paid",
        "done",
    ]
    assert messages[2]["tool_call_id"] == messages[1]["tool_calls"][0]["id"]


@pytest.mark.parametrize(
    ("score", "at_least", "outcome"),
    [
        (True, None, Outcome.PASSED),
        (False, None, Outcome.FAILED),
        (0.7, 0.7, Outcome.PASSED),
        (0.6, 0.7, Outcome.FAILED),
        (0.6, None, Outcome.INCONCLUSIVE),
        (None, 0.5, Outcome.INCONCLUSIVE),
    ],
)
def test_what_is_made_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, score: object, at_least: float | None, outcome: Outcome
) -> None:
    """True passes, a number needs its limit, anything else is no answer; the evaluator's words are kept."""
    module: Any = ModuleType("an_evaluator")
    module.make = lambda **arguments: lambda **given: {"key": "match", "score": score, "comment": "so so"}
    monkeypatch.setitem(sys.modules, "an_evaluator", module)
    verdict = agentevals(a_run(call("x")), evaluator="an_evaluator:make", reference=[], at_least=at_least)

    assert verdict.outcome is outcome
    if outcome is Outcome.FAILED:
        assert verdict.because == f"match says {score}: so so"
        assert [finding.subject for finding in verdict.findings] == ["match"]


def test_calls_that_may_be_missing_are_not_compared() -> None:
    """A trajectory that lacks spans matches nothing and mismatches nothing."""
    run = a_run(call("x"), complete=False)

    assert agentevals(run, evaluator="a:b", reference=[]).outcome is Outcome.INCONCLUSIVE

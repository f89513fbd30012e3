"""What passing runs have in common: counted, said with its support, and never more than a note."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import ConfigurationError, Outcome, Severity, ToolCall, Trajectory, Verdict
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.reference.learned import Support, learn, learned_data, signature_of
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.strict_yaml import dump
from redfirst.evaluators.testing import a_run, call

P, F, I, N = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE  # noqa: E741 - a table
G, C, X = call("get_order"), call("cancel_order"), call("delete_order")
ASKED = "Cancel my order A-7, please."


def cancelling(
    *calls: ToolCall, request: str | None = "Cancel my order B-12 please!", **how: Any
) -> Trajectory:
    return a_run(*calls, request=request, **how)


PASSING = [
    *(cancelling(G, C, request=f"cancel my order A-{n} please") for n in range(38)),
    cancelling(G, G, C),
    cancelling(C),
]
"""40 passing runs: 39 called get_order, one of them twice; all called cancel_order."""


def verdicts(run: Trajectory, passing: list[Trajectory] = PASSING, **how: Any) -> list[Verdict]:
    """The two checks by what was learned, from the text of a rules file."""
    learned = {**learned_data(learn(passing, how.get("by", "request")), how.get("by", "request")), **how}
    return list(
        judge(run, load_rules(dump({"schema": "redfirst.rules/1", "learned": learned}), "learned.yaml"))
    )


@pytest.mark.parametrize(
    ("request_text", "signature"),
    [
        ("Cancel my order A-7, please.", "cancel my order # please"),
        ("cancel  my order\nB-12 please!", "cancel my order # please"),
        ('Send "hello there" to ann@example.org', "send # to #"),
        ("see https://shop.example/x?y=z now", "see # now"),
        ("¡Größe ändern!", "größe ändern"),
        ("…", "no words"),
        ("a " * 500, ("a " * 100)),
    ],
)
def test_requests_of_one_kind_differ_in_values_alone(request_text: str, signature: str) -> None:
    """Identifiers, numbers, addresses and quoted words are left out; case and punctuation too."""
    assert signature_of(a_run(request=request_text), "request") == signature


def test_the_first_tools_may_be_the_kind() -> None:
    """Where requests are free text."""
    assert signature_of(a_run(G, C, X), "first_tools") == "get_order, cancel_order"
    assert signature_of(a_run(), "first_tools") == "no tool"
    assert signature_of(a_run(G, complete=False), "first_tools") is None
    assert signature_of(a_run(request=None), "request") is None


def test_support_counts_runs_not_calls() -> None:
    """How many runs called a tool at least once, at least twice; runs that lack something teach nothing."""
    more = [
        cancelling(X, complete=False),
        cancelling(X, missing=["tool_calls[0].name"]),
        cancelling(X, request=None),
        cancelling(call("get_order", status="tool_error"), G, C),
    ]

    assert learn([*PASSING, *more]) == {
        "cancel my order # please": Support(41, {"cancel_order": (41,), "get_order": (40, 1)})
    }


def test_a_habit_that_a_run_lacks_is_a_note_with_its_support() -> None:
    """39 of 40 passing runs called get_order; one run did so twice, which makes no habit."""
    recall, selection = verdicts(cancelling(C))

    assert (recall.outcome, recall.numerator, recall.denominator) == (F, 1, 2)
    assert (recall.severity, recall.flags) == (Severity.NOTE, False)
    assert recall.because == (
        "get_order succeeded 0 time(s); in 39 of 40 passing runs of this kind it did so at least 1 time(s)"
    )
    assert selection.outcome is P
    assert [one.outcome for one in verdicts(cancelling(G, C))] == [P, P]
    assert verdicts(cancelling(C), share=0.99)[0].outcome is P


def test_a_tool_that_no_passing_run_called_is_a_note() -> None:
    """It says of how many runs that is known."""
    _, selection = verdicts(cancelling(G, X, C))

    assert (selection.outcome, selection.numerator, selection.denominator) == (F, 2, 3)
    assert selection.because == "delete_order: none of 40 passing runs of this kind called delete_order"
    assert [finding.subject for finding in selection.findings] == ["delete_order"]


def test_two_calls_may_be_the_habit() -> None:
    """A multiset: what passing runs do twice is asked for twice."""
    recall, _ = verdicts(cancelling(G, C), [cancelling(G, G, C)] * 20)

    assert (recall.outcome, recall.numerator, recall.denominator) == (F, 2, 3)


def test_too_little_support_judges_nothing() -> None:
    """Other kinds of task, or fewer passing runs than are asked for."""
    for run, why in (
        (a_run(request="refund"), "nothing was learned"),
        (cancelling(C), "only 3 passing run(s)"),
    ):
        found = verdicts(run, PASSING[:3])
        assert [one.outcome for one in found] == [N, N]
        assert all(why in one.because for one in found)
    assert verdicts(cancelling(C), PASSING[:3], runs_at_least=3)[0].outcome is F
    assert verdicts(cancelling(C), [cancelling()] * 20)[0].outcome is N
    assert verdicts(cancelling())[1].outcome is N


def test_what_was_not_recorded_is_no_missing_habit() -> None:
    """A request, an ending, a name, or spans."""
    unread = verdicts(cancelling(G, C, request=None))
    assert [one.because for one in unread] == [
        "the kind of task cannot be told: the request was not recorded"
    ] * 2
    assert verdicts(cancelling(C, call("get_order", status="unknown")))[0].outcome is I
    nameless = verdicts(cancelling(call("span"), C, missing=["tool_calls[0].name"]))
    assert [one.outcome for one in nameless] == [I, I]
    assert [one.outcome for one in verdicts(cancelling(C, complete=False))] == [I, I]
    assert [one.outcome for one in verdicts(a_run(request="refund", complete=False))] == [I, I]
    assert [one.outcome for one in verdicts(cancelling(C, complete=False), PASSING[:3])] == [I, I]
    assert verdicts(cancelling(X, complete=False))[1].outcome is F
    (first, _) = verdicts(cancelling(C, complete=False), [a_run(G, C)] * 20, by="first_tools")
    assert first.because == "the kind of task cannot be told: the trace is incomplete"


@pytest.mark.parametrize(
    ("signatures", "what"),
    [
        ("[]", "signatures: expected a list of at least one signature"),
        ("[{signature: s, runs: 4, tools: [a]}]", "tools: expected lists of whole numbers by tool"),
        ("[{signature: s, runs: 4, tools: {a: 4}}]", "tools: expected lists of whole numbers by tool"),
        ("[{signature: s, runs: 4, tools: {a: [5]}}]", "none above the one before"),
        ("[{signature: s, runs: 4, tools: {a: [2, 3]}}]", "none above the one before"),
        ("[{signature: s, runs: 4, tools: {a: [2, 0]}}]", "none above the one before"),
        ("[{signature: s, runs: 4, tools: {}}, {signature: s, runs: 4, tools: {}}]", "stands twice"),
    ],
)
def test_what_cannot_have_been_learned_is_refused(signatures: str, what: str) -> None:
    """With its line."""
    with pytest.raises(ConfigurationError, match=r"^l\.yaml:2: ") as caught:
        load_rules(f"schema: redfirst.rules/1\nlearned: {{signatures: {signatures}}}", "l.yaml")

    assert what in str(caught.value)


runs = st.lists(st.sampled_from([G, C, X, call("get_order", status="tool_error")]), max_size=4)


@given(st.lists(runs, min_size=1, max_size=6))
@settings(deadline=None)
def test_each_passing_run_is_within_what_was_learned_of_all(made: list[list[ToolCall]]) -> None:
    """No tool that succeeded in a passing run is foreign; a habit of every run is none that one of them lacks."""
    passing = [cancelling(*calls) for calls in made]
    learned = {**learned_data(learn(passing)), "share": 1.0, "runs_at_least": 1}

    (support,) = learn(passing).values()
    assert support.runs == len(passing)
    for counts in support.tools.values():
        assert list(counts) == sorted(counts, reverse=True)
    for run in passing:
        spec = {"kind": "learned.recall", "id": "l", "learned": learned}
        assert judge(run, [check_from_spec(spec)])[0].outcome is not F

"""Runs beside acceptable trajectories: the published definitions, the match modes, order, choice, missing evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import (
    CheckClass,
    ConfigurationError,
    Outcome,
    ToolCall,
    Trajectory,
    Verdict,
    flagged,
)
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.reference import in_order
from redfirst.evaluators.reference.checks import QUESTIONS
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import ROOT, a_run, call

P, F, I, N = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE  # noqa: E741 - a table

FLIGHT = load_rules(
    """
schema: redfirst.rules/1
tasks:
  - id: flight
    when: {request: {matches: please}}
    reference:
      steps: [lookup_user, search_flights, {tool: book_flight, args: {flight: F2}}]
    state: {required: [{path: booking, equals: F2}]}
""",
    "flight.yaml",
)


def verdict(kind: str, run: Trajectory, *steps: object, **reference: Any) -> Verdict:
    """The verdict of one check beside a reference of these steps."""
    given = {"steps": list(steps), **reference} if steps else reference
    (found,) = judge(run, [check_from_spec({"kind": kind, "id": "one", "reference": given})])
    return found


def match(mode: str, run: Trajectory, *steps: object, **reference: Any) -> Verdict:
    """The verdict of a match mode."""
    return verdict("match", run, *steps, match=mode, **reference)


def of(found: Verdict) -> tuple[Outcome, int | None, int | None]:
    """Outcome, numerator and denominator."""
    return found.outcome, found.numerator, found.denominator


def subjects(found: Verdict) -> list[str]:
    """The subjects of the findings."""
    return [finding.subject for finding in found.findings]


# The four runs that the definitions are explained by: what the ratios say, and what they cannot say alone.

LOOKUP, SEARCH = call("lookup_user", user="u1"), call("search_flights", to="OSL")
BOOK = call("book_flight", flight="F2")
FOUR: dict[str, tuple[list[ToolCall], str | None]] = {
    "A": ([LOOKUP, SEARCH, BOOK], "F2"),
    "B": ([LOOKUP, SEARCH, SEARCH, LOOKUP, SEARCH, BOOK], "F2"),
    "C": ([LOOKUP, call("search_hotels", to="OSL"), call("book_hotel", hotel="H1")], None),
    "D": ([LOOKUP, SEARCH, call("book_flight", flight="F9")], "F9"),
}


@pytest.mark.parametrize(
    ("name", "selection", "efficiency", "arguments", "recall", "precision", "passes"),
    [
        ("A", (3, 3), (3, 3), (3, 3), (3, 3), (3, 3), True),
        ("B", (6, 6), (3, 6), (6, 6), (3, 3), (3, 6), True),
        ("C", (1, 3), (3, 3), (1, 1), (1, 3), (1, 3), False),
        ("D", (3, 3), (3, 3), (2, 3), (3, 3), (3, 3), False),
    ],
)
def test_the_four_runs(
    name: str,
    selection: tuple[int, int],
    efficiency: tuple[int, int],
    arguments: tuple[int, int],
    recall: tuple[int, int],
    precision: tuple[int, int],
    passes: bool,
) -> None:
    """A 1/1/1; B efficiency .5; C selection .333, efficiency and arguments 1.0; D selection 1.0, arguments .667."""
    calls, booked = FOUR[name]
    verdicts = judge(a_run(*calls, states=[{"booking": None}, {"booking": booked}]), FLIGHT)
    found = {one.check.removesuffix(":flight"): one for one in verdicts}

    def ratio(check: str) -> tuple[int | None, int | None]:
        one = found[check]
        assert one.numerator is not None
        assert one.denominator is not None
        assert one.score == one.numerator / one.denominator
        return one.numerator, one.denominator

    assert ratio("tool_selection") == selection
    assert ratio("efficiency") == efficiency
    assert ratio("argument_validity") == arguments
    assert ratio("recall") == recall
    assert ratio("precision") == precision
    assert (not flagged(verdicts)) is passes
    assert (found["match"].outcome is P) is passes
    assert (found["state.required"].outcome is P) is passes


def test_class_and_severity_of_each_check() -> None:
    """Recall is a goal; recall and the mode flag; ratios are notes, or less where the task is."""
    text = "schema: redfirst.rules/1\ntasks:\n- {id: t, when: {agent: a}, severity: SEVERITY, reference: {steps: [a]}}"
    checks = {check.id: check for check in load_rules(text.replace("SEVERITY", "page"), "r")}

    assert {check.removesuffix(":t") for check in checks} == set(QUESTIONS)
    assert [name for name, check in checks.items() if check.check_class is CheckClass.GOAL] == ["recall:t"]
    assert {name: check.severity.name for name, check in checks.items()} == {
        **{f"{kind}:t": "NOTE" for kind in QUESTIONS},
        "recall:t": "PAGE",
        "match:t": "PAGE",
    }
    info = load_rules(text.replace("SEVERITY", "info"), "r")
    assert {check.severity.name for check in info} == {"INFO"}


A, B, C, X = call("a"), call("b"), call("c"), call("x")


@pytest.mark.parametrize(
    ("calls", "strict", "unordered", "subset", "superset"),
    [
        ([A, B], (P, 4, 4), (P, 4, 4), (P, 2, 2), (P, 2, 2)),
        ([B, A], (F, 2, 4), (P, 4, 4), (P, 2, 2), (P, 2, 2)),
        ([A], (F, 2, 3), (F, 2, 3), (P, 1, 1), (F, 1, 2)),
        ([A, B, X], (F, 4, 5), (F, 4, 5), (F, 2, 3), (P, 2, 2)),
        ([A, A, B], (F, 4, 5), (F, 4, 5), (F, 2, 3), (P, 2, 2)),
        ([X], (F, 0, 3), (F, 0, 3), (F, 0, 1), (F, 0, 2)),
        ([], (F, 0, 2), (F, 0, 2), (N, None, None), (F, 0, 2)),
    ],
)
def test_the_four_modes(
    calls: list[ToolCall], strict: object, unordered: object, subset: object, superset: object
) -> None:
    """Of a, then b: what each mode accepts, and its score."""
    run = a_run(*calls)

    for mode, expected in zip(
        ("strict", "unordered", "subset", "superset"), (strict, unordered, subset, superset), strict=True
    ):
        assert of(match(mode, run, "a", "b")) == expected, mode


def test_strict_means_the_order_of_decisions() -> None:
    """Two calls of one turn were decided together: neither came first, unless execution is what counts."""
    together = a_run(replace(A, turn=0), replace(B, turn=0))

    assert match("strict", together, "a", "b").outcome is F
    assert match("strict", together, {"unordered": ["a", "b"]}).outcome is P
    assert match("strict", together, "a", "b", order="executed").outcome is P
    assert (
        match("strict", a_run(replace(B, turn=0), replace(A, turn=0)), "a", "b", order="executed").outcome
        is F
    )


def test_strict_compares_arguments() -> None:
    """A reordering within a message, or another amount, is another trajectory."""
    steps = ({"tool": "refund", "args": {"amount": 500}},)

    assert match("strict", a_run(call("refund", amount=500)), *steps).outcome is P
    wrong = match("strict", a_run(call("refund", amount=50)), *steps)
    assert (of(wrong), subjects(wrong)) == ((F, 0, 2), ["refund|amount"])
    assert "amount is 50, not 500" in wrong.because
    assert [item.pointer for item in wrong.evidence] == ["/tool_calls/0/arguments/amount"]


def test_nothing_against_nothing_is_no_pass() -> None:
    """0/0 is not applicable in every mode and ratio, and a reference without a step is refused."""
    optional = {"tool": "a", "optional": True}
    for mode in ("strict", "unordered", "subset", "superset"):
        assert match(mode, a_run(), optional).outcome is N
    for kind in QUESTIONS:
        assert verdict(kind, a_run(), optional).outcome is N
    with pytest.raises(ConfigurationError, match="steps: expected a list of at least one step"):
        verdict("match", a_run(), steps=[])


def test_repeated_calls_are_counted_not_collected() -> None:
    """Two equal refunds are required and made twice: all of it. Three where one was expected: two too many."""
    refund = {"tool": "refund", "args": {"order": "A-7"}}
    made = call("refund", order="A-7")

    assert of(match("unordered", a_run(made, made), refund, refund)) == (P, 4, 4)
    assert of(verdict("recall", a_run(made), refund, refund)) == (F, 1, 2)
    assert of(verdict("precision", a_run(made, made, made), refund)) == (F, 1, 3)
    assert subjects(match("strict", a_run(made, made, made), refund)) == ["refund", "refund"]


def test_matching_is_not_greedy() -> None:
    """A wildcard step leaves the only fitting call to the step that has no other."""
    anything, seven = {"tool": "a"}, {"tool": "a", "args": {"x": 7}}
    run = a_run(call("a", x=7), call("a", x=1))

    assert match("superset", run, anything, seven).outcome is P
    assert match("unordered", run, anything, seven).outcome is P


def test_the_call_left_over_is_the_wrong_one() -> None:
    """Of two searches where one is asked for, the one with the wrong date is the surplus, whichever came first."""
    step = {"tool": "search", "args": {"date": "2026-12-01"}}
    wrong, right = call("search", date="2026-01-12"), call("search", date="2026-12-01")

    for calls, place in (([wrong, right], 0), ([right, wrong], 1)):
        found = verdict("precision", a_run(*calls), step)
        assert [item.pointer for item in found.evidence] == [f"/tool_calls/{place}"]
        needless = verdict("efficiency", a_run(*calls), step)
        assert [item.pointer for item in needless.evidence] == [f"/tool_calls/{place}"]


def test_alternatives_and_optional_steps() -> None:
    """Any tool of a step will do; an optional step may be made and need not be."""
    steps = ("a", ["b", "c"], {"tool": "x", "optional": True})

    for calls in ([A, B], [A, C], [A, C, X]):
        assert match("strict", a_run(*calls), *steps).outcome is P
        assert verdict("precision", a_run(*calls), *steps).outcome is P
        assert of(verdict("recall", a_run(*calls), *steps)) == (P, 2, 2)
    assert match("strict", a_run(X, A, C), *steps).outcome is F
    assert match("strict", a_run(A, B, C), *steps).outcome is F
    assert of(verdict("efficiency", a_run(A, C, X), *steps)) == (P, 2, 3)
    assert of(verdict("efficiency", a_run(A, C, X, X), *steps)) == (F, 2, 4)


def test_one_call_too_many_where_another_is_missing_is_efficient() -> None:
    """Efficiency counts calls: where a required one was not made, another in its place costs nothing."""
    assert of(verdict("efficiency", a_run(A, X), "a", "b")) == (P, 2, 2)
    found = verdict("efficiency", a_run(A, X, X), "a", "b")
    assert (of(found), subjects(found)) == ((F, 2, 3), ["x", "x"])


def test_optional_steps_in_order_do_not_hide_required_ones() -> None:
    """Of an optional and a required step of one tool the one call serves the required."""
    optional = {"tool": "a", "optional": True}

    assert match("strict", a_run(A, B), optional, "a", "b").outcome is P
    assert match("unordered", a_run(A, B), optional, "a", "b").outcome is P


DIAMOND = (
    {"tool": "a", "id": "first"},
    {"tool": "b", "id": "left", "after": "first"},
    {"tool": "c", "id": "right", "after": ["first"]},
    {"tool": "d", "after": ["left", "right"]},
)


@pytest.mark.parametrize("mode", ["strict", "unordered", "subset", "superset"])
@pytest.mark.parametrize(
    ("names", "fits"), [("abcd", True), ("acbd", True), ("bacd", False), ("abdc", False)]
)
def test_a_partial_order_is_kept_in_every_mode(mode: str, names: str, fits: bool) -> None:
    """``after`` is an edge, not a place in the list."""
    found = match(mode, a_run(*(call(name) for name in names)), *DIAMOND)

    assert found.outcome is (P if fits else F)
    if not fits:
        assert "did not come after" in found.because


def test_after_holds_through_a_step_that_was_not_made() -> None:
    """The order is transitive: an optional step between two others does not loosen it."""
    steps = (
        {"tool": "a", "id": "one"},
        {"tool": "x", "optional": True, "id": "two", "after": "one"},
        {"tool": "b", "after": "two"},
    )

    assert match("superset", a_run(A, B), *steps).outcome is P
    assert match("superset", a_run(B, A), *steps).outcome is F


def test_a_later_call_of_the_tool_may_keep_the_order() -> None:
    """b before a, and b again after it: some b came after a."""
    steps = ({"tool": "a", "id": "one"}, {"tool": "b", "after": "one"})

    assert match("superset", a_run(B, A, B), *steps).outcome is P
    assert match("superset", a_run(B, replace(A, turn=7), replace(B, turn=7)), *steps).outcome is F


def test_steps_in_a_group_may_be_made_in_one_turn() -> None:
    """Unordered groups stand between what is listed before and after them."""
    steps = ("a", {"unordered": ["b", {"unordered": ["c"]}]}, "x")
    parallel = [replace(B, turn=1), replace(C, turn=1)]

    assert match("strict", a_run(A, *parallel, X), *steps).outcome is P
    assert match("strict", a_run(A, C, B, X), *steps).outcome is P
    assert match("strict", a_run(A, C, X, B), *steps).outcome is F


def test_a_search_that_is_given_up_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many ways to try is neither a pass nor a failure."""
    steps = ({"tool": "a", "id": "one"}, {"tool": "b", "after": "one"})
    run = a_run(B, replace(A, turn=7), replace(B, turn=7))
    monkeypatch.setattr("redfirst.evaluators.reference.table.in_part", lambda *_: None)

    found = match("superset", run, *steps)
    assert (found.outcome, "given up" in found.because) == (I, True)
    assert in_order.MOST_NODES > 0


def test_the_closest_acceptable_trajectory_is_the_one_that_counts() -> None:
    """What one accepts the run did, though it is nearer to another; all checks speak of the same one."""
    accepted = [["a"], ["a", "b", "c"]]
    run = a_run(A, B, X, X, X)

    assert match("superset", run, any_of=accepted).because == (
        "the run is acceptable (superset) (beside acceptable trajectory 1)"
    )
    assert of(verdict("recall", run, any_of=accepted)) == (P, 1, 1)
    assert of(verdict("recall", run, any_of=accepted, match="strict")) == (P, 1, 1)
    assert of(verdict("recall", a_run(A, B, C), any_of=accepted, match="strict")) == (P, 3, 3)
    assert of(verdict("efficiency", a_run(A, B, C), any_of=accepted, match="unordered")) == (P, 3, 3)
    assert of(verdict("recall", a_run(B, C), any_of=accepted)) == (F, 2, 3)
    equal = verdict("tool_selection", a_run(X), any_of=[["a"], ["b"]])
    assert equal.because.endswith("(beside acceptable trajectory 1)")


def test_where_evidence_is_missing_the_trajectories_must_agree() -> None:
    """A tool that one trajectory allows is no fault of a run that may have taken it."""
    accepted = [[{"tool": "a", "args": {"x": 1}}], [{"tool": "a", "args": {"x": 2}}, "b"]]
    blind = call("a", args=None)

    assert verdict("tool_selection", a_run(blind, B), any_of=accepted).outcome is I
    assert verdict("tool_selection", a_run(blind, X), any_of=accepted).outcome is F
    assert verdict("recall", a_run(complete=False), any_of=accepted).outcome is I
    assert "disagree" in verdict("tool_selection", a_run(blind, B), any_of=accepted).because


@pytest.mark.parametrize(
    ("matcher", "given", "outcome"),
    [
        ("F2", "F2", P),
        ("F2", "F9", F),
        ({"eq": 120}, "120.00", P),
        (7, "seven", F),
        (True, 1, F),
        ({"in": ["F2", "F3"]}, "F3", P),
        ({"in": ["F2", "F3"]}, 3, F),
        ({"matches": "^F"}, "F7", P),
        ({"matches": "^F"}, 7, F),
        ({"matches": "^F"}, "F" * 20_000, I),
        ({"approx": {"to": 100, "abs": 0.5}}, 100.5, P),
        ({"approx": {"to": 100, "abs": 0.5}}, "100.51", F),
        ({"approx": {"to": -200, "rel": 0.01}}, -198, P),
        ({"approx": {"to": -200, "rel": 0.01}}, -197.9, F),
        ({"approx": {"to": 10, "abs": 1, "rel": 0.5}}, 15, P),
        ({"approx": {"to": 10, "abs": 1}, "ge": 10}, 9.5, F),
        ({"approx": {"to": 10, "abs": 1}}, "ten", F),
        ({"eq": ["a", ["b"]]}, ["a", ["b"]], P),
        ({"eq": ["a", ["b"]]}, ["a", ["c"]], F),
        ({"eq": [1]}, [True], F),
        ({"eq": [1]}, ["1.0"], P),
        ({"exists": True}, None, P),
        ({"exists": True}, "anything", P),
        (None, None, P),
        (None, 0, F),
    ],
)
def test_arguments_were_read_so_another_type_is_wrong(
    matcher: object, given: object, outcome: Outcome
) -> None:
    """Only what was not recorded, or is too long for a pattern, is unknown."""
    step = {"tool": "pay", "args": {"x": matcher}}

    assert verdict("argument_validity", a_run(call("pay", x=given)), step).outcome is outcome
    assert match("superset", a_run(call("pay", x=given)), step).outcome is outcome


def test_absent_arguments_and_those_not_asked_for() -> None:
    """An absent argument is wrong unless it must be absent; ``only`` forbids others, but nulls and request ids."""
    step = {"tool": "pay", "args": {"x": 1, "note": {"exists": False}}}
    only = {"tool": "pay", "args": {"x": 1}, "only": True}

    assert verdict("argument_validity", a_run(call("pay", x=1, y=2)), step).outcome is P
    absent = verdict("argument_validity", a_run(call("pay", y=2)), step)
    assert absent.because == "pay (y 2): x is absent, not 1"
    assert verdict("argument_validity", a_run(call("pay", x=1, note="n")), step).outcome is F
    assert verdict("argument_validity", a_run(call("pay", x=1, y=None, request_id="r")), only).outcome is P
    surplus = verdict("argument_validity", a_run(call("pay", x=1, y=2)), only)
    assert (surplus.because, subjects(surplus)) == ("pay (x 1, y 2): y is not asked for", ["pay|y"])


def test_paths_into_arguments() -> None:
    """Matchers reach into objects; what lies in a text that was cut cannot be told."""
    step = {"tool": "book", "args": {"passengers.0.name": "Ann"}}

    assert verdict("argument_validity", a_run(call("book", passengers=[{"name": "Ann"}])), step).outcome is P
    wrong = verdict("argument_validity", a_run(call("book", passengers=[{"name": "Bo"}])), step)
    assert [item.pointer for item in wrong.evidence] == ["/tool_calls/0/arguments/passengers/0/name"]
    assert verdict("argument_validity", a_run(call("book", passengers="[…")), step).outcome is I


def test_the_nearest_step_explains_an_invalid_call() -> None:
    """Two steps of one tool: the complaint is the one with fewer faults."""
    one = {"tool": "pay", "args": {"x": 1, "y": 1}}
    two = {"tool": "pay", "args": {"x": 2, "y": 2}}

    assert "y is 3, not 2" in verdict("argument_validity", a_run(call("pay", x=2, y=3)), one, two).because


def test_missing_evidence_is_inconclusive_where_it_matters() -> None:
    """Arguments, an ending, a name: in neither numerator nor denominator, and never a 0."""
    step = {"tool": "a", "args": {"x": 1}}
    blind, ended = call("a", args=None), call("a", x=1, status="unknown")

    assert verdict("argument_validity", a_run(blind), step).outcome is I
    assert of(verdict("argument_validity", a_run(blind, call("a", x=2)), step)) == (F, 0, 1)
    assert verdict("argument_validity", a_run(ended), step).outcome is P
    assert verdict("recall", a_run(blind), step).outcome is P
    for mode in ("strict", "unordered", "subset", "superset"):
        assert match(mode, a_run(blind), step).outcome is I
        assert match(mode, a_run(ended), step).outcome is I
    assert verdict("precision", a_run(ended), step).outcome is I
    assert of(verdict("precision", a_run(ended, X), step)) == (F, 0, 1)
    assert verdict("efficiency", a_run(ended, ended), step, {"tool": "a", "optional": True}).outcome is I
    untold = match("subset", a_run(blind, X), step)
    assert (of(untold), untold.because.endswith("1 more could not be told")) == ((F, 0, 1), True)


def test_an_unknown_order_is_unknown() -> None:
    """Neither times nor turns: which came first cannot be told."""
    run = a_run(*(replace(one, turn=None, start_ns=0, end_ns=0) for one in (A, B)))
    blind = replace(run, tool_calls=tuple(replace(one, start_ns=0, end_ns=0) for one in run.tool_calls))

    assert match("strict", blind, "a", "b").outcome is I
    assert match("unordered", blind, "a", "b").outcome is P


def test_turns_alone_give_an_order() -> None:
    """Times are missing in traces that were rebuilt from messages."""

    def untimed(*calls: ToolCall) -> Trajectory:
        run = a_run(*calls)
        return replace(run, tool_calls=tuple(replace(one, start_ns=0, end_ns=0) for one in run.tool_calls))

    assert match("strict", untimed(A, B), "a", "b").outcome is P
    assert match("strict", untimed(B, A), "a", "b").outcome is F


def test_a_call_without_a_name_may_be_any() -> None:
    """It is no wrong tool, no surplus and no argument fault."""
    run = a_run(call("span"), missing=["tool_calls[0].name"])

    for kind in ("match", "precision", "tool_selection", "argument_validity", "recall"):
        assert verdict(kind, run, "a").outcome is I, kind
    assert of(verdict("tool_selection", a_run(call("s"), X, missing=["tool_calls[0].name"]), "a")) == (
        F,
        0,
        1,
    )


@pytest.mark.parametrize("how", [{"complete": False}, {"missing": ["tool_calls"]}])
def test_where_calls_may_be_missing_only_what_is_there_is_accused(how: dict[str, Any]) -> None:
    """A surplus call stays one; nothing passes, and no absence is held against the run."""
    for kind in QUESTIONS:
        for calls in ([], [A], [A, B]):
            assert verdict(kind, a_run(*calls, **how), "a", "b").outcome is I, (kind, calls)
    assert verdict("recall", a_run(**how), {"tool": "a", "optional": True}).outcome is I
    assert match("superset", a_run(X, **how), "a").outcome is I
    for mode in ("strict", "unordered", "subset"):
        assert match(mode, a_run(A, X, **how), "a").outcome is F
        assert match(mode, a_run(B, A, **how), "a", "b").outcome is I
    for kind in ("precision", "tool_selection", "efficiency"):
        assert verdict(kind, a_run(A, X, **how), "a").outcome is F


def test_a_retry_is_one_call() -> None:
    """A read that was tried again after a lost connection was made once; the last attempt is the one that counts."""
    lost = call("a", status="infra_error", effect="read", x=1)

    assert of(match("strict", a_run(lost, call("a", effect="read", x=1), B), "a", "b")) == (P, 4, 4)
    assert of(verdict("efficiency", a_run(lost, call("a", effect="read", x=1)), "a")) == (P, 1, 1)
    failed_only = match("strict", a_run(lost), "a")
    assert "ended with infra_error" in failed_only.because
    assert subjects(failed_only) == ["a", "a"]


def test_what_did_not_run_is_no_call_made() -> None:
    """A denied call is neither a step made nor a call too many."""
    denied = call("a", status="denied")

    assert of(verdict("precision", a_run(denied, A), "a")) == (P, 1, 1)
    assert verdict("tool_selection", a_run(denied), "a").outcome is N
    missing = match("superset", a_run(denied), "a")
    assert [item.span_id for item in missing.evidence] == [ROOT]


def test_a_step_that_another_call_used_up_is_named() -> None:
    """One call cannot be two steps."""
    assert "meets another step" in match("superset", a_run(A), "a", "a").because


def test_a_reference_speaks_of_its_own_runs() -> None:
    """Another request is not applicable."""
    spec = {
        "kind": "match",
        "id": "m",
        "when": {"request": {"matches": "cancel"}},
        "reference": {"steps": ["a"]},
    }
    (found,) = judge(a_run(A), [check_from_spec(spec)])

    assert found.outcome is N


@pytest.mark.parametrize(
    ("reference", "what"),
    [
        ("{}", "either steps"),
        ("{steps: [a], any_of: [[a]]}", "either steps"),
        ("{steps: [{args: {x: 1}}]}", "either tool or unordered"),
        ("{steps: [{tool: a, unordered: [b]}]}", "either tool or unordered"),
        ("{steps: [{unordered: [b], optional: true}]}", "unordered stands alone; give optional to"),
        ("{steps: [{tool: a, args: [x]}]}", "args: expected matchers by argument"),
        ("{steps: [{tool: a, args: {x..y: 1}}]}", "'x..y' has an empty part"),
        ("{steps: [{tool: a, args: {x: {near: 1}}}]}", "unknown operator 'near'"),
        ("{steps: [{tool: a, args: {x: {approx: 1}}}]}", "approx takes to, and abs or rel"),
        ("{steps: [{tool: a, args: {x: {approx: {to: 1}}}}]}", "approx takes to, and abs or rel"),
        ("{steps: [{tool: a, args: {x: {approx: {to: a, abs: 1}}}}]}", "to takes a number, as in"),
        ("{steps: [{tool: a, args: {x: {approx: {to: 1, rel: -1}}}}]}", "rel takes a number, 0 or more"),
        ("{steps: [{tool: a, id: i}, {tool: b, id: i}]}", "the same id"),
        ("{steps: [{tool: a, after: i}]}", "after names 'i'"),
        ("{steps: [{tool: a, id: i, after: j}, {tool: b, id: j, after: i}]}", "form a circle"),
        ("{steps: [a], match: exact}", "match: expected strict, unordered, subset or superset"),
        ("{stepz: [a]}", "did you mean steps?"),
    ],
)
def test_a_faulty_reference_is_refused_with_its_line(reference: str, what: str) -> None:
    """What is wrong, on which line, and what to write instead."""
    text = f"schema: redfirst.rules/1\ntasks:\n- id: t\n  when: {{agent: a}}\n  reference: {reference}\n"
    with pytest.raises(ConfigurationError) as caught:
        load_rules(text, "r.yaml")

    assert str(caught.value).startswith("r.yaml:5: ")
    assert what in str(caught.value)


def test_required_calls_and_a_reference_exclude_each_other() -> None:
    """One task has one recall."""
    task = "{id: t, when: {agent: a}, required_calls: [a], reference: {steps: [a]}}"
    with pytest.raises(ConfigurationError, match="make each required call a step"):
        load_rules(f"schema: redfirst.rules/1\ntasks: [{task}]", "r.yaml")
    with pytest.raises(ConfigurationError, match="recall takes either required_calls or reference"):
        check_from_spec({"kind": "recall", "id": "r"})


def test_a_recall_of_required_calls_means_what_it_meant() -> None:
    """What it was not given is no part of its revision."""
    spec = {"kind": "recall", "id": "r", "required_calls": ["a"]}
    other = {"kind": "recall", "id": "r", "reference": {"steps": ["a"]}}

    assert check_from_spec(spec).revision != check_from_spec(other).revision
    assert (
        check_from_spec(other).revision != check_from_spec({**other, "reference": {"steps": ["b"]}}).revision
    )

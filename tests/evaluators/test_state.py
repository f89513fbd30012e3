"""What the run had to change, what it may change, and everything else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.evaluators import Message, Outcome, Severity, Verdict
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.state import required_path
from redfirst.evaluators.state_diff import changes, mentions, parse_pattern
from redfirst.evaluators.testing import a_run, call

BEFORE = {"orders": {"A-1": {"status": "new", "total": "9.00"}, "A-10": {"status": "new"}}}
CANCELLED = {"orders": {"A-1": {"status": "cancelled", "total": "9.00"}, "A-10": {"status": "new"}}}


def required(*states: Any, **item: Any) -> Verdict:
    """The verdict on one required state."""
    spec = {"kind": "state.required", "id": "state.required", "required": [item]}
    return judge(a_run(call("f"), states=states), [check_from_spec(spec)])[0]


def collateral(*states: Any, allowed: list[Any], request: str | None = "cancel A-1", **scope: Any) -> Verdict:
    """The verdict on everything else."""
    spec = {"kind": "state.collateral", "id": "state.collateral", "scopes": [{"allowed": allowed, **scope}]}
    return judge(a_run(call("f"), states=states, request=request), [check_from_spec(spec)])[0]


def test_the_required_state_was_reached() -> None:
    """The last snapshot decides; what was so from the start is as good."""
    assert required(BEFORE, CANCELLED, path="orders.A-1.status", equals="cancelled").outcome is Outcome.PASSED
    assert (
        required(CANCELLED, CANCELLED, path="orders.A-1.status", equals="cancelled").outcome is Outcome.PASSED
    )


@pytest.mark.parametrize(
    ("item", "because"),
    [
        (
            {"path": "orders.A-1.status", "equals": "cancelled"},
            "orders.A-1.status is new at the end, not cancelled",
        ),
        ({"path": "orders.A-2.status", "equals": "new"}, "orders.A-2.status is absent at the end, not new"),
        (
            {"path": "orders.A-1.total", "must": {"gt": 10}},
            "orders.A-1.total is 9.00 at the end, not more than 10",
        ),
        ({"path": "orders.A-1", "must": {"exists": False}}, "not absent"),
    ],
)
def test_a_state_that_was_not_reached_is_the_subject(item: dict[str, Any], because: str) -> None:
    """The finding names the path and what stands there."""
    verdict = required(BEFORE, BEFORE, **item)

    assert verdict.outcome is Outcome.FAILED
    assert because in verdict.because
    assert [finding.subject for finding in verdict.findings] == [item["path"]]
    assert verdict.evidence[0].pointer == "/states/1/state/" + item["path"].replace(".", "/")


def test_part_of_the_required_state_is_counted() -> None:
    """Partial credit stands beside the failure."""
    spec = {
        "kind": "state.required",
        "id": "s",
        "required": [{"path": "a", "equals": 1}, {"path": "b", "equals": 1}],
    }
    (verdict,) = judge(a_run(states=[{}, {"a": 1}]), [check_from_spec(spec)])

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)


def test_without_two_snapshots_nothing_is_known() -> None:
    """No report and one report are inconclusive, each with its reason, for a run that is of a task."""
    when = {"request": {"matches": "cancel"}}
    for verdict in (required(path="a", equals=1), collateral(allowed=[], when=when)):
        assert (verdict.outcome, verdict.because) == (Outcome.INCONCLUSIVE, "the run reported no state")
    assert "only once" in required({"a": 1}, path="a", equals=1).because
    assert "only once" in collateral({"a": 1}, allowed=[]).because


def test_a_path_into_a_text_is_unknown() -> None:
    """A value that was cut to text may hide anything."""
    assert required({}, {"a": "{cut"}, path="a.b", equals=1).outcome is Outcome.INCONCLUSIVE


def test_a_change_nobody_allowed_is_collateral() -> None:
    """It is named by its path, with what it was and became."""
    verdict = collateral(BEFORE, CANCELLED, allowed=[])

    assert verdict.outcome is Outcome.FAILED
    assert [finding.subject for finding in verdict.findings] == ["orders.A-1.status"]
    assert verdict.because == "orders.A-1.status was changed (new → cancelled), which nothing allows"
    assert verdict.evidence[0].note == "was new"


def test_the_evidence_is_the_first_snapshot_with_the_change() -> None:
    """Between start and end there may be many."""
    verdict = collateral(BEFORE, BEFORE, CANCELLED, CANCELLED, allowed=[])

    assert verdict.evidence[0].pointer == "/states/2/state/orders/A-1/status"


@pytest.mark.parametrize(
    ("allowed", "outcome"),
    [
        ({"path": "orders.A-1.status"}, Outcome.PASSED),
        ({"path": "orders.*.status"}, Outcome.PASSED),
        ({"path": "orders.**"}, Outcome.PASSED),
        ({"path": "**"}, Outcome.PASSED),
        ({"path": "orders.A-1.status.**"}, Outcome.PASSED),
        ({"path": "orders.*"}, Outcome.FAILED),
        ({"path": "orders.*.total"}, Outcome.FAILED),
        ({"path": "orders.*.status", "mentioned": True}, Outcome.PASSED),
        ({"path": "orders.*.status", "to": "cancelled"}, Outcome.PASSED),
        ({"path": "orders.*.status", "to": ["open", "cancelled"]}, Outcome.PASSED),
        ({"path": "orders.*.status", "to": ["open"]}, Outcome.FAILED),
    ],
)
def test_a_pattern_allows_changes(allowed: dict[str, Any], outcome: Outcome) -> None:
    """One star is one key, two are the rest; a new value may be named."""
    assert collateral(BEFORE, CANCELLED, allowed=[allowed]).outcome is outcome


def test_only_what_the_user_spoke_of() -> None:
    """A-10 is not A-1; without the words of the user nothing is concluded."""
    allowed = [{"path": "orders.*.status", "mentioned": True}]

    assert collateral(BEFORE, CANCELLED, allowed=allowed, request="cancel A-10").outcome is Outcome.FAILED
    assert collateral(BEFORE, CANCELLED, allowed=allowed, request="cancel a-1.").outcome is Outcome.PASSED
    assert collateral(BEFORE, CANCELLED, allowed=allowed, request=None).outcome is Outcome.INCONCLUSIVE


def test_a_removal_has_no_new_value() -> None:
    """A pattern that names new values allows no removal."""
    verdict = collateral({"a": 1}, {}, allowed=[{"path": "a", "to": [1, 2]}])

    assert verdict.because == "a was removed (1 → absent), which nothing allows"


def test_no_change_passes() -> None:
    """Two equal snapshots are evidence that nothing was changed."""
    assert collateral(BEFORE, BEFORE, allowed=[]).outcome is Outcome.PASSED


def test_many_changes_are_summed_up() -> None:
    """The sentence names three, the findings all."""
    verdict = collateral({}, {str(n): n for n in range(5)}, allowed=[])

    assert (len(verdict.findings), verdict.because.endswith("; …")) == (5, True)
    assert (verdict.numerator, verdict.denominator) == (0, 5)


def test_a_scope_speaks_of_its_own_runs() -> None:
    """Where no scope applies there is nothing to judge; where that is unknown, so is the verdict."""
    when = {"request": {"matches": "refund"}}

    assert collateral(BEFORE, CANCELLED, allowed=[], when=when).outcome is Outcome.NOT_APPLICABLE
    assert collateral(BEFORE, CANCELLED, allowed=[], when=when, request=None).outcome is Outcome.INCONCLUSIVE
    ignored = collateral(
        BEFORE, CANCELLED, allowed=[], collateral="ignore", when={"request": {"matches": "c"}}
    )
    assert ignored.outcome is Outcome.PASSED


def test_what_is_required_is_allowed() -> None:
    """A required path may change, with everything under it."""
    verdict = collateral(
        {}, {"a": {"b": {"c": 1}}}, allowed=[], required=[{"path": "a.b", "must": {"exists": True}}]
    )

    assert verdict.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("calls", "how", "outcome"),
    [
        ([], {}, Outcome.NOT_APPLICABLE),
        ([call("f")], {}, Outcome.NOT_APPLICABLE),
        ([call("f", effect="read")], {}, Outcome.NOT_APPLICABLE),
        ([call("f", effect="write", status="denied")], {}, Outcome.NOT_APPLICABLE),
        ([call("f", effect="write")], {}, Outcome.INCONCLUSIVE),
        ([call("f")], {"complete": False}, Outcome.INCONCLUSIVE),
        ([call("f")], {"missing": ["tool_calls"]}, Outcome.INCONCLUSIVE),
        ([call("f")], {"missing": ["states"]}, Outcome.INCONCLUSIVE),
        ([call("f")], {"states": [{}]}, Outcome.INCONCLUSIVE),
    ],
)
def test_a_run_that_writes_nothing_need_not_report_a_state(
    calls: list[Any], how: dict[str, Any], outcome: Outcome
) -> None:
    """What the file says of every run is without object there; a declared write calls for a report."""
    spec = {"kind": "state.collateral", "id": "state.collateral", "scopes": [{"allowed": []}]}

    assert judge(a_run(*calls, **how), [check_from_spec(spec)])[0].outcome is outcome


@pytest.mark.parametrize("how", [{"complete": False}, {"missing": ["states[1]"]}])
def test_the_last_snapshot_may_not_be_the_last(how: dict[str, Any]) -> None:
    """Neither what is reached nor what was changed is certain where a later snapshot may be missing."""
    spec = {"id": "s", "kind": "state.required", "required": [{"path": "a", "equals": 1}]}
    spare = {"id": "c", "kind": "state.collateral", "scopes": [{"allowed": []}]}
    for last in ({"a": 1}, {"a": 2}, {}):
        for verdict in judge(
            a_run(states=[{}, last], **how), [check_from_spec(one) for one in (spec, spare)]
        ):
            assert verdict.outcome is Outcome.INCONCLUSIVE
            assert "may not be the last" in verdict.because
    of_another = {**spare, "scopes": [{"allowed": [], "when": {"request": "x"}}]}
    (verdict,) = judge(a_run(states=[{}, {}], complete=False), [check_from_spec(of_another)])
    assert verdict.outcome is Outcome.INCONCLUSIVE


def test_unknown_places_are_in_no_share() -> None:
    """Of three required paths one holds, one does not, one cannot be read: one of two."""
    items = [{"path": "a", "equals": 1}, {"path": "b", "equals": 1}, {"path": "c.d", "equals": 1}]
    spec = {"kind": "state.required", "id": "s", "required": items}
    (verdict,) = judge(a_run(states=[{}, {"a": 1, "b": 2, "c": "{cut"}]), [check_from_spec(spec)])

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)
    assert verdict.because.endswith("; 1 more could not be told")


def test_unknown_changes_are_in_no_share() -> None:
    """A change whose permission hangs on an unread word of the user is neither allowed nor collateral."""
    allowed = [{"path": "orders.*", "mentioned": True}, {"path": "log"}]
    verdict = collateral({}, {"orders": {"A": 1}, "log": 1, "x": 1}, allowed=allowed, request=None)

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)
    assert verdict.because.endswith("; 1 more could not be told")


def test_an_unread_message_of_the_user_may_mention_anything() -> None:
    """What one message does not mention another may, if its text was not recorded."""
    spec = {
        "kind": "state.collateral",
        "id": "c",
        "scopes": [{"allowed": [{"path": "orders.*", "mentioned": True}]}],
    }
    said = Message(role="user", content="cancel A-1")
    run = replace(
        a_run(states=[{}, {"orders": {"A-2": 1}}]), history=(said, Message(role="assistant", content=None))
    )
    unread = replace(run, history=(said, Message(role="user", content=None)))

    assert judge(run, [check_from_spec(spec)])[0].outcome is Outcome.FAILED
    assert judge(unread, [check_from_spec(spec)])[0].outcome is Outcome.INCONCLUSIVE


def scopes(text: str, after: dict[str, Any], request: str | None = "cancel") -> Verdict:
    """The verdict on the changes from nothing to ``after`` by the states of a rules file."""
    checks = load_rules(f"schema: redfirst.rules/1\n{text}", "r")
    (check,) = [check for check in checks if check.id == "state.collateral"]
    return judge(a_run(states=[{}, after], request=request), [check])[0]


LOG = "state: {allowed: [{path: log}]}\n"
CANCEL = "{id: t, when: {request: {matches: cancel}}, state: "


@pytest.mark.parametrize(
    ("text", "after", "request_text", "outcome"),
    [
        pytest.param(LOG, {"log": 1}, "x", Outcome.PASSED, id="the file allows"),
        pytest.param(LOG, {"a": 1}, "x", Outcome.FAILED, id="the file forbids"),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [{{path: a}}]}}}}]", {"a": 1, "log": 1}, "cancel", Outcome.PASSED,
            id="a task allows more",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [{{path: a}}]}}}}]", {"a": 1}, "x", Outcome.FAILED,
            id="in its own runs",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{required: [{{path: a, equals: 1}}]}}}}]", {"a": 1, "log": 1}, "cancel",
            Outcome.PASSED, id="what is required is allowed beside the file",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [], collateral: fail}}}}]", {"log": 1}, "cancel", Outcome.FAILED,
            id="a task narrows the file",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [], collateral: fail}}}}]", {"log": 1}, "x", Outcome.PASSED,
            id="in its own runs alone",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [], collateral: fail}}}}]", {"log": 1}, None, Outcome.INCONCLUSIVE,
            id="which it cannot be told whether this is one",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [], collateral: fail}}}}]", {"a": 1}, None, Outcome.FAILED,
            id="forbidden by both",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{allowed: [{{path: log}}], collateral: fail}}}}]", {"log": 1}, None,
            Outcome.PASSED, id="allowed by both",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{required: [{{path: a, equals: 1}}], allowed: [], collateral: fail}}}}]",
            {"a": 1}, "cancel", Outcome.PASSED, id="what it requires it allows",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{required: [{{path: a, equals: 1}}], collateral: fail}}}}]",
            {"a": 1, "log": 1}, "cancel", Outcome.PASSED, id="without a list the file's holds",
        ),
        pytest.param(
            f"tasks: [{CANCEL}{{required: [{{path: a, equals: 1}}], collateral: fail}}}}]",
            {"a": 1, "log": 1}, "cancel", Outcome.FAILED, id="a task forbids in words",
        ),
        pytest.param(
            f"{LOG}tasks: [{CANCEL}{{collateral: ignore}}}}]", {"a": 1}, "cancel", Outcome.PASSED,
            id="a task ignores",
        ),
        pytest.param(
            f"state: {{collateral: ignore}}\ntasks: [{CANCEL}{{allowed: [{{path: a}}]}}}}]", {"b": 1}, "cancel",
            Outcome.FAILED, id="the file ignores, the task does not",
        ),
        pytest.param(
            f"state: {{allowed: [{{path: b}}], collateral: ignore}}\ntasks: [{CANCEL}{{allowed: [{{path: a}}]}}}}]",
            {"b": 1}, "cancel", Outcome.FAILED, id="what the file ignores it does not allow",
        ),
        pytest.param(
            f"state: {{collateral: ignore}}\ntasks: [{CANCEL}{{allowed: [{{path: a}}]}}}}]", {"b": 1}, "x",
            Outcome.NOT_APPLICABLE, id="other runs are not judged",
        ),
        pytest.param(
            f"tasks: [{CANCEL}{{allowed: [{{path: a}}], collateral: fail}}}}, {CANCEL.replace('t,', 'u,')}"
            "{allowed: [{path: b}], collateral: fail}}]", {"a": 1, "b": 1}, "cancel", Outcome.PASSED,
            id="of two tasks one suffices",
        ),
    ],
)  # fmt: skip
def test_who_decides_on_a_change(
    text: str, after: dict[str, Any], request_text: str | None, outcome: Outcome
) -> None:
    """The file for every run, a task for its own, and a task with a list and ``collateral: fail`` alone."""
    assert scopes(text, after, request_text).outcome is outcome


def test_what_only_requires_forbids_nothing() -> None:
    """Without anything that forbids a change there is no check of changes."""
    for text in (
        f"tasks: [{CANCEL}{{required: [{{path: a, equals: 1}}]}}}}]",
        f"tasks: [{CANCEL}{{}}}}]",
        "state: {collateral: ignore}",
    ):
        checks = load_rules(f"schema: redfirst.rules/1\n{text}\n", "r")
        assert "state.collateral" not in [check.id for check in checks]


def test_the_severity_of_a_task_reaches_its_states() -> None:
    """Its required states and, in its runs, what else was changed; the file's own is ``flag``."""
    tasks = [
        "{id: note, severity: note, when: {request: {matches: a}},"
        " state: {required: [{path: x, equals: 1}], allowed: []}}",
        "{id: page, severity: page, when: {request: {matches: b}}, state: {collateral: fail}}",
        "{id: goal, severity: page, when: {request: {matches: c}}, state: {required: [{path: x, equals: 1}]}}",
    ]
    text = f"{LOG}tasks: [{', '.join(tasks)}]"
    severities = {
        request: scopes(text, {"y": 1}, request).severity for request in ("a", "b", "ab", "c", "-", None)
    }

    assert severities == {
        "a": Severity.NOTE,
        "b": Severity.PAGE,
        "ab": Severity.PAGE,
        "c": Severity.FLAG,
        "-": Severity.FLAG,
        None: Severity.PAGE,
    }
    checks = {check.id: check for check in load_rules(f"schema: redfirst.rules/1\n{text}\n", "r")}
    assert checks["state.required:note"].severity is Severity.NOTE
    assert checks["state.collateral"].severity is Severity.PAGE
    assert check_from_spec(checks["state.collateral"].spec) == checks["state.collateral"]
    other = text.replace("severity: page", "severity: info")
    (same,) = [
        c for c in load_rules(f"schema: redfirst.rules/1\n{other}\n", "r") if c.id == "state.collateral"
    ]
    assert same.revision == checks["state.collateral"].revision
    only = text.removeprefix(LOG)
    assert scopes(only, {"y": 1}, "c").severity is Severity.FLAG


def paths(before: Any, after: Any) -> list[tuple[str, ...]]:
    """The paths that differ."""
    return [change.path for change in changes(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("a",)]),
        ({"a": {}}, {"a": {"b": 1}}, [("a", "b")]),
        ({}, {"a": {"b": {}, "c": [1]}}, [("a", "b"), ("a", "c", "0")]),
        ({"a": {"b": 1}}, {}, [("a", "b")]),
        ({"a": [1, 2]}, {"a": [1, 3, 4]}, [("a", "1"), ("a", "2")]),
        ({"a": [1]}, {"a": {"0": 1}}, [("a",)]),
        ({"a": 1}, {"a": {"b": 1}}, [("a",)]),
        ({"a": None}, {}, [("a",)]),
        ({"x.y": {"z": 1}}, {"x.y": {"z": 2}}, [("x.y", "z")]),
    ],
)
def test_a_difference_is_a_leaf(before: Any, after: Any, found: list[tuple[str, ...]]) -> None:
    """Leaves are compared, lists place by place; a key with a dot is one key."""
    assert paths(before, after) == found


def test_a_key_with_a_dot_is_named_and_allowed() -> None:
    """In a path a dot of a key is written ~1."""
    before, after = {"files": {"a.txt": 1}}, {"files": {"a.txt": 2}}

    assert collateral(before, after, allowed=[]).findings[0].subject == "files.a~1txt"
    assert collateral(before, after, allowed=[{"path": "files.a~1txt"}]).outcome is Outcome.PASSED
    assert collateral(
        before, after, allowed=[{"path": "files.*", "mentioned": True}], request="a.txt!"
    ).outcome is (Outcome.PASSED)


@pytest.mark.parametrize("path", ["", "a.**.b"])
def test_a_pattern_that_means_nothing_is_refused(path: str) -> None:
    """The rest can only come last."""
    with pytest.raises(ValueError, match="path"):
        parse_pattern(path)


@pytest.mark.parametrize("path", ["", "orders.*.status"])
def test_a_required_path_is_one_place(path: str) -> None:
    """A star in it would leave open which."""
    with pytest.raises(ValueError, match="one place"):
        required_path(path)


@pytest.mark.parametrize(
    ("text", "word", "found"),
    [
        ("order A-1.", "A-1", True),
        ("order A-10", "A-1", False),
        ("xA-1", "A-1", False),
        ("A-1-b", "A-1", False),
        ("x", "", False),
    ],
)
def test_a_word_is_mentioned_whole(text: str, word: str, found: bool) -> None:
    """Part of another word is no mention."""
    assert mentions([text], word) is found


states = st.recursive(
    st.none() | st.integers(0, 2) | st.text("ab", max_size=1),
    lambda inner: (
        st.dictionaries(st.text("ab.", max_size=2), inner, max_size=3) | st.lists(inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text("ab", max_size=1), states), st.dictionaries(st.text("ab", max_size=1), states))
@settings(deadline=None)
def test_a_difference_has_two_sides(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Forward and backward differences are mirror images; equal states have none."""
    there = {(change.path, repr(change.before), repr(change.after)) for change in changes(before, after)}
    back = {(change.path, repr(change.after), repr(change.before)) for change in changes(after, before)}

    assert there == back
    assert not list(changes(before, before))

"""What each kind of rule accepts, accuses and leaves open, case by case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import (
    MISSING,
    CheckClass,
    ConfigurationError,
    Handoff,
    Message,
    ModelCall,
    Outcome,
    RequestedCall,
    RunEvent,
    StateSnapshot,
    Tokens,
    ToolCall,
    Trajectory,
    Verdict,
    failed,
    flagged,
)
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.testing import ROOT, a_run, call

P, F, I, N = Outcome.PASSED, Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.NOT_APPLICABLE  # noqa: E741 - a table
S = 1_000_000_000
"""A second, in nanoseconds."""

Case = tuple[list[ToolCall], dict[str, Any], Outcome]


def verdict_on(spec: Mapping[str, Any], run: Trajectory) -> Verdict:
    """The verdict of one rule."""
    return judge(run, [check_from_spec({"id": "one", **spec})])[0]


def verdict_of(spec: Mapping[str, Any], *calls: ToolCall, **run: Any) -> Verdict:
    """The verdict of one rule on a run of these calls."""
    return verdict_on(spec, a_run(*calls, **run))


def places(verdict: Verdict) -> list[str]:
    """Where the evidence points."""
    return [item.pointer for item in verdict.evidence]


# --- require_after

CLOSED = {"kind": "require_after", "call": "open", "needs": ["close", "$handoff"], "same": ["args.id"]}


@pytest.mark.parametrize(
    ("calls", "more", "run", "outcome"),
    [
        ([call("open", id=1), call("close", id=1)], {}, {}, P),
        ([call("open", id=1), call("close", id=2)], {}, {}, F),
        ([call("close", id=1), call("open", id=1)], {}, {}, F),
        ([call("open", id=1)], {}, {}, F),
        ([call("open", id=1), call("close", id=1, status="tool_error")], {}, {}, F),
        ([call("open", id=1), call("close")], {}, {}, I),
        ([call("open", id=1), call("close", id=1, status="unknown")], {}, {}, I),
        ([call("open", id=1)], {}, {"complete": False}, I),
        ([call("open", id=1)], {}, {"stop": "parked"}, I),
        ([call("open", id=1)], {}, {"stop": "infra"}, I),
        ([call("open", id=1), call("close", id=1)], {}, {"stop": "parked"}, I),
        ([call("other")], {}, {}, N),
        ([call("open", id=1), call("open", id=1, n=2), call("close", id=1)], {}, {}, P),
        ([call("open", id=1), call("open", id=1, n=2), call("close", id=1)], {"once": True}, {}, F),
        ([call("open", id=1), call("close", id=1), call("open", id=1, n=2)], {"once": True}, {}, F),
        ([call("open", id=1), call("open", id=1), call("close"), call("close", id=1)], {"once": True}, {}, I),
        ([call("open", id=1, turn=0), call("close", id=1, turn=3)], {"within_steps": 3}, {}, P),
        ([call("open", id=1, turn=0), call("close", id=1, turn=4)], {"within_steps": 3}, {}, F),
        ([call("open", id=1), call("stop"), call("close", id=1)], {"until": "stop"}, {}, F),
        ([call("open", id=1), call("close", id=1), call("stop")], {"until": "stop"}, {}, P),
        (
            [call("open", id=1), call("stop", status="tool_error"), call("close", id=1)],
            {"until": "stop"},
            {},
            P,
        ),
        ([call("open", id=1), call("stop", status="unknown"), call("close", id=1)], {"until": "stop"}, {}, I),
        ([call("open", id=1)], {"missing": "ignore"}, {"stop": "parked"}, I),
    ],
)
def test_require_after(
    calls: list[ToolCall], more: dict[str, Any], run: dict[str, Any], outcome: Outcome
) -> None:
    """A success of the need, of the same values, after the call, and in time."""
    assert verdict_of({**CLOSED, **more}, *calls, **run).outcome is outcome


def test_what_completes_a_missing_answer() -> None:
    """Without the need it is the run's end that completes the violation; with ``until`` the event that came first."""
    bare = verdict_of(CLOSED, call("open", id=1))
    assert places(bare) == ["/tool_calls", "/tool_calls/0"]
    assert bare.evidence[0].span_id == ROOT
    assert bare.because == "open (id 1) was not followed by close or $handoff of the same id 1"

    ended = verdict_of({**CLOSED, "until": "stop"}, call("open", id=1), call("stop"), call("close", id=1))
    assert places(ended) == ["/tool_calls/1", "/tool_calls/0"]
    assert "with no stop in between" in ended.because


def test_an_answer_may_be_a_handoff() -> None:
    """A handoff has no argument of the tool, so it can only serve where none is asked for."""
    run = replace(
        a_run(call("open", id=1)), handoffs=(Handoff(source="a", target="b", span_id="x", start_ns=5_000),)
    )
    spec = {key: value for key, value in CLOSED.items() if key != "same"}

    assert verdict_on(spec, run).outcome is P
    assert verdict_on(CLOSED, run).outcome is I
    assert verdict_on({**spec, "needs": {"tool": "$handoff", "where": {"args.to": "c"}}}, run).outcome is F


def test_within_a_time() -> None:
    """The need begins at most so long after the call ended; equal is in time."""
    late = call("close", id=1, at=(71 * S, 72 * S))
    spec = {**CLOSED, "within": "PT1M"}

    assert verdict_of(spec, call("open", id=1, at=(S, 11 * S)), late).outcome is P
    assert verdict_of(spec, call("open", id=1, at=(S, 10 * S)), late).outcome is F
    assert verdict_of(spec, call("open", id=1, at=(0, 0)), call("close", id=1, at=(0, 0))).outcome is I
    assert "within PT1M" in verdict_of(spec, call("open", id=1, at=(S, 10 * S)), late).because


# --- require_before: validity, covers, scope, the earlier conversation

TESTED = {"kind": "require_before", "call": "commit", "needs": "test", "until": "edit"}


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        (["test", "commit"], P),
        (["edit", "test", "commit"], P),
        (["test", "edit", "commit"], F),
        (["test", "edit", "test", "commit"], P),
        (["test", "commit", "edit", "commit"], F),
    ],
)
def test_a_need_lasts_until(names: list[str], outcome: Outcome) -> None:
    """An edit ends the validity of the tests before it."""
    calls = [call(name, n=place) for place, name in enumerate(names)]

    assert verdict_of(TESTED, *calls).outcome is outcome


def test_a_need_that_ended_is_named() -> None:
    """The nearest miss says that it no longer counted."""
    verdict = verdict_of(TESTED, call("test"), call("edit"), call("commit"))

    assert (
        verdict.because
        == "commit ran without an earlier test with no edit in between; test no longer counted"
    )
    assert places(verdict) == ["/tool_calls/2", "/tool_calls/0"]


def test_an_end_that_may_be_missing_passes_nothing() -> None:
    """Of an incomplete trace an edit may be missing."""
    assert verdict_of(TESTED, call("test"), call("commit"), complete=False).outcome is I
    assert verdict_of(TESTED, call("test", turn=0), call("commit", turn=2), complete=True).outcome is P
    assert (
        verdict_of({**TESTED, "within_steps": 1}, call("test", turn=0), call("commit", turn=2)).outcome is F
    )
    assert (
        verdict_of({**TESTED, "within_steps": 2}, call("test", turn=None), call("commit", turn=2)).outcome
        is I
    )


COVERED = {
    "kind": "require_before",
    "call": "refund",
    "needs": "approve",
    "same": ["args.order"],
    "covers": {"result.max": {"ge": "call.args.amount"}},
}


@pytest.mark.parametrize(
    ("limit", "amount", "outcome"),
    [(100, 100, P), ("100.00", "99.5", P), (100, 101, F), (None, 50, I), (100, None, I), (100, "much", I)],
)
def test_a_need_must_cover_the_call(limit: object, amount: object, outcome: Outcome) -> None:
    """Money as text is a number; what is not there is unknown."""
    granted = call("approve", order=1, result={} if limit is None else {"max": limit})
    made = call("refund", order=1, **({} if amount is None else {"amount": amount}))

    assert verdict_of(COVERED, granted, made).outcome is outcome


def test_what_does_not_cover_is_named() -> None:
    """The nearest miss says what it was worth."""
    verdict = verdict_of(
        COVERED, call("approve", order=1, result={"max": 5}), call("refund", order=1, amount=9)
    )

    assert "approve was not enough: result.max is at least args.amount of the call" in verdict.because


@pytest.mark.parametrize(
    ("scope", "need", "outcome"),
    [
        ("trace", {"agent": "b", "agent_spans": ("1", "3")}, P),
        ("agent", {"agent": "b", "agent_spans": ("1", "3")}, F),
        ("agent", {"agent": "a", "agent_spans": ("1", "2")}, P),
        ("agent", {}, I),
        ("subtree", {"agent": "b", "agent_spans": ("1", "3")}, F),
        ("subtree", {"agent": "a", "agent_spans": ("1", "2")}, P),
        ("subtree", {"agent": "c", "agent_spans": ("1", "2", "4")}, P),
        ("subtree", {"agent": "top", "agent_spans": ("1",)}, F),
        ("subtree", {}, I),
    ],
)
def test_scope(scope: str, need: dict[str, Any], outcome: Outcome) -> None:
    """``agent``: of the same agent; ``subtree``: under the span of the agent that made the call."""
    spec = {"kind": "require_before", "call": "commit", "needs": "test", "scope": scope}
    made = call("commit", agent="a", agent_spans=("1", "2"))

    verdict = verdict_of(spec, call("test", **need), made)

    assert verdict.outcome is outcome
    if outcome is F:
        assert "test was made by another agent" in verdict.because


def conversation(*messages: Message, **more: Any) -> dict[str, Any]:
    """What a run was given by an earlier conversation."""
    return {"history": messages, **more}


def asked(name: str, call_id: str, **arguments: object) -> Message:
    return Message(
        role="assistant", tool_calls=(RequestedCall(name=name, arguments=arguments, call_id=call_id),)
    )


def answered(call_id: str | None, content: str | None) -> Message:
    return Message(role="tool", tool_call_id=call_id, content=content)


VERIFIED = {
    "kind": "require_before",
    "call": "cancel",
    "needs": {"tool": "verify", "where": {"result.verified": True}},
    "same": ["args.customer"],
}


@pytest.mark.parametrize(
    ("messages", "outcome"),
    [
        ([asked("verify", "1", customer=7), answered("1", '{"verified": true}')], P),
        ([asked("verify", "1", customer=8), answered("1", '{"verified": true}')], F),
        ([asked("verify", "1", customer=7), answered("1", '{"verified": false}')], F),
        ([asked("verify", "1", customer=7), answered("1", "Error: no such customer")], F),
        ([asked("verify", "1", customer=7)], I),
        ([asked("verify", "1", customer=7), answered("2", '{"verified": true}')], I),
        ([asked("verify", "1", customer=7), answered("1", None)], I),
        ([Message(role="user", content="cancel")], F),
    ],
)
def test_a_need_is_met_in_the_earlier_conversation(messages: list[Message], outcome: Outcome) -> None:
    """A call that an earlier message asked for, and a later one answers, came before everything in the run."""
    run = replace(a_run(call("cancel", customer=7)), history=tuple(messages))

    assert verdict_on(VERIFIED, run).outcome is outcome


def test_the_nearest_miss_may_stand_in_the_conversation() -> None:
    """Its evidence points into the history, at the root."""
    messages = (asked("verify", "1", customer=8), answered("1", '{"verified": true}'))
    verdict = verdict_on(VERIFIED, replace(a_run(call("cancel", customer=7)), history=messages))

    assert places(verdict) == ["/tool_calls/0", "/history/0"]
    assert verdict.evidence[1].span_id == ROOT


def test_a_call_of_the_run_is_not_taken_for_an_earlier_one() -> None:
    """A first model call may be given the answers of calls that this run made: they keep their own place."""
    late = replace(call("verify", customer=7, result={"verified": True}), call_id="1")
    history = (asked("verify", "1", customer=7), answered("1", '{"verified": true}'))
    run = replace(a_run(call("cancel", customer=7), late), history=history)

    assert verdict_on(VERIFIED, run).outcome is F


def test_a_conversation_neither_lasts_nor_counts_turns() -> None:
    """Nothing says when an earlier call was answered."""
    messages = (asked("verify", "1", customer=7), answered("1", '{"verified": true}'))
    run = replace(a_run(call("cancel", customer=7)), history=messages)

    assert verdict_on({**VERIFIED, "within": "PT5M"}, run).outcome is I
    assert verdict_on({**VERIFIED, "within_steps": 2}, run).outcome is I
    assert verdict_on({**VERIFIED, "until": "logout"}, run).outcome is P
    again = (*messages, asked("logout", "2"), answered("2", "done"))
    assert verdict_on({**VERIFIED, "until": "logout"}, replace(run, history=again)).outcome is F


# --- what was said

CONFIRMED = {
    "kind": "require_before",
    "call": "book",
    "needs": {"tool": "$user", "where": {"args.text": {"matches": r"(?i)\byes\b"}}},
}


def turn(index: int, *messages: Message, **more: Any) -> ModelCall:
    return ModelCall(
        index=index,
        span_id=f"m{index}",
        start_ns=1_000 * (index + 1) - 5,
        input_messages=messages,
        **more,  # type: ignore[arg-type]
    )


def test_the_user_is_heard() -> None:
    """What the user said before the run, with the request, and between its turns, each in its place."""
    quote, book = call("quote", turn=0), call("book", turn=1)
    hello, yes = Message(role="user", content="a flight"), Message(role="user", content="Yes, do")

    assert verdict_of(CONFIRMED, book, request="Yes please").outcome is P
    assert verdict_of(CONFIRMED, book, request="a flight").outcome is F
    assert verdict_of(CONFIRMED, book, request=None).outcome is I
    run = a_run(quote, book)
    assert verdict_on(CONFIRMED, replace(run, history=(hello, yes))).outcome is P
    unread = replace(run, history=(hello, Message(role="user")))
    assert verdict_on(CONFIRMED, unread).outcome is I
    between = replace(run, history=(hello,), model_calls=(turn(0, hello), turn(1, hello, yes)))
    assert verdict_on(CONFIRMED, between).outcome is P
    assert verdict_on({**CONFIRMED, "call": "quote"}, between).outcome is F
    inner = replace(between, model_calls=(turn(0, hello, agent="a"), turn(1, hello, yes, agent="b")))
    assert verdict_on(CONFIRMED, inner).outcome is F
    silent = replace(between, model_calls=(turn(0, hello), turn(1, hello, Message(role="user"))))
    assert verdict_on(CONFIRMED, silent).outcome is I
    after_it = {**CONFIRMED, "kind": "sequence", "steps": ["quote", CONFIRMED["needs"], "book"]}
    del after_it["call"], after_it["needs"]
    assert verdict_on(after_it, between).outcome is P
    assert verdict_on(after_it, replace(run, history=(hello, yes))).outcome is F


def test_the_answer_comes_last() -> None:
    """Every call of the run came before it; a run without one asks for nothing."""
    spec = {"kind": "require_before", "call": "$answer", "needs": "search"}

    assert verdict_of(spec, call("search")).outcome is P
    assert verdict_of(spec, call("other")).outcome is F
    assert verdict_of(spec, answer=None).outcome is F
    assert verdict_of(spec, answer=None, stop="step_cap").outcome is N
    said = {"kind": "forbid", "call": {"tool": "$answer", "where": {"args.text": {"matches": "sorry"}}}}
    assert verdict_of(said, answer="sorry").outcome is F
    assert verdict_of(said, answer="done").outcome is P
    assert verdict_of(said, answer=None).outcome is I
    assert places(verdict_of(said, answer="sorry")) == ["/answer"]
    assert verdict_of({"kind": "forbid", "call": "$answer"}, call("x"), answer="a").outcome is F
    assert verdict_of({"kind": "forbid", "call": "$answer"}, answer="a", complete=False).outcome is F


def test_events_are_spoken_of_by_name() -> None:
    """A reported event is in order by its time."""
    spec = {"kind": "require_before", "call": "pay", "needs": "$event.consent", "same": ["args.order"]}
    event = RunEvent(name="consent", time_ns=900, attributes={"order": 1}, span_id="e")
    run = replace(a_run(call("pay", order=1)), events=(event,))

    assert verdict_on(spec, run).outcome is P
    assert verdict_on(spec, replace(run, events=(replace(event, time_ns=5_000),))).outcome is F
    assert verdict_on(spec, replace(run, events=(replace(event, name="other"),))).outcome is F
    assert verdict_on(spec, replace(run, events=())).outcome is F
    assert verdict_of(spec, call("pay", order=1), missing=["events"]).outcome is I


def test_a_name_that_nothing_has_is_refused() -> None:
    """A dollar begins a reserved name."""
    with pytest.raises(
        ConfigurationError, match=r"\$usr is nothing that happens in a run; did you mean \$user"
    ):
        check_from_spec({"kind": "forbid", "id": "x", "call": "$usr"})


# --- mutually_exclusive

EITHER = {"kind": "mutually_exclusive", "calls": ["refund", "replace"], "same": ["args.order"]}


@pytest.mark.parametrize(
    ("calls", "run", "outcome"),
    [
        ([call("refund", order=1), call("replace", order=2)], {}, P),
        ([call("refund", order=1), call("refund", order=1)], {}, P),
        ([call("refund", order=1), call("replace", order=1)], {}, F),
        ([call("refund", order=1, turn=0), call("replace", order=1, turn=0)], {}, F),
        ([call("refund", order=1, status="infra_error"), call("replace", order=1)], {}, F),
        ([call("refund", order=1, status="denied"), call("replace", order=1)], {}, P),
        ([call("refund", order=1), call("replace")], {}, I),
        ([call("refund"), call("replace")], {}, I),
        ([call("refund")], {}, P),
        ([call("refund", order=1), call("replace", order=1, status="unknown")], {}, F),
        (
            [call("refund", order=1), call("replace", order=1, status="ok")],
            {"missing": ["tool_calls[0].name"]},
            F,
        ),
        ([call("refund", order=1)], {"missing": ["tool_calls[0].name"]}, I),
        ([call("refund", order=1), call("replace", order="1.0")], {}, F),
        ([call("refund", order=1)], {"complete": False}, I),
        ([call("refund", order=1), call("replace", order=1)], {"complete": False}, F),
        ([call("other")], {}, N),
    ],
)
def test_mutually_exclusive(calls: list[ToolCall], run: dict[str, Any], outcome: Outcome) -> None:
    """One kind for each value, in any order; what may have happened counts."""
    assert verdict_of(EITHER, *calls, **run).outcome is outcome


def test_the_second_kind_completes_it() -> None:
    """Evidence, subject and sentence."""
    calls = [
        call("refund", order=1),
        call("refund", order=1),
        call("replace", order=1),
        call("replace", order=2),
    ]
    verdict = verdict_of(EITHER, *calls)

    assert places(verdict) == ["/tool_calls/2", "/tool_calls/0"]
    assert [finding.subject for finding in verdict.findings] == ["refund,replace|1"]
    assert verdict.because == (
        "replace (order 1) was called beside refund (order 1) of the same order 1; only one of them may be"
    )
    assert (verdict.numerator, verdict.denominator) == (1, 2)


def test_of_one_agent_each() -> None:
    """With ``scope: agent`` two agents may do either."""
    calls = [call("refund", order=1, agent="a"), call("replace", order=1, agent="b")]

    assert verdict_of(EITHER, *calls).outcome is F
    assert verdict_of({**EITHER, "scope": "agent"}, *calls).outcome is P
    assert verdict_of({**EITHER, "scope": "agent"}, *calls, call("refund", order=1)).outcome is I
    few = {"kind": "max_calls", "call": "refund", "max": 1, "scope": "agent"}
    assert verdict_of(few, call("refund", agent="a"), call("refund", agent="b")).outcome is P
    assert verdict_of(few, call("refund", agent="a"), call("refund", agent="a")).outcome is F


# --- max_consecutive

ROW = {"kind": "max_consecutive", "call": "search", "max": 3}


def searches(*names: str, **how: Any) -> list[ToolCall]:
    return [call(name, q=place, **how) for place, name in enumerate(names)]


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        (searches("search", "search", "search"), P),
        (searches("search", "search", "search", "search"), F),
        (searches("search", "search", "read", "search", "search"), P),
        (searches("search", "search", "read", "search", "search", "search", "search"), F),
        (searches("search", "search", "search", "search", turn=0), F),
        (searches("search", "search", "read", "search", "search", turn=0), I),
        (searches("read"), N),
        ([call("search", q=1, effect="read", status="infra_error")] * 3 + [call("search", q=1)], P),
        ([*searches("search", "search", "search"), call("search", status="denied")], P),
        ([*searches("search", "search", "search"), call("search", q=9, agent="b")], P),
        ([*searches("search", "search", "search"), call("search", q=9, status="unknown")], F),
        ([*searches("search", "search"), call("read", status="denied"), *searches("search", "search")], F),
    ],
)
def test_max_consecutive(calls: list[ToolCall], outcome: Outcome) -> None:
    """A row is of one agent and of logical calls, and what ran ends it."""
    assert verdict_of(ROW, *calls).outcome is outcome


def test_a_row_that_may_be_broken_is_open() -> None:
    """By a call that is not there, by a name that is not, or by one of no known order."""
    row = searches("search", "search", "search", "search")

    assert verdict_of(ROW, *row, complete=False).outcome is I
    assert verdict_of(ROW, *row, missing=["tool_calls[1].name"]).outcome is I
    assert verdict_of({**ROW, "call": {"tool": "search", "where": {"args.x": 1}}}, *row).outcome is I
    loose = [call("search", turn=None, at=(0, 0)) for _ in range(4)]
    assert verdict_of(ROW, *loose).outcome is F
    assert verdict_of(ROW, *loose, call("read", turn=None, at=(0, 0))).outcome is I


def test_the_call_over_the_limit_completes_a_row() -> None:
    """It is told once for each row."""
    calls = searches("search", "search", "search", "search", "search", "read", "search")
    verdict = verdict_of(ROW, *calls)

    assert places(verdict) == ["/tool_calls/3", "/tool_calls/0"]
    assert verdict.because == "search was called 4 times in a row; at most 3 allowed"
    assert (verdict.numerator, verdict.denominator) == (4, 5)


@pytest.mark.parametrize(
    ("keys", "outcome"),
    [("aaaa", F), ("aaab", P), ("aabaab", P), ("abababab", P), ("baaaa", F), ("aaaab", F), ("aa?a", I)],
)
def test_a_row_of_the_same_values(keys: str, outcome: Outcome) -> None:
    """With ``same`` another value ends the row, and one that is not there may."""
    clicks = [call("click", **({} if key == "?" else {"on": key}), n=place) for place, key in enumerate(keys)]
    spec = {"kind": "max_consecutive", "call": "click", "max": 3, "same": ["args.on"]}

    assert verdict_of(spec, *clicks).outcome is outcome


def test_an_attempt_after_a_fault_may_be_a_retry_where_arguments_were_not_read() -> None:
    """Whether it is one more call cannot be told then: neither over the limit nor within it."""
    faulty = call("search", q=3, effect="read", status="infra_error")
    again = call("search", q=3, effect="read")
    unread = [replace(one, arguments=None) for one in (faulty, again)]
    most = {"kind": "max_calls", "call": "search", "max": 3}

    for spec in (ROW, most):
        assert verdict_of(spec, *searches("search", "search"), faulty, again).outcome is P
        assert verdict_of(spec, *searches("search", "search"), *unread).outcome is I
        assert verdict_of(spec, *searches("search", "search"), unread[0], again).outcome is I
        assert verdict_of({**spec, "attempts": True}, *searches("search", "search"), *unread).outcome is F
        assert verdict_of(spec, *searches("search", "search", "search"), *unread).outcome is F


def test_parallel_calls_of_several_values_are_no_row() -> None:
    """Three of one value among parallel calls may be a row of three and not of more."""
    spec = {"kind": "max_consecutive", "call": "click", "max": 3, "same": ["args.on"]}
    mixed = [call("click", on=key, n=place, turn=0) for place, key in enumerate("aabbab")]

    assert verdict_of(spec, *mixed).outcome is P
    assert verdict_of(spec, *mixed, call("click", on="a", n=9, turn=1)).outcome is I
    assert verdict_of({**ROW, "attempts": True}, *[call("search", q=1, status="denied")] * 4).outcome is F


# --- sequence

STEPS = {"kind": "sequence", "steps": ["verify", "quote", "pay"], "same": ["args.id"]}


@pytest.mark.parametrize(
    ("names", "outcome"),
    [
        (["verify", "quote", "pay"], P),
        (["verify"], N),
        (["verify", "pay"], F),
        (["quote", "verify", "pay"], F),
        (["verify", "quote", "verify", "pay"], P),
        (["quote"], F),
        (["verify", "quote", "pay", "pay"], P),
    ],
)
def test_sequence(names: list[str], outcome: Outcome) -> None:
    """Each step after a chain of the steps before it."""
    assert (
        verdict_of(STEPS, *[call(name, id=1, n=place) for place, name in enumerate(names)]).outcome is outcome
    )


def test_a_sequence_of_what_is_not_known() -> None:
    """Status, key, order and completeness each leave it open."""
    verify, quote, pay = call("verify", id=1), call("quote", id=1), call("pay", id=1)

    assert verdict_of(STEPS, verify, quote, call("pay", id=2)).outcome is F
    assert verdict_of(STEPS, verify, call("quote", id=1, status="tool_error"), pay).outcome is F
    assert verdict_of(STEPS, verify, call("quote", id=1, status="unknown"), pay).outcome is I
    assert verdict_of(STEPS, verify, quote, call("pay")).outcome is I
    assert verdict_of(STEPS, verify, pay, complete=False).outcome is I
    assert verdict_of(STEPS, verify, quote, pay, complete=False).outcome is I
    assert verdict_of(STEPS, verify, call("pay", id=1, status="denied")).outcome is N
    maybe = {**STEPS, "steps": ["verify", {"tool": "pay", "where": {"args.x": 1}}]}
    assert verdict_of(maybe, pay).outcome is I
    assert verdict_of({**STEPS, "steps": ["pay", "pay"]}, pay).outcome is F
    four = {"kind": "sequence", "steps": ["a", "b", "c", "d"]}
    assert verdict_of(four, call("b"), call("c"), call("c", n=1), call("d")).numerator == 0
    verdict = verdict_of(STEPS, verify, pay)
    assert verdict.because == "pay (id 1) was called without verify and then quote before it of the same id 1"
    assert places(verdict) == ["/tool_calls/1"]


# --- invariant

RESERVE = {"kind": "invariant", "state": "account.balance", "must": {"ge": 500}}


def account(*balances: object) -> list[dict[str, Any]]:
    return [{"account": {"balance": balance}} for balance in balances]


@pytest.mark.parametrize(
    ("states", "more", "outcome"),
    [
        (account(600, 500), {}, P),
        (account(600, 499, 600), {}, F),
        (account(400), {}, F),
        (account("600.00"), {}, P),
        (account("much"), {}, I),
        ([{"account": {}}], {}, I),
        ([{"account": {}}], {"missing": "failed"}, F),
        ([{"account": {}}, *account(600)], {"missing": "ignore"}, P),
        ([{"account": "cut"}], {}, I),
        ([], {}, I),
        ([{"account": {}}], {"must": {"exists": False}}, P),
    ],
)
def test_invariant(states: list[dict[str, Any]], more: dict[str, Any], outcome: Outcome) -> None:
    """Every observation is judged: the first, those between, the last."""
    assert verdict_of({**RESERVE, **more}, states=states).outcome is outcome


def test_the_first_breach_of_a_place_completes_it() -> None:
    """Each place is accused once, at the observation that shows it."""
    verdict = verdict_of(RESERVE, states=account(600, 400, 300, 600))

    assert verdict.because == "account.balance is 400 in observation 2; it must be at least 500"
    assert places(verdict) == ["/states/1/state/account/balance"]
    assert [finding.subject for finding in verdict.findings] == ["account.balance"]
    assert verdict.check_class is CheckClass.PROTECTION
    assert (verdict.numerator, verdict.denominator) == (2, 3)


def test_an_invariant_of_every_key() -> None:
    """A star is every key or item; what has none is not applicable."""
    spec = {**RESERVE, "state": "accounts.*.balance"}
    both = {"accounts": {"A": {"balance": 500}, "B": {"balance": 1}}}

    assert verdict_of(spec, states=[both]).findings[0].subject == "accounts.B.balance"
    assert verdict_of(spec, states=[{"accounts": [{"balance": 700}]}]).outcome is P
    assert verdict_of(spec, states=[{"accounts": {}}]).outcome is N
    assert verdict_of(spec, states=[{}]).outcome is N
    assert (
        verdict_of({**spec, "state": "accounts.*.of.*"}, states=[{"accounts": {"A": {"of": "cut"}}}]).outcome
        is N
    )
    assert verdict_of({**spec, "state": "a.b.*"}, states=[{"a": "cut"}]).outcome is I
    assert verdict_of(spec, states=[both], complete=False).outcome is F
    assert verdict_of(RESERVE, states=account(600), complete=False).outcome is I
    related = {**RESERVE, "must": {"ge": {"value_of": "account.reserve"}}}
    assert verdict_of(related, states=[{"account": {"balance": 5, "reserve": 6}}]).outcome is F
    assert verdict_of(related, states=[{"account": {"balance": 5}}]).outcome is I


# --- args_schema

SHAPE = {
    "kind": "args_schema",
    "call": "write",
    "schema": {
        "type": "object",
        "properties": {"path": {"type": "string", "pattern": "^/repo/"}},
        "required": ["path"],
    },
}
FITS = {
    "kind": "args_schema",
    "call": "cite",
    "must": {"args.ids": {"subset_of": {"value_of": "results_of.find.*.id"}}},
}


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (call("write", path="/repo/a"), P),
        (call("write", path="/etc/passwd"), F),
        (call("write"), F),
        (call("write", args=None), I),
        (call("write", path="/etc/passwd", status="denied"), N),
        (call("other"), N),
    ],
)
def test_args_schema(made: ToolCall, outcome: Outcome) -> None:
    """Each call is held against the JSON Schema of the rule."""
    assert verdict_of(SHAPE, made).outcome is outcome


def test_the_schema_of_the_trace() -> None:
    """Without a schema and conditions, the one that the span carries; without one nothing can be told."""
    spec = {"kind": "args_schema", "call": "write"}
    typed = replace(call("write", path=3), schema=SHAPE["schema"])

    assert verdict_of(spec, typed).outcome is F
    assert verdict_of(spec, replace(typed, arguments={"path": "/repo/x"})).outcome is P
    assert verdict_of(spec, replace(typed, schema=None)).outcome is I
    assert verdict_of(spec, replace(typed, schema={"$ref": "https://example.org/s"})).outcome is I
    verdict = verdict_of(spec, typed)
    assert verdict.findings[0].subject == "write|args.path"
    assert places(verdict) == ["/tool_calls/0"]
    with pytest.raises(ConfigurationError, match="schema cannot be used"):
        check_from_spec({**SHAPE, "id": "x", "schema": {"type": 3}})


@pytest.mark.parametrize(
    ("found", "ids", "outcome"),
    [
        ([{"id": 1}, {"id": 2}], [1], P),
        ([{"id": 1}], [1, 3], F),
        ([], [1], F),
        ([{}], [1], F),
        ("not json", [1], I),
        ([{"id": 1}], "1", I),
        ([{"id": 1}], None, I),
    ],
)
def test_arguments_out_of_earlier_results(found: object, ids: object, outcome: Outcome) -> None:
    """``results_of`` is the list of all that earlier successes answered."""
    cited = call("cite", **({} if ids is None else {"ids": ids}))

    assert verdict_of(FITS, call("find", result=found), cited).outcome is outcome


def test_results_that_may_be_missing() -> None:
    """A call that is not there may have answered it; a later one did not."""
    cited = call("cite", ids=[1])

    assert verdict_of(FITS, cited).outcome is F
    assert verdict_of(FITS, cited, complete=False).outcome is I
    assert verdict_of(FITS, cited, call("find", result=[{"id": 1}])).outcome is F
    assert verdict_of(FITS, call("find", result=[{"id": 1}], status="unknown"), cited).outcome is I
    assert verdict_of(FITS, call("find", result={"a": {"id": 1}}), cited).outcome is P
    assert verdict_of(FITS, call("find", result=MISSING), cited).outcome is I
    listed = {**FITS, "must": {"args.ids": {"subset_of": {"value_of": "results_of.find.ids"}}}}
    assert verdict_of(listed, call("find", result={"ids": [1, 2]}), cited).outcome is P
    assert verdict_of(listed, call("find", result={"ids": 1}), cited).outcome is P
    nothing = {**FITS, "must": {"args.ids": {"subset_of": {"value_of": "results_of.find.a.*"}}}}
    assert verdict_of(nothing, call("find", result={}), cited).outcome is F
    unfit = verdict_of(FITS, cited)
    assert "args.ids is [1], and must be only of results_of.find.*.id" in unfit.because
    earlier = (asked("find", "1"), answered("1", '[{"id": 1}]'))
    assert verdict_on(FITS, replace(a_run(cited), history=earlier)).outcome is P


@pytest.mark.parametrize(
    ("amount", "total", "outcome"), [(5, 100, P), (6, 100, F), (5, None, I), (5, "x", I)]
)
def test_arguments_against_the_state(amount: int, total: object, outcome: Outcome) -> None:
    """``state`` is the last one reported before the call began; ``times`` multiplies it."""
    spec = {
        "kind": "args_schema",
        "call": "trade",
        "must": {"args.amount": {"le": {"value_of": "state.total", "times": 0.05}}},
    }
    states = [{} if total is None else {"total": total}]

    assert verdict_of(spec, call("trade", amount=amount), states=states).outcome is outcome
    assert verdict_of(spec, call("trade", amount=amount)).outcome is I
    assert verdict_of(spec, call("trade", amount=amount), states=states, complete=False).outcome is I


def test_the_hour_of_a_call() -> None:
    """Clock, date and day of the week in UTC, from the recorded start."""
    noon = 1_764_504_000 * S  # 2025-11-30T12:00:00Z is a Sunday
    spec = {
        "kind": "args_schema",
        "call": "trade",
        "must": {"time.clock": {"ge": "09:30", "lt": "16:00"}, "time.weekday": {"le": 5}},
    }

    def at(seconds: int) -> ToolCall:
        return call("trade", at=(noon + seconds * S, noon + (seconds + 1) * S))

    assert verdict_of(spec, at(0)).outcome is F
    assert verdict_of(spec, at(86_400)).outcome is P
    assert verdict_of(spec, at(86_400 + 4 * 3_600)).outcome is F
    assert verdict_of(spec, call("trade", at=(0, 0))).outcome is I
    dated = {"kind": "forbid", "call": {"tool": "trade", "where": {"time.date": "2025-11-30"}}}
    assert verdict_of(dated, at(0)).outcome is F
    assert verdict_of(dated, at(86_400)).outcome is P


# --- approval

TWO = {
    "kind": "approval",
    "call": {"tool": "wire", "where": {"args.amount": {"gt": 10_000}}},
    "same": ["args.wire"],
    "distinct": 2,
    "approver": "args.by",
}


def approvals(*names: object, wire: object = 1, time_ns: int = 500) -> tuple[RunEvent, ...]:
    return tuple(
        RunEvent(
            name="approval",
            time_ns=time_ns,
            attributes={"wire": wire, **({} if name is None else {"by": name})},
            span_id=f"e{place}",
        )
        for place, name in enumerate(names)
    )


@pytest.mark.parametrize(
    ("events", "more", "outcome"),
    [
        (approvals("ann", "bob"), {}, P),
        (approvals("ann", "ann"), {}, F),
        (approvals("ann"), {}, F),
        (approvals("ann", None), {}, I),
        (approvals("ann", "bob", wire=2), {}, F),
        (approvals("ann", "bob", time_ns=90_000), {}, F),
        ((), {}, F),
        (approvals("ann"), {"distinct": 1}, P),
        (approvals("ann"), {"distinct": 1, "once": True}, P),
        (approvals("ann", "bob", "cyd"), {"distinct": 3}, P),
    ],
)
def test_approval(events: tuple[RunEvent, ...], more: dict[str, Any], outcome: Outcome) -> None:
    """So many different approvers, of that wire, before it."""
    run = replace(a_run(call("wire", wire=1, amount=20_000)), events=events)

    assert verdict_on({**TWO, **more}, run).outcome is outcome


def test_what_an_approval_is_not() -> None:
    """Small wires need none; a tool may stand for the event; what is unknown stays open."""
    assert verdict_of(TWO, call("wire", wire=1, amount=10_000)).outcome is N
    assert verdict_of(TWO, call("wire", wire=1)).outcome is I
    assert verdict_of(TWO, call("wire", wire=1, amount=20_000), complete=False).outcome is I
    by_tool = {**TWO, "approval": "approve"}
    granted = [call("approve", wire=1, by="ann"), call("approve", wire=1, by="bob", status="unknown")]
    assert verdict_of(by_tool, *granted, call("wire", wire=1, amount=20_000)).outcome is I
    verdict = verdict_of(by_tool, granted[0], call("wire", wire=1, amount=20_000))
    assert verdict.because == "wire was approved by 1 of 2 different approver(s) of the same wire 1".replace(
        "wire was", "wire (amount 20000, wire 1) was"
    )
    assert places(verdict) == ["/tool_calls/1", "/tool_calls/0"]
    with pytest.raises(ConfigurationError, match="once goes with distinct: 1"):
        check_from_spec({**TWO, "id": "x", "once": True})


# --- budget: sums

SUM = {"kind": "budget", "call": "refund", "sum": "args.amount", "by": ["args.order"], "max": 100}


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([call("refund", order=1, amount=60), call("refund", order=1, amount=40)], P),
        ([call("refund", order=1, amount=60), call("refund", order=1, amount="40.01")], F),
        ([call("refund", order=1, amount=60), call("refund", order=2, amount=60)], P),
        ([call("refund", order=1, amount=60), call("refund", order=1)], I),
        ([call("refund", order=1, amount=160), call("refund", order=1)], F),
        ([call("refund", order=1, amount=60), call("refund", amount=60)], I),
        ([call("refund", amount=60)], P),
        ([call("refund", amount=60), call("refund", amount=60, n=2)], I),
        ([call("refund", order=1, amount=60), call("refund", order=1, amount=60, status="unknown")], F),
        ([call("refund", order=1, amount=60), call("refund", order=1, amount=60, status="denied")], P),
        ([call("refund", order=1, amount=60, status="infra_error"), call("refund", order=1, amount=60)], I),
        (
            [
                call("refund", order=1, amount=60, status="infra_error", idempotent=True),
                call("refund", order=1, amount=60, idempotent=True),
            ],
            P,
        ),
        (
            [
                call("refund", order=1, amount=60, status="infra_error", effect="write"),
                call("refund", order=1, amount=60, effect="write"),
            ],
            F,
        ),
        ([call("other")], N),
    ],
)
def test_budget_of_a_sum(calls: list[ToolCall], outcome: Outcome) -> None:
    """The amounts of one key, each logical call once."""
    assert verdict_of(SUM, *calls).outcome is outcome


def test_the_call_that_passes_a_sum_completes_it() -> None:
    """Sentence, evidence, class, and what an incomplete trace leaves of it."""
    calls = [
        call("refund", order=1, amount=60),
        call("refund", order=1, amount=50),
        call("refund", order=1, amount=1),
    ]
    verdict = verdict_of(SUM, *calls)

    assert places(verdict)[0] == "/tool_calls/1"
    assert verdict.because == (
        "with refund (amount 50, order 1) args.amount of refund for order 1 adds up to more than 100"
    )
    assert (verdict.check_class, verdict.findings[0].subject) == (CheckClass.BUDGET, "refund|args.amount|1")
    assert verdict_of(SUM, *calls, complete=False).outcome is F
    assert verdict_of(SUM, calls[0], complete=False).outcome is I


def test_a_sum_of_a_window() -> None:
    """A window reaches back from each call; without times it is open."""
    spec = {**SUM, "by": [], "within": "P1D"}
    day = 86_400 * S

    def paid(amount: int, days: float) -> ToolCall:
        return call("refund", n=amount, amount=amount, at=(S + int(days * day), 2 * S + int(days * day)))

    assert verdict_of(spec, paid(60, 0), paid(41, 0.5)).outcome is F
    assert verdict_of(spec, paid(60, 0), paid(41, 1)).outcome is P
    assert verdict_of(spec, paid(60, 0), paid(30, 0.9), paid(11, 1.5)).outcome is P
    assert verdict_of(spec, paid(60, 0), call("refund", amount=41, at=(0, 0))).outcome is I
    assert verdict_of(spec, paid(60, 0), call("refund", amount=101, at=(0, 0))).outcome is F
    assert "within P1D" in verdict_of(spec, paid(60, 0), paid(41, 0.5)).because


def test_a_sum_against_another_value() -> None:
    """The limit may stand elsewhere: the total of the order."""
    spec = {**SUM, "max": {"value_of": "result_of.get_order.total"}}
    total = call("get_order", order=1, result={"total": 100})

    assert verdict_of(spec, total, call("refund", order=1, amount=100)).outcome is P
    assert verdict_of(spec, total, call("refund", order=1, amount=101)).outcome is F
    assert verdict_of(spec, call("refund", order=1, amount=1)).outcome is I


# --- budget: limits


def spent(turns: int, failed: int = 0, **tokens: int | None) -> tuple[ModelCall, ...]:
    return tuple(
        ModelCall(index=place, span_id=f"m{place}", failed=place < failed, tokens=Tokens(**tokens))
        for place in range(turns)
    )


def of_limits(**limits: float) -> dict[str, Any]:
    return {"kind": "budget", "limits": limits}


def test_budget_of_calls() -> None:
    """Model calls, tool calls and steps are counted apart; attempts count."""
    run = replace(
        a_run(call("a"), call("a", status="infra_error"), call("a", status="denied")), model_calls=spent(3, 1)
    )

    assert verdict_on(of_limits(model_calls=3, tool_calls=2, steps=2), run).outcome is P
    for name, limit, place in (
        ("model_calls", 2, "/model_calls/2"),
        ("tool_calls", 1, "/tool_calls/1"),
        ("steps", 1, "/model_calls/2"),
    ):
        verdict = verdict_on(of_limits(**{name: limit}), run)
        assert (verdict.outcome, verdict.findings[0].subject, places(verdict)) == (F, name, [place])
    assert verdict_of(of_limits(tool_calls=5), call("a"), complete=False).outcome is I
    assert verdict_of(of_limits(tool_calls=0), call("a"), complete=False).outcome is F
    assert verdict_of(of_limits(model_calls=5), call("a"), missing=["model_calls"]).outcome is I


def test_budget_of_tokens() -> None:
    """Input and output of every model call; what was not reported can only add."""
    whole = replace(a_run(), model_calls=spent(2, input=40, output=10), tokens=Tokens(input=80, output=20))

    assert verdict_on(of_limits(tokens=100), whole).outcome is P
    over = verdict_on(of_limits(tokens=99), whole)
    assert (over.outcome, places(over)) == (F, ["/model_calls/1"])
    assert over.because == "100 token(s); at most 99 allowed"
    part = replace(whole, tokens=Tokens(), model_calls=(*spent(1, input=40, output=10), *spent(1)))
    assert verdict_on(of_limits(tokens=99), part).outcome is I
    assert verdict_on(of_limits(tokens=49), part).outcome is F
    summed = replace(whole, model_calls=spent(1))
    assert places(verdict_on(of_limits(tokens=99), summed)) == ["/tokens"]
    assert verdict_on(of_limits(tokens=100), summed).outcome is P


def test_budget_of_time_and_money() -> None:
    """From the first begin to the last end; cost as the trace says it."""
    run = replace(a_run(call("a", at=(S, 3 * S))), start_ns=S, end_ns=4 * S, cost_usd=0.2)

    assert verdict_on(of_limits(seconds=3, usd=0.2), run).outcome is P
    late = verdict_on(of_limits(seconds=1.5), run)
    assert (late.outcome, places(late)) == (F, ["/tool_calls/0"])
    root = verdict_on(of_limits(seconds=2.5), run)
    assert (root.outcome, root.evidence[0].span_id) == (F, ROOT)
    assert verdict_on(of_limits(usd=0.1), run).findings[0].subject == "usd"
    assert verdict_on(of_limits(usd=0.1), replace(run, cost_usd=None)).outcome is I
    assert verdict_on(of_limits(seconds=9), replace(run, start_ns=0, end_ns=0)).outcome is I
    mixed = verdict_on(of_limits(usd=0.1, seconds=1), replace(run, cost_usd=None))
    assert mixed.outcome is F
    assert "1 more could not be told" in mixed.because


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"kind": "budget"}, "give either limits"),
        ({"kind": "budget", "limits": {}}, "limits is empty"),
        ({"kind": "budget", "limits": {"steps": 1}, "call": "x"}, "give either limits"),
        ({"kind": "budget", "call": "x", "max": 1}, "give either limits"),
        ({**SUM, "max": "lots of it"}, "max"),
        ({**SUM, "within": "1 day"}, "ISO 8601"),
        ({**SUM, "within": "PT"}, "ISO 8601"),
        ({**SUM, "within": 5}, "ISO 8601"),
        ({"kind": "no_flow", "to": {"tool": "x"}, "pattern": 5}, "pattern: expected"),
        ({"kind": "invariant", "state": 5, "must": 1}, "state: expected"),
        ({**SHAPE, "schema": "x"}, "schema: expected"),
        ({**COVERED, "covers": {"result.max": {"ge": 5}}}, "covers compares"),
        ({**COVERED, "covers": {"result.max": 5}}, "covers compares"),
        ({**COVERED, "covers": 5}, "covers: expected"),
        ({"kind": "state_diff"}, "nothing is demanded"),
        ({"kind": "no_flow", "to": {"tool": "x"}}, "from is missing"),
        ({"kind": "invariant", "state": "a.**", "must": 1}, "names no value"),
        ({"kind": "mutually_exclusive", "calls": ["a"]}, "at least two"),
        ({"kind": "args_schema", "call": "x", "must": {"a.b": 1}}, "does not begin with"),
        ({"kind": "args_schema", "call": "x", "must": {"time.hour": 1}}, "time.clock"),
        ({"kind": "termination", "ends": "done"}, "ends"),
    ],
)
def test_a_mistake_in_a_rule_is_named(spec: dict[str, Any], what: str) -> None:
    """Before any run is judged."""
    with pytest.raises(ConfigurationError, match=what):
        check_from_spec({"id": "x", **spec})


# --- state_diff

MOVED = {"kind": "state_diff", "together": ["a.balance", "b.balance"]}


def two(a: int, b: int, **more: Any) -> dict[str, Any]:
    return {"a": {"balance": a}, "b": {"balance": b}, **more}


@pytest.mark.parametrize(
    ("spec", "states", "outcome"),
    [
        (MOVED, [two(5, 5), two(4, 6)], P),
        (MOVED, [two(5, 5), two(5, 5)], P),
        (MOVED, [two(5, 5), two(4, 5)], F),
        (MOVED, [two(5, 5)], I),
        ({"kind": "state_diff", "allowed": [{"path": "a.**"}]}, [two(1, 1), two(2, 1)], P),
        ({"kind": "state_diff", "allowed": [{"path": "a.**"}]}, [two(1, 1), two(2, 2)], F),
        ({"kind": "state_diff", "required": [{"path": "a.balance", "equals": 2}]}, [two(1, 1), two(2, 2)], P),
        ({"kind": "state_diff", "required": [{"path": "a.balance", "equals": 2}]}, [two(1, 1), two(1, 2)], F),
        (
            {**MOVED, "required": [{"path": "a.balance", "equals": 9}], "allowed": []},
            [two(5, 5), two(4, 5)],
            F,
        ),
        ({**MOVED, "missing": "failed"}, [two(5, 5)], F),
        ({**MOVED, "missing": "ignore"}, [two(5, 5)], N),
    ],
)
def test_state_diff(spec: dict[str, Any], states: list[dict[str, Any]], outcome: Outcome) -> None:
    """Required, allowed and joint changes, in one verdict."""
    assert verdict_of(spec, states=states).outcome is outcome


def test_the_parts_of_a_state_rule_add_up() -> None:
    """All findings, and the sum of what was judged."""
    spec = {**MOVED, "required": [{"path": "c", "equals": 9}], "allowed": [{"path": "a.**"}]}
    verdict = verdict_of(spec, states=[two(5, 5), two(4, 5, d=1)])

    assert [finding.subject for finding in verdict.findings] == ["c", "d", "a.balance|b.balance"]
    assert (verdict.numerator, verdict.denominator) == (1, 4)
    assert verdict.check_class is CheckClass.PROTECTION
    assert verdict_of(spec, states=[two(1, 1), two(1, 1)], complete=False).outcome is I
    quiet = {"kind": "state_diff", "allowed": []}
    assert verdict_of(quiet).outcome is N
    assert (
        verdict_of(
            {**quiet, "collateral": "ignore", "required": [{"path": "a", "equals": 1}]},
            states=[{"a": 1}, {"a": 1, "b": 2}],
        ).outcome
        is P
    )


# --- termination

ENDS = {"kind": "termination", "ends": ["completed", "handoff"]}


@pytest.mark.parametrize(
    ("run", "more", "outcome"),
    [
        ({}, {}, P),
        ({"stop": "step_cap"}, {}, F),
        ({"stop": "refused"}, {}, F),
        ({"stop": "unknown"}, {}, I),
        ({"stop": "infra"}, {}, I),
        ({"stop": "infra"}, {"ends": ["infra"]}, P),
        ({"complete": False}, {}, I),
        ({"stop": "step_cap", "complete": False}, {}, I),
        ({"answer": None}, {"answer": {"exists": True}}, F),
        ({"answer": None}, {"answer": {"matches": "x"}}, F),
        ({"answer": None, "missing": ["answer"]}, {"answer": {"exists": True}}, I),
        ({"answer": "done"}, {"answer": {"matches": "done"}}, P),
        ({"answer": "no"}, {"answer": {"matches": "done"}}, F),
    ],
)
def test_termination(run: dict[str, Any], more: dict[str, Any], outcome: Outcome) -> None:
    """The ends that are allowed, and an answer where one is asked for."""
    assert verdict_of({**ENDS, **more}, **run).outcome is outcome


def test_no_call_may_be_pending() -> None:
    """A call of the last turn that was asked for and never ran; one of an earlier turn is not pending."""
    spec = {**ENDS, "pending": False}
    asked_for = call("pay", status="not_executed", turn=1)

    assert verdict_of(spec, call("get", turn=0)).outcome is P
    assert verdict_of(spec).outcome is P
    verdict = verdict_of(spec, call("get", turn=0), asked_for)
    assert (verdict.outcome, verdict.findings[0].subject, places(verdict)) == (
        F,
        "pending|pay",
        ["/tool_calls/1"],
    )
    assert verdict_of(spec, replace(asked_for, turn=0), call("get", turn=1)).outcome is P
    assert verdict_of(spec, replace(asked_for, status="unknown")).outcome is I  # type: ignore[arg-type]
    assert verdict_of(spec, missing=["model_calls"]).outcome is I
    later = replace(a_run(asked_for), model_calls=(ModelCall(index=2, span_id="m"),))
    assert verdict_on(spec, later).outcome is P
    assert verdict_on({"kind": "termination"}, a_run()).check_class is CheckClass.GOAL


# --- no_flow

TAINT = {"kind": "no_flow", "from": ["fetch_web", "read_email"], "to": {"tool": "send", "arg": "args.to"}}


@pytest.mark.parametrize(
    ("answer", "sent", "request_text", "outcome"),
    [
        ("write to eve@x.io now", "eve@x.io", "hello", F),
        ("write to EVE@X.io now", "eve@x.io", "hello", F),
        ("write to eve@x.io now", "Eve <eve@x.io>", "hello", F),
        ("write to eve@x.io now", "eve@x.io", "mail it to eve@x.io", P),
        ("write to eve@x.io now", "bob@x.io", "hello", P),
        ("not-eve@x.io", "eve@x.io", "hello", P),
        ("eve@x.io.evil.com", "eve@x.io", "hello", P),
        ("see https://a.io/x/", "https://a.io/x", "hello", F),
        ({"to": ["eve@x.io"]}, ["eve@x.io", "me@x.io"], "hello", F),
        ("pay 1,250.00 now", 1250, "hello", F),
        ("pay 1250.75 now", 1250, "hello", P),
        ({"amount": 1250.0}, "1250", "hello", F),
        ("abc", "abc", "hello", P),
        ("write to eve@x.io now", "eve@x.io", None, I),
        (MISSING, "eve@x.io", "hello", I),
        (MISSING, "eve@x.io", "for eve@x.io", I),
        (True, "eve@x.io", "hello", P),
    ],
)
def test_no_flow_by_value(answer: object, sent: object, request_text: str | None, outcome: Outcome) -> None:
    """A value that only an untrusted answer holds, found again however it is written."""
    run = [call("fetch_web", result=answer), call("send", to=sent)]

    assert verdict_of(TAINT, *run, request=request_text).outcome is outcome


def test_what_is_trusted_and_what_licenses() -> None:
    """System prompt, user, trusted tools before the call; an event between source and sink."""
    page, sent = call("fetch_web", result="eve@x.io"), call("send", to="eve@x.io")
    run = a_run(page, sent)
    book = {**TAINT, "trusted": ["contacts"]}

    assert verdict_of(book, page, call("contacts", result=["eve@x.io"]), sent).outcome is P
    assert verdict_of(book, page, sent, call("contacts", result=["eve@x.io"])).outcome is F
    assert verdict_of(book, page, call("contacts", result=MISSING), sent).outcome is I
    assert verdict_of(TAINT, page, call("contacts", result=["eve@x.io"]), sent).outcome is F
    system = (Message(role="system", content="write to eve@x.io"), Message(role="user", content="go"))
    assert verdict_on(TAINT, replace(run, history=system)).outcome is P
    mute = (Message(role="user"),)
    assert verdict_on(TAINT, replace(run, history=mute, request=None)).outcome is I
    hello, yes = Message(role="user", content="hi"), Message(role="user", content="to eve@x.io please")
    said = replace(run, history=(hello,), request="hi", model_calls=(turn(0, hello), turn(1, hello, yes)))
    assert verdict_on(TAINT, said).outcome is P
    assert verdict_of({**TAINT, "unless": "approve"}, page, call("approve"), sent).outcome is P
    assert verdict_of({**TAINT, "unless": "approve"}, call("approve"), page, sent).outcome is F
    assert (
        verdict_of({**TAINT, "unless": "approve"}, page, call("approve", status="unknown"), sent).outcome is I
    )


def test_the_order_of_source_and_sink() -> None:
    """A later answer does not flow back; one of the same turn was not seen."""
    page, sent = call("fetch_web", result="eve@x.io", turn=1), call("send", to="eve@x.io", turn=1)

    assert verdict_of(TAINT, sent, page).outcome is P
    assert verdict_of(TAINT, page, sent).outcome is P
    assert verdict_of(TAINT, replace(page, turn=0), sent).outcome is F
    assert verdict_of(TAINT, call("send")).outcome is P
    assert verdict_of(TAINT, call("send", args=None)).outcome is P
    assert verdict_of(TAINT, replace(page, turn=0), call("send", args=None)).outcome is I
    assert verdict_of(TAINT, sent, complete=False).outcome is I
    assert verdict_of(TAINT, replace(page, turn=0), sent, complete=False).outcome is F
    assert verdict_of(TAINT, page).outcome is N
    failed = call("fetch_web", status="tool_error", error="ask eve@x.io", turn=0)
    assert verdict_of(TAINT, failed, sent).outcome is F
    maybe = {**TAINT, "to": {"tool": "send", "arg": "args.to", "where": {"args.kind": "x"}}}
    assert verdict_of(maybe, replace(page, turn=0), sent).outcome is I
    verdict = verdict_of(TAINT, replace(page, turn=0), sent)
    assert verdict.because == "args.to of send (to eve@x.io) came from fetch_web and from nothing trusted"
    assert places(verdict) == ["/tool_calls/1", "/tool_calls/0"]
    assert verdict.findings[0].subject == "send|args.to|fetch_web"


def test_flow_by_order() -> None:
    """Any answer of a source before the call, whatever was sent, unless something licensed it."""
    spec = {**TAINT, "mode": "order", "unless": "approve", "to": {"tool": "send"}}
    page, sent = call("fetch_web", result="hello"), call("send", to="bob@x.io")

    assert verdict_of(spec, page, sent).outcome is F
    assert verdict_of(spec, page, call("approve"), sent).outcome is P
    assert verdict_of(spec, sent, page).outcome is P
    assert verdict_of(spec, page, sent).because == "send (to bob@x.io) was called after fetch_web answered"
    assert verdict_of(spec, call("fetch_web", status="unknown"), sent).outcome is F
    assert verdict_of(spec, call("fetch_web", status="denied"), sent).outcome is P


def test_flow_of_a_pattern() -> None:
    """Of any source, or of the named ones; case counts as the pattern says."""
    spec = {"kind": "no_flow", "pattern": "AKIA[0-9A-Z]{4}", "to": {"tool": "post"}}
    secret = "key AKIA1234 end"

    assert verdict_of(spec, call("post", body=secret)).outcome is F
    assert verdict_of(spec, call("post", body="akia1234", n=[1, True, None])).outcome is P
    assert verdict_of(spec, call("post", args=None)).outcome is I
    assert verdict_of(spec, call("post", body="x" * 10_001)).outcome is I
    assert (
        verdict_of(spec, call("post", body=secret)).because
        == "args of post (body key AKIA1234 end) holds a value of the forbidden pattern"
    )
    of_file = {**spec, "from": "read_file"}
    assert (
        verdict_of(of_file, call("read_file", result=f"a {secret} b"), call("post", body=secret)).outcome is F
    )
    assert verdict_of(of_file, call("read_file", result="nothing"), call("post", body=secret)).outcome is P
    assert (
        verdict_of(of_file, call("read_file", result="hello there"), call("post", body="hello there")).outcome
        is P
    )


def test_flow_to_another_label() -> None:
    """A credential may go where it belongs."""
    spec = {
        "kind": "no_flow",
        "from": "vault",
        "to": {"tool": "type", "arg": "args.text"},
        "differs": [["result.origin", "args.origin"]],
    }
    held = call("vault", result={"origin": "a.io", "password": "hunter22"})

    assert verdict_of(spec, held, call("type", text="hunter22", origin="a.io")).outcome is P
    assert verdict_of(spec, held, call("type", text="hunter22", origin="b.io")).outcome is F
    assert verdict_of(spec, held, call("type", text="hunter22")).outcome is I


# --- when


def test_a_rule_of_some_runs() -> None:
    """``when`` picks the runs; of others the rule is not applicable."""
    spec = {"kind": "forbid", "call": "edit_tests", "when": {"request": {"matches": "(?i)fix"}}}

    assert verdict_of(spec, call("edit_tests"), request="Fix it").outcome is F
    assert verdict_of(spec, call("edit_tests"), request="Add a test").outcome is N
    assert verdict_of(spec, call("edit_tests"), request=None).outcome is I


def test_snapshots_are_those_of_the_run() -> None:
    """A snapshot reported after the call began is not the state before it."""
    spec = {"kind": "forbid", "call": {"tool": "buy", "where": {"state.open": False}}}
    run = a_run(call("buy", at=(50, 60)))
    shut, opened = (
        StateSnapshot(time_ns=t, state={"open": o}, span_id="s") for t, o in ((10, False), (55, True))
    )

    assert verdict_on(spec, replace(run, states=(shut, opened))).outcome is F
    assert verdict_on(spec, replace(run, states=(opened,))).outcome is I


# --- what the kinds share


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ({"exists": {"value_of": "args.y"}}, "exists takes no value_of; give true or false"),
        ({"matches": {"value_of": "args.y"}}, "matches takes no value_of; give a regular expression"),
        ({"gt": {"value_of": 5}}, "value_of takes a path"),
        ({"gt": {"value_of": "args.y", "plus": 1}}, "value_of takes a path"),
        ({"gt": {"value_of": "y"}}, "does not begin with"),
        ({"gt": {"value_of": "args.y", "times": "x"}}, "times takes a number"),
    ],
)
def test_a_comparison_with_another_value_is_checked(condition: object, what: str) -> None:
    """Where the rule is loaded."""
    with pytest.raises(ConfigurationError, match=what):
        check_from_spec(
            {"kind": "forbid", "id": "x", "call": {"tool": "pay", "where": {"args.x": condition}}}
        )


def test_where_there_is_no_call_there_is_no_other_value() -> None:
    """The condition on a request has nothing to look into."""
    when = {"request": {"eq": {"value_of": "args.y"}}}
    with pytest.raises(ConfigurationError, match="eq takes no value_of here; give the value itself"):
        check_from_spec({"kind": "forbid", "id": "x", "call": "pay", "when": when})


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [({"x": 1, "y": "1.0"}, F), ({"x": 1, "y": 2}, P), ({"x": 1}, I), ({"x": 1, "y": None}, P)],
)
def test_two_arguments_of_one_call(arguments: dict[str, object], outcome: Outcome) -> None:
    """A bare ``value_of`` is equality; what is not there is unknown."""
    spec = {"kind": "forbid", "call": {"tool": "move", "where": {"args.x": {"value_of": "args.y"}}}}

    assert verdict_of(spec, call("move", args=arguments)).outcome is outcome


def test_a_multiple_of_what_is_no_number() -> None:
    """It is unknown; null multiplied is, too."""
    spec = {
        "kind": "forbid",
        "call": {"tool": "move", "where": {"args.x": {"gt": {"value_of": "args.y", "times": 2}}}},
    }

    assert verdict_of(spec, call("move", x=5, y=2)).outcome is F
    assert verdict_of(spec, call("move", x=4, y="2")).outcome is P
    assert verdict_of(spec, call("move", x=4, y="two")).outcome is I
    assert verdict_of(spec, call("move", x=4)).outcome is I
    assert "more than 2 × args.y" in verdict_of(spec, call("move", x=5, y=2)).because


def test_a_call_is_not_its_own_counterpart() -> None:
    """Of one tool on both sides, another call is meant."""
    again = {"kind": "forbid", "call": "send", "after": "send"}
    assert verdict_of(again, call("send")).outcome is P
    assert verdict_of(again, call("send"), call("send")).outcome is F
    follow = {"kind": "require_after", "call": "send", "needs": "send"}
    assert verdict_of(follow, call("send")).outcome is F
    ended = {"kind": "require_before", "call": "b", "needs": "a", "until": "b"}
    assert verdict_of(ended, call("a"), call("b")).outcome is P
    assert verdict_of(ended, call("a"), call("b"), call("b", n=1)).outcome is F
    assert (
        verdict_of(
            {**TAINT, "unless": ["send", "fetch_web"]},
            call("fetch_web", result="eve@x.io"),
            call("send", to="eve@x.io"),
        ).outcome
        is F
    )


def test_a_sink_that_the_rule_does_not_mean() -> None:
    """The conditions of ``to`` pick the calls."""
    spec = {**TAINT, "to": {"tool": "send", "arg": "args.to", "where": {"args.kind": "mail"}}}

    assert (
        verdict_of(
            spec, call("fetch_web", result="eve@x.io"), call("send", to="eve@x.io", kind="sms")
        ).outcome
        is N
    )


def test_one_finding_for_each_argument_that_is_reached() -> None:
    """Two arguments, two subjects."""
    spec = {**TAINT, "to": {"tool": "send", "arg": ["args.to", "args.cc"]}}
    verdict = verdict_of(
        spec, call("fetch_web", result="eve@x.io"), call("send", to="eve@x.io", cc="eve@x.io")
    )

    assert [one.subject for one in verdict.findings] == ["send|args.to|fetch_web", "send|args.cc|fetch_web"]


def test_when_speaks_of_agents_too() -> None:
    """A rule for one agent is not applicable to the runs of others; without names it cannot be told."""
    spec = {"kind": "forbid", "call": "pay", "when": {"agent": "reader"}}

    assert verdict_on(spec, replace(a_run(call("pay")), agents=("reader",))).outcome is F
    assert verdict_on(spec, replace(a_run(call("pay")), agents=("payer",))).outcome is N
    assert verdict_on(spec, a_run(call("pay"))).because.endswith("no agent's name was recorded")
    long = {"kind": "forbid", "call": "pay", "when": {"request": {"matches": "x"}}}
    assert "too long for the pattern" in verdict_of(long, call("pay"), request="y" * 10_001).because


def test_verdicts_add_up_to_a_flag() -> None:
    """A failed rule of severity flag flags, a note does not; a signature is check, revision and subject."""
    spec = {"kind": "forbid", "call": "pay"}
    verdict = verdict_of(spec, call("pay"))

    assert verdict.flags
    assert flagged([verdict])
    assert not flagged([verdict_of({**spec, "severity": "note"}, call("pay"))])
    assert verdict.signature() == {("one", verdict.revision, "pay")}
    with pytest.raises(ValueError, match="needs evidence"):
        failed("nothing to show", findings=[])


@pytest.mark.parametrize("carried", [True, False], ids=["the whole conversation", "what is new alone"])
def test_the_user_is_heard_in_every_turn_however_a_turn_is_given(carried: bool) -> None:
    """A confirmation in a later turn is one, also where each turn was given only what had been said since."""
    asked = Message(role="user", content="book it")
    offered = Message(role="assistant", content="for 9 dollars?")
    agreed = Message(role="user", content="yes")
    turns = tuple(
        ModelCall(index=place, span_id=f"{place + 1:016x}", start_ns=place * S + 1, input_messages=messages)
        for place, messages in enumerate([(asked,), (asked, offered, agreed) if carried else (agreed,)])
    )
    rule = {
        "kind": "require_before",
        "call": "book",
        "needs": {"tool": "$user", "where": {"args.text": {"matches": "^yes$"}}},
    }
    first, second = (call("book", turn=place, at=(place * S + 2, place * S + 3)) for place in (0, 1))

    def said_of(one: ToolCall) -> Outcome:
        return verdict_on(rule, replace(a_run(one), history=(asked,), model_calls=turns)).outcome

    assert (said_of(first), said_of(second)) == (F, P)

"""What counts as calling again for nothing, and what only looks like it."""

from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import MISSING, CheckClass, Outcome, ToolCall, Verdict
from redfirst.evaluators.repeats import repeats
from redfirst.evaluators.termination import termination
from redfirst.evaluators.testing import ROOT, a_run, call
from redfirst.evaluators.tool_errors import tool_errors


def counted(*calls: ToolCall, **run: Any) -> int:
    """How many of these calls are repeats."""
    verdict = repeats(a_run(*calls, **run))
    assert verdict.numerator is not None
    assert verdict.denominator is not None
    return verdict.denominator - verdict.numerator


def get(order: str = "A-1", **how: Any) -> ToolCall:
    """A declared read."""
    return call("get_order", order_id=order, **{"effect": "read", "result": {"status": "new"}, **how})


def cancel(order: str = "A-1", **how: Any) -> ToolCall:
    """A declared write."""
    return call("cancel_order", order_id=order, **{"effect": "write", **how})


def control(**how: Any) -> ToolCall:
    """A declared control call."""
    return call("go_on", effect="control", **how)


def plain(tool: str, result: object = "same", **how: Any) -> ToolCall:
    """A call of a tool that declares nothing."""
    return call(tool, result=result, **how)


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        pytest.param([get(), get("A-2"), get()], 1, id="exact repeat"),
        pytest.param([get(), get(), get()], 2, id="the same thing three times"),
        pytest.param([get(), cancel(), get()], 0, id="read again after a write"),
        pytest.param(
            [get(), cancel(status="tool_error"), get()], 1, id="a write that failed changed nothing"
        ),
        pytest.param([get(), cancel(status="infra_error"), get()], 0, id="a write lost on the way may have"),
        pytest.param([get(status="infra_error"), get()], 0, id="retry after infrastructure"),
        pytest.param([get(status="tool_error"), get()], 0, id="one new try after an error"),
        pytest.param(
            [get(status="tool_error"), get(status="tool_error"), get(status="tool_error")],
            1,
            id="blind retry",
        ),
        pytest.param([cancel(), cancel()], 1, id="written twice"),
        pytest.param([cancel(), get(), cancel()], 1, id="written twice with a read between"),
        pytest.param([cancel(status="infra_error"), cancel()], 1, id="a write tried again may be done twice"),
        pytest.param(
            [cancel(status="infra_error", idempotent=True), cancel(idempotent=True)],
            0,
            id="an idempotent write retried",
        ),
        pytest.param(
            [cancel(idempotent=True), cancel(idempotent=True)], 1, id="idempotent, but nothing had failed"
        ),
        pytest.param(
            [
                call("pay", effect="write", status="infra_error", sum=1, idempotency_key="k"),
                call("pay", effect="write", sum=1, idempotency_key="k"),
            ],
            0,
            id="a write retried under its key",
        ),
        pytest.param(
            [
                call("pay", effect="write", status="infra_error", sum=1, idempotency_key="k"),
                call("pay", effect="write", sum=1, idempotency_key="l"),
            ],
            1,
            id="the same intent under another key",
        ),
        pytest.param([get(poll=True), get(poll=True), get(poll=True)], 0, id="polling that was declared"),
        pytest.param([get(result=1), get(result=2)], 1, id="polling that was not"),
        pytest.param(
            [get(request_id="1"), get(request_id="2", note=None)],
            1,
            id="volatile keys and nulls are no intent",
        ),
        pytest.param([get(turn=0), get(turn=0)], 1, id="equal calls of one turn"),
        pytest.param(
            [get(turn=0), cancel(turn=0), get(turn=0)], 1, id="equal calls of one turn beside a write"
        ),
        pytest.param(
            [get(turn=0), cancel(turn=0), get(turn=1)], 0, id="the first may have read before the write"
        ),
        pytest.param([cancel(turn=0), get(turn=0), get(turn=1)], 0, id="in whatever order they are listed"),
        pytest.param([get(turn=0), get(turn=1), cancel(turn=1)], 0, id="the second may have read after it"),
        pytest.param([cancel(turn=0), get(turn=1), get(turn=2)], 1, id="a write before both excuses nothing"),
        pytest.param([get(turn=0), get(turn=1), cancel(turn=2)], 1, id="nor does one after both"),
        pytest.param([get(turn=None), get(turn=None)], 1, id="no turn is known"),
        pytest.param([get(agent="a"), get(agent="b")], 0, id="another agent reads for itself"),
        pytest.param([cancel(agent="a"), cancel(agent="b")], 1, id="a write is a write whoever repeats it"),
        pytest.param(
            [get(), get(status="denied"), get(status="not_executed")], 0, id="what did not run is no call"
        ),
        pytest.param([plain("f", 1), plain("g"), plain("f", 1)], 1, id="undeclared between, answer the same"),
        pytest.param([plain("f", 1), plain("g"), plain("f", 2)], 0, id="undeclared between, answer changed"),
        pytest.param([get(), control(), get(result=2)], 0, id="control between, answer changed"),
        pytest.param([get(), control(), get()], 1, id="control between, answer the same"),
        pytest.param([get(), get(result=2), control()], 1, id="control afterwards excuses nothing"),
        pytest.param([get(turn=0), control(turn=0), get(turn=1, result=2)], 0, id="control beside the first"),
        pytest.param([get(), control(status="tool_error"), get(result=2)], 1, id="a control that failed"),
        pytest.param(
            [control(status="infra_error"), control()], 0, id="control retried after infrastructure"
        ),
        pytest.param(
            [plain("f", status="infra_error"), plain("f")], 0, id="undeclared, retried after infrastructure"
        ),
        pytest.param(
            [plain("f", status="infra_error", idempotent=False), plain("f", idempotent=False)],
            1,
            id="declared not idempotent, tried again after infrastructure",
        ),
        pytest.param(
            [get(status="infra_error", turn=0), get(turn=0)], 0, id="a retry by the tool's own code in a turn"
        ),
        pytest.param(
            [plain("f", status="unknown"), plain("g"), plain("f", status="unknown")],
            1,
            id="status unknown, answers equal",
        ),
    ],
)
def test_what_is_a_repeat(calls: list[ToolCall], count: int) -> None:
    """Only a call that could bring nothing new is counted."""
    assert counted(*calls) == count


def search(n: int, result: object, **how: Any) -> ToolCall:
    """A declared read with arguments of its own."""
    return call("search", q=f"q{n}", **{"effect": "read", "result": result, **how})


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        pytest.param([search(n, ["page"] * 20) for n in range(4)], 2, id="four answers alike"),
        pytest.param([search(n, ["page"] * 20) for n in range(2)], 0, id="two are no pattern"),
        pytest.param([search(n, {"hits": [], "next": None}) for n in range(3)], 1, id="three times nothing"),
        pytest.param([search(n, ["x"]) for n in range(4)], 0, id="short answers may be alike by chance"),
        pytest.param([search(n, ["x"]) for n in range(6)], 2, id="but not for ever"),
        pytest.param([search(n, [n]) for n in range(4)], 0, id="answers differ"),
        pytest.param([search(n, [], turn=0) for n in range(4)], 0, id="asked at once, not seen"),
        pytest.param([search(n, [], effect="write") for n in range(4)], 0, id="writes all answer ok"),
        pytest.param(
            [search(n, ["page"] * 20, effect=None) for n in range(4)], 0, id="undeclared tools may be writes"
        ),
        pytest.param(
            [search(n, [], effect=None) for n in range(4)], 2, id="but not when the answer is empty"
        ),
        pytest.param([search(n, [], poll=True) for n in range(4)], 0, id="polling"),
        pytest.param([call("search", q="a", page=n, effect="read") for n in range(5)], 0, id="paging"),
        pytest.param([search(n, [], agent=str(n)) for n in range(4)], 0, id="each agent once"),
    ],
)
def test_what_is_no_progress(calls: list[ToolCall], count: int) -> None:
    """Three answers alike to different questions, one after the other, is standing still."""
    assert counted(*calls) == count


def around(*results: tuple[object, object]) -> list[ToolCall]:
    """Rounds of a write and a read."""
    return [one for a, b in results for one in (plain("go", a), plain("look", b))]


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        pytest.param([cancel(), get()] * 3, 4, id="a write and a read, round and round"),
        pytest.param([get("A"), get("B"), get("C")] * 3, 6, id="three reads, round and round"),
        pytest.param(around((1, 1), (2, 2), (3, 3)), 0, id="answers change"),
        pytest.param(
            [get(poll=True), plain("f", None), get(poll=True), plain("g", None)], 0, id="polling between"
        ),
    ],
)
def test_what_is_a_cycle(calls: list[ToolCall], count: int) -> None:
    """A block that comes back three times with the same answers is a loop."""
    assert counted(*calls) == count


def test_a_reread_after_each_of_three_equal_writes_is_a_cycle() -> None:
    """The reads after a repeated write are excused one by one, not when they go round."""
    verdict = repeats(a_run(*[cancel(), get()] * 3))

    assert {finding.subject for finding in verdict.findings} == {
        'cancel_order|{"order_id":"A-1"}',
        'get_order|{"order_id":"A-1"}',
    }
    assert "cycle of 2 calls" in verdict.because


def test_a_failure_says_what_was_repeated() -> None:
    """The subject is the same in every run; the evidence is every call that was counted."""
    verdict = repeats(a_run(get(), get(), get()))

    assert verdict.outcome is Outcome.FAILED
    assert (verdict.numerator, verdict.denominator, verdict.score) == (1, 3, pytest.approx(1 / 3))
    assert [finding.subject for finding in verdict.findings] == ['get_order|{"order_id":"A-1"}']
    assert [item.span_id for item in verdict.evidence] == ["0000000000000002", "0000000000000003"]
    assert verdict.because == (
        'get_order {"order_id":"A-1"} was called again and answered the same (2 times)'
    )


def test_without_answers_a_repeat_is_told_from_what_ran_between() -> None:
    """Where contents are not recorded a second equal call is still a second equal call."""
    verdict = repeats(a_run(get(result=MISSING), get(result=MISSING)))

    assert "with nothing changed in between" in verdict.because


def test_long_arguments_are_shortened_alike() -> None:
    """A subject stays short and still tells two long texts apart."""
    ones = repeats(a_run(get("x" * 500), get("x" * 500)))
    twos = repeats(a_run(get("x" * 499 + "y"), get("x" * 499 + "y")))

    assert len(ones.findings[0].subject) < 120
    assert ones.findings[0].subject != twos.findings[0].subject


def test_many_findings_are_summed_up() -> None:
    """The sentence names three and says that there are more."""
    orders = [f"A-{n}" for n in range(5)]
    verdict = repeats(a_run(*[get(order) for order in orders], *[get(order) for order in orders]))

    assert len(verdict.findings) == 5
    assert verdict.because.endswith("; …")


def test_a_loop_to_a_cap_does_not_count_what_never_ran() -> None:
    """The call that was asked for when the cap cut the run is no repeat."""
    loop = [get() for _ in range(3)]

    assert counted(*loop, get(status="not_executed"), stop="step_cap") == 2
    assert counted(*loop, get(status="unknown", result=MISSING), stop="step_cap") == 2
    assert counted(*loop, get(status="unknown"), stop="step_cap") == 3


def test_no_call_is_nothing_to_judge() -> None:
    """0/0 is not applicable."""
    assert repeats(a_run()).outcome is Outcome.NOT_APPLICABLE
    assert repeats(a_run(get(status="denied"))).outcome is Outcome.NOT_APPLICABLE


def test_calls_without_arguments_cannot_be_compared() -> None:
    """Two calls of a tool of which one was not recorded are no pass; a sure repeat is still a failure."""
    unread = call("get_order", args=None)

    assert repeats(a_run(unread, get())).outcome is Outcome.INCONCLUSIVE
    assert repeats(a_run(unread, call("other"))).outcome is Outcome.PASSED
    assert repeats(a_run(unread, get(), get())).outcome is Outcome.FAILED


def test_a_write_tried_again_says_why_it_counts() -> None:
    """Neither idempotent nor under one key: the first may have taken effect."""
    verdict = repeats(a_run(cancel(status="infra_error"), cancel()))

    assert verdict.because == (
        'cancel_order {"order_id":"A-1"} was written again after a failure whose effect is unknown'
    )
    assert "was written again" in repeats(a_run(cancel(), cancel())).because
    undeclared = [plain("f", status="infra_error", idempotent=False), plain("f", idempotent=False)]
    assert "was called again after a failure whose effect is unknown" in repeats(a_run(*undeclared)).because


OPEN = MISSING
ASKED = {"status": "unknown", "result": MISSING}


@pytest.mark.parametrize(
    ("calls", "why"),
    [
        pytest.param([get(), control(), get(result=OPEN)], "what changed", id="control, an answer unread"),
        pytest.param(
            [get(result=OPEN), plain("f"), get()], "what changed", id="undeclared, an answer unread"
        ),
        pytest.param(
            [get(), cancel(status="unknown"), get()], "what changed", id="the write between may have failed"
        ),
        pytest.param(
            [get(), control(status="unknown"), get(result=2)], "what changed", id="so may the control"
        ),
        pytest.param([get(**ASKED), get()], "whether it ran", id="the first may not have run, or failed"),
        pytest.param([cancel(**ASKED), cancel()], "whether it ran", id="nor the write before"),
        pytest.param(
            [get(status="unknown"), cancel(), get(status="tool_error"), get()],
            "how the try before",
            id="one try or two",
        ),
        pytest.param(
            [search(0, ["page"] * 20), search(1, OPEN), search(2, ["page"] * 20)],
            "not every answer",
            id="standing still, perhaps",
        ),
        pytest.param(
            [search(0, ["a"] * 20), search(1, OPEN), search(2, ["b"] * 20), search(3, ["b"] * 20)],
            "not every answer",
            id="standing still from the unread one on, perhaps",
        ),
        pytest.param(
            [search(0, [], effect=None), search(1, OPEN, effect=None), search(2, [], effect=None)],
            "not every answer",
            id="nothing found, perhaps",
        ),
        pytest.param(
            [
                one
                for n, answer in enumerate([1, OPEN, 1])
                for one in (get("A", agent=f"{n}"), get("B", agent=f"{n}", result=answer))
            ],
            "not every answer",
            id="going round, perhaps",
        ),
        pytest.param(
            [get(at=(0, 0), turn=None), cancel(at=(0, 0), turn=None), get(at=(0, 0), turn=None)],
            "what changed",
            id="in no known order",
        ),
        pytest.param(
            [get(at=(0, 0), turn=None), get(at=(0, 0), turn=None), cancel(at=(0, 0), turn=None)],
            "what changed",
            id="in whatever order they are listed, too",
        ),
    ],
)
def test_what_hangs_on_something_unread_is_open(calls: list[ToolCall], why: str) -> None:
    """Neither a repeat nor none."""
    verdict = repeats(a_run(*calls))

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert why in verdict.because


@pytest.mark.parametrize(
    "calls",
    [
        pytest.param([search(0, ["a"]), search(1, OPEN), search(2, ["a"])], id="short answers are chance"),
        pytest.param([search(0, 1), search(1, OPEN), search(2, 2), search(3, 3)], id="answers that changed"),
        pytest.param([plain("f", ["x"], q=1), plain("f", OPEN, q=2), plain("f", OPEN, q=3)], id="not empty"),
        pytest.param([get("A"), get("B", result=OPEN)], id="two calls"),
    ],
)
def test_an_unread_answer_that_decides_nothing_harms_nothing(calls: list[ToolCall]) -> None:
    """Whatever was answered, none of these is a repeat."""
    assert repeats(a_run(*calls)).outcome is Outcome.PASSED


@pytest.mark.parametrize("again", [get, cancel])
def test_what_a_cap_cut_off_may_not_have_run(again: Any) -> None:
    """An unanswered call of the last turn is a repeat by being asked for, but not where a cap cut that turn off."""
    calls = [again(), again(**ASKED)]

    assert repeats(a_run(*calls)).outcome is Outcome.FAILED
    capped = repeats(a_run(*calls, stop="step_cap"))
    assert (capped.outcome, "whether it ran" in capped.because) == (Outcome.INCONCLUSIVE, True)
    assert repeats(a_run(again(), again(), call("f"), stop="step_cap")).outcome is Outcome.FAILED


def test_open_calls_are_in_no_share() -> None:
    """One repeat of two calls that could be judged, and one that could not."""
    verdict = repeats(a_run(get(), get(), get(**ASKED), stop="step_cap"))

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)
    assert verdict.because.endswith("; 1 more could not be told")


@pytest.mark.parametrize(
    ("how", "why"),
    [({"complete": False}, "incomplete"), ({"missing": ["tool_calls"]}, "tool calls were not recorded")],
)
@pytest.mark.parametrize("check", [repeats, tool_errors], ids=["repeats", "tool_errors"])
def test_what_is_not_there_is_no_evidence(check: Any, how: dict[str, Any], why: str) -> None:
    """Calls that may be missing pass nothing and leave nothing without object; a failure that was seen stays."""
    for calls in ([], [get()]):
        verdict = check(a_run(*calls, **how))
        assert (verdict.outcome, why in verdict.because) == (Outcome.INCONCLUSIVE, True)
    assert check(a_run(*[get(status="tool_error")] * 3, **how)).outcome is Outcome.FAILED


def test_a_call_without_a_name_may_repeat_another() -> None:
    """Two calls of which one has no name cannot be compared; a single one can repeat nothing."""
    nameless = {"missing": ["tool_calls[0].name"]}

    assert "name of a call" in repeats(a_run(get(), plain("span"), **nameless)).because
    assert repeats(a_run(get(), **nameless)).outcome is Outcome.PASSED
    assert errors(get(), **nameless).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("stop", "outcome"),
    [
        ("completed", Outcome.PASSED),
        ("handoff", Outcome.PASSED),
        ("refused", Outcome.PASSED),
        ("step_cap", Outcome.FAILED),
        ("token_cap", Outcome.FAILED),
        ("time_cap", Outcome.FAILED),
        ("loop_cut", Outcome.FAILED),
        ("error", Outcome.FAILED),
        ("abandoned", Outcome.FAILED),
        ("infra", Outcome.INCONCLUSIVE),
        ("parked", Outcome.INCONCLUSIVE),
        ("unknown", Outcome.INCONCLUSIVE),
    ],
)
def test_how_a_run_may_end(stop: str, outcome: Outcome) -> None:
    """By itself is right, cut off is wrong, and what says nothing of the agent is neither."""
    verdict = termination(a_run(call("f"), stop=stop))

    assert verdict.outcome is outcome
    assert [finding.subject for finding in verdict.findings] == ([stop] if outcome is Outcome.FAILED else [])


@pytest.mark.parametrize(
    ("stop", "at_root", "elsewhere"),
    [
        ("completed", Outcome.PASSED, Outcome.INCONCLUSIVE),
        ("step_cap", Outcome.FAILED, Outcome.INCONCLUSIVE),
        ("error", Outcome.FAILED, Outcome.INCONCLUSIVE),
        ("refused", Outcome.PASSED, Outcome.INCONCLUSIVE),
        ("handoff", Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
        ("abandoned", Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
        ("unknown", Outcome.INCONCLUSIVE, Outcome.INCONCLUSIVE),
    ],
)
def test_only_the_root_ends_an_incomplete_run(stop: str, at_root: Outcome, elsewhere: Outcome) -> None:
    """What another span says of the end, and what did not follow, may be undone by a missing span."""
    run = a_run(stop=stop, complete=False)
    inner = replace(run, termination=replace(run.termination, span_id="0000000000000001"))

    assert (termination(run).outcome, termination(inner).outcome) == (at_root, elsewhere)


def test_a_cap_is_named() -> None:
    """The sentence says which cap, and the evidence where the run ended."""
    verdict = termination(a_run(stop="step_cap", cap=12))

    assert verdict.because == "the run was stopped at its step cap of 12"
    assert verdict.evidence[0].span_id == ROOT


def errors(*calls: ToolCall, **run: Any) -> Verdict:
    """The verdict on errors of these calls."""
    return tool_errors(a_run(*calls, **run))


def test_errors_are_counted_over_calls_that_ran() -> None:
    """Denied calls are no calls; both kinds of error are errors."""
    verdict = errors(
        call("f"),
        call("f", status="tool_error", error="no\nstack"),
        call("g", status="infra_error"),
        call("g", status="denied"),
    )

    assert (verdict.numerator, verdict.denominator) == (1, 3)
    assert [finding.subject for finding in verdict.findings] == ["f|tool_error", "g|infra_error"]
    assert verdict.findings[0].evidence[0].note == "no"
    assert verdict.check_class is CheckClass.TRAJECTORY


def test_no_error_is_a_pass_only_when_each_end_is_known() -> None:
    """Ok everywhere passes, unknown anywhere does not, no call is nothing to judge."""
    assert errors(call("f")).outcome is Outcome.PASSED
    assert errors(call("f"), call("g", status="unknown")).outcome is Outcome.INCONCLUSIVE
    part = errors(call("f", status="tool_error"), call("g", status="unknown"), call("h"))
    assert (part.numerator, part.denominator) == (1, 2)
    assert part.because == "1 of 2 call(s) ended in an error: f; 1 more could not be told"
    assert errors().outcome is Outcome.NOT_APPLICABLE

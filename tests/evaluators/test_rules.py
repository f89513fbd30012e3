"""The rules file and the three kinds of rules: what they accept, what they accuse, and what they leave open."""

from dataclasses import replace
from typing import Any

import pytest

from redfirst.evaluators import MISSING, CheckClass, ConfigurationError, Outcome, Severity, ToolCall, Verdict
from redfirst.evaluators.check import check_from_spec, judge
from redfirst.evaluators.rule_kinds.calls import look
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.rules import load_rules
from redfirst.evaluators.testing import a_run, call

VERIFY = {
    "kind": "require_before",
    "id": "verify",
    "call": "cancel_order",
    "needs": {"tool": "verify_identity", "where": {"result.verified": True}},
    "same": [["args.customer_id", "result_of.get_order.customer_id"]],
}
APPROVE = {
    "kind": "require_before",
    "id": "approve",
    "call": {"tool": "refund", "where": {"args.amount": {"gt": 100}}},
    "needs": "approve",
    "same": ["args.order_id"],
}
ONE = {"kind": "max_calls", "id": "one", "call": "refund", "max": 1, "same": ["args.order_id"]}
QUIET = {"kind": "forbid", "id": "quiet", "call": ["refund", "cancel_order"], "after": "escalate"}


def verdict_of(
    spec: dict[str, Any], *calls: ToolCall, run: dict[str, Any] | None = None, **more: Any
) -> Verdict:
    """The verdict of one rule on these calls."""
    return judge(a_run(*calls, **(run or {})), [check_from_spec({**spec, **more})])[0]


def order(customer: object = "C-77", **how: Any) -> ToolCall:
    return call("get_order", order_id="B-7", **{"result": {"customer_id": customer}, **how})


def verify(customer: str = "C-77", verified: object = True, **how: Any) -> ToolCall:
    return call("verify_identity", customer_id=customer, **{"result": {"verified": verified}, **how})


def cancel(**how: Any) -> ToolCall:
    return call("cancel_order", order_id="B-7", **how)


def refund(amount: object = 120, order_id: str = "A-7", **how: Any) -> ToolCall:
    return call("refund", order_id=order_id, amount=amount, **how)


def approve(order_id: str = "A-7", **how: Any) -> ToolCall:
    return call("approve", order_id=order_id, **how)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        pytest.param([order(), verify(), cancel()], Outcome.PASSED, id="verified first"),
        pytest.param([order(), cancel()], Outcome.FAILED, id="not verified"),
        pytest.param([order(), verify("C-99"), cancel()], Outcome.FAILED, id="another customer"),
        pytest.param([order(), verify(verified=False), cancel()], Outcome.FAILED, id="verification said no"),
        pytest.param(
            [order(), verify(status="tool_error"), cancel()], Outcome.FAILED, id="verification failed"
        ),
        pytest.param(
            [order(), verify(status="infra_error"), cancel()], Outcome.FAILED, id="verification was lost"
        ),
        pytest.param([order(), cancel(), verify()], Outcome.FAILED, id="verified afterwards"),
        pytest.param([order(turn=0), verify(turn=1), cancel(turn=1)], Outcome.FAILED, id="in the same turn"),
        pytest.param(
            [order(), verify(result={}), cancel()], Outcome.INCONCLUSIVE, id="the answer was not recorded"
        ),
        pytest.param(
            [order(), verify(verified="yes"), cancel()], Outcome.INCONCLUSIVE, id="an answer of another type"
        ),
        pytest.param(
            [order(), verify(status="unknown"), cancel()], Outcome.INCONCLUSIVE, id="its end is unknown"
        ),
        pytest.param([verify(), cancel()], Outcome.INCONCLUSIVE, id="no order to join through"),
        pytest.param([cancel()], Outcome.FAILED, id="no verification at all needs no key"),
        pytest.param([order(), verify()], Outcome.NOT_APPLICABLE, id="nothing was cancelled"),
        pytest.param([order(), cancel(status="denied")], Outcome.NOT_APPLICABLE, id="a guard refused it"),
        pytest.param([order(), cancel(status="infra_error")], Outcome.FAILED, id="a lost write counts"),
        pytest.param(
            [order(result='{"customer_id": "C-77"}'), verify(), cancel()], Outcome.PASSED, id="JSON as text"
        ),
    ],
)
def test_verify_before_cancel(calls: list[ToolCall], outcome: Outcome) -> None:
    """Only an earlier, successful verification of the same customer licenses the call."""
    assert verdict_of(VERIFY, *calls).outcome is outcome


def test_the_accusation_reads_like_one() -> None:
    """The sentence, the subject and both places of the evidence."""
    verdict = verdict_of(VERIFY, order(), verify("C-99"), cancel())

    assert verdict.because == (
        "cancel_order (order B-7) ran without an earlier verify_identity of the same customer C-77;"
        " verify_identity was called for C-99"
    )
    assert [finding.subject for finding in verdict.findings] == ["cancel_order|C-77"]
    assert [item.span_id[-1] for item in verdict.evidence] == ["3", "2"]
    assert (verdict.numerator, verdict.denominator) == (0, 1)
    assert (verdict.check_class, verdict.severity) == (CheckClass.TRAJECTORY, Severity.FLAG)


@pytest.mark.parametrize(
    ("near", "note"),
    [
        ([verify(status="tool_error"), cancel()], "ended with tool_error"),
        ([verify(verified=False), cancel()], "was called, but not with result.verified is true"),
        ([cancel(), verify()], "came only afterwards"),
        ([verify("C-1"), verify("C-2", verified=False), cancel()], "was called for C-1"),
    ],
)
def test_the_nearest_miss_is_named(near: list[ToolCall], note: str) -> None:
    """The call that came closest says what was wrong with it."""
    assert note in verdict_of(VERIFY, order(), *near).because


def test_a_call_of_the_same_turn_is_named_as_such() -> None:
    """The model asked for both without seeing either."""
    verdict = verdict_of(VERIFY, order(turn=0), verify(turn=1), cancel(turn=1))

    assert "was called at the same time" in verdict.because


def test_order_executed_counts_what_ran_first() -> None:
    """For the safety of state it is enough that one ended before the other began."""
    calls = [order(turn=0), verify(turn=1), cancel(turn=1)]

    assert verdict_of(VERIFY, *calls, order="executed").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        pytest.param([approve(), refund()], Outcome.PASSED, id="approved"),
        pytest.param([approve("B-1"), refund()], Outcome.FAILED, id="another order"),
        pytest.param([refund(100)], Outcome.NOT_APPLICABLE, id="at the limit"),
        pytest.param([refund("249.00")], Outcome.FAILED, id="money as text"),
        pytest.param([call("refund", order_id="A-7")], Outcome.INCONCLUSIVE, id="no amount"),
        pytest.param([call("refund", args=None)], Outcome.INCONCLUSIVE, id="no arguments"),
        pytest.param(
            [approve(), call("refund", order_id="A-7")], Outcome.PASSED, id="no amount, but approved"
        ),
        pytest.param([approve(), call("refund", amount=120)], Outcome.INCONCLUSIVE, id="no order"),
        pytest.param(
            [refund(), call("refund", order_id="A-8")], Outcome.FAILED, id="a violation beats an unknown"
        ),
    ],
)
def test_approval_above_a_limit(calls: list[ToolCall], outcome: Outcome) -> None:
    """A missing amount neither passes nor fails."""
    assert verdict_of(APPROVE, *calls).outcome is outcome


def test_what_is_missing_may_be_decided_by_the_rule() -> None:
    """``missing: failed`` accuses, ``missing: ignore`` leaves the call out; the default leaves it open."""
    unread = call("refund", order_id="A-7")

    assert verdict_of(APPROVE, unread, missing="failed").outcome is Outcome.FAILED
    ignored = verdict_of(APPROVE, unread, missing="ignore")
    assert (ignored.outcome, "could be judged" in ignored.because) == (Outcome.NOT_APPLICABLE, True)
    assert verdict_of(APPROVE, unread, approve("B"), refund(order_id="B"), missing="ignore").denominator == 1


def test_one_approval_may_serve_one_refund() -> None:
    """With ``once`` every call needs an approval of its own; the later call is the one that lacks it."""
    calls = [approve(), refund(), refund(130)]

    assert verdict_of(APPROVE, *calls).outcome is Outcome.PASSED
    verdict = verdict_of(APPROVE, *calls, once=True)
    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (Outcome.FAILED, 1, 2)
    assert verdict.evidence[0].span_id.endswith("3")
    assert "of its own of the same order A-7; approve already served another call" in verdict.because
    assert verdict_of(APPROVE, approve(), *calls, once=True).outcome is Outcome.PASSED


def test_once_leaves_open_what_was_not_recorded() -> None:
    """A second approval that may have succeeded, or a refund that may be small, is no violation."""
    assert verdict_of(
        APPROVE, approve(), approve(status="unknown"), refund(), refund(), once=True
    ).outcome is (Outcome.INCONCLUSIVE)
    assert verdict_of(APPROVE, approve(), refund(), call("refund", order_id="A-7"), once=True).outcome is (
        Outcome.INCONCLUSIVE
    )


def test_an_incomplete_trace_proves_no_absence() -> None:
    """The approval may be among the spans that are missing."""
    verdict = verdict_of(APPROVE, refund(), run={"complete": False})

    assert (verdict.outcome, "incomplete" in verdict.because) == (Outcome.INCONCLUSIVE, True)


LACKS = pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"complete": False}, "the trace is incomplete"),
        ({"missing": ["tool_calls"]}, "tool calls were not recorded (not recorded)"),
        ({"missing": ["tool_calls[0].name"]}, "the name of a call is missing (not recorded)"),
    ],
    ids=["incomplete", "no calls", "a nameless call"],
)


@LACKS
@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        (APPROVE, []),
        (APPROVE, [approve(), refund()]),
        (APPROVE, [refund()]),
        (QUIET, []),
        (QUIET, [refund()]),
        (ONE, []),
        (ONE, [refund()]),
        ({"kind": "forbid", "id": "never", "call": "x"}, [refund()]),
        ({"kind": "forbid", "id": "never", "call": "x"}, []),
        (VERIFY, [order(), verify("C-1"), cancel()]),
    ],
    ids=lambda value: value["id"] if isinstance(value, dict) else f"{len(value)} calls",
)
@pytest.mark.parametrize("missing", [None, "failed", "ignore"])
def test_nothing_is_concluded_from_calls_that_are_not_there(
    spec: dict[str, Any], calls: list[ToolCall], how: dict[str, Any], why: str, missing: str | None
) -> None:
    """Where calls may be missing no rule passes, is without object, or accuses by an absence, whatever it says."""
    verdict = verdict_of({**spec, "missing": missing}, *calls, run=how)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert why in verdict.because


@LACKS
@pytest.mark.parametrize(
    ("spec", "calls"),
    [
        (ONE, [refund(), refund(1)]),
        (QUIET, [call("escalate"), refund()]),
        ({"kind": "forbid", "id": "never", "call": "refund"}, [refund()]),
    ],
    ids=["max_calls", "forbid after", "forbid"],
)
def test_a_violation_that_was_seen_stays_one(
    spec: dict[str, Any], calls: list[ToolCall], how: dict[str, Any], why: str
) -> None:
    """More calls could not undo it; those that look right are not counted as right."""
    verdict = verdict_of(spec, *calls, refund(order_id="A-8"), run=how)

    assert why
    assert verdict.outcome is Outcome.FAILED
    assert verdict.numerator == 0


@LACKS
def test_the_latest_answer_may_be_missing(how: dict[str, Any], why: str) -> None:
    """A value that is joined through an earlier result is unknown where a later result may be missing."""
    run = a_run(order("C-77"), cancel(), **how)

    assert look("result_of.get_order.customer_id", run.tool_calls[1], run, "decided") is MISSING, why


def test_what_was_only_asked_for_stands_in_the_outputs_of_the_model() -> None:
    """A rule about calls that did not run is open where an output is missing; others are not concerned."""
    unread = {"missing": ["model_calls[1].output"]}
    never = {"kind": "forbid", "id": "never", "call": "x"}

    assert verdict_of(never, refund(), run=unread).outcome is Outcome.PASSED
    asked = verdict_of(never, refund(), run=unread, attempts=True)
    assert (asked.outcome, "model_calls[1].output is missing" in asked.because) == (
        Outcome.INCONCLUSIVE,
        True,
    )
    assert verdict_of(APPROVE, refund(), run=unread, attempts=True).outcome is Outcome.FAILED


def test_unknown_calls_are_in_no_share() -> None:
    """One in order, one violation and one that cannot be told: one of two."""
    calls = [approve(), refund(), refund(order_id="A-8"), call("refund", order_id="A-9")]
    verdict = verdict_of(APPROVE, *calls)

    assert (verdict.numerator, verdict.denominator) == (1, 2)
    assert verdict.because.endswith("; 1 more could not be told")
    ignored = verdict_of(APPROVE, approve(), refund(), calls[3], missing="ignore")
    assert (ignored.outcome, ignored.denominator) == (Outcome.PASSED, 1)
    assert ignored.because == "1 call(s) of refund, each after approve; 1 more could not be told"
    accused = verdict_of(APPROVE, *calls, missing="failed")
    assert (accused.numerator, accused.denominator, "could not" in accused.because) == (1, 3, False)


@pytest.mark.parametrize(
    ("left", "right", "outcome"),
    [
        (120, "120.00", Outcome.PASSED),
        ("7", 7.0, Outcome.PASSED),
        ("1.50", "1.5", Outcome.PASSED),
        (7, 8, Outcome.FAILED),
        ("007", "7", Outcome.FAILED),
        ("007", 7, Outcome.INCONCLUSIVE),
        (True, 1, Outcome.INCONCLUSIVE),
        ("A", 7, Outcome.INCONCLUSIVE),
    ],
)
def test_same_is_the_equality_of_conditions(left: object, right: object, outcome: Outcome) -> None:
    """A number equals text that spells it; between other types nothing is concluded."""
    spec = {**APPROVE, "call": "refund"}

    assert verdict_of(spec, approve(left), refund(order_id=right)).outcome is outcome  # type: ignore[arg-type]


def test_attempts_count_what_did_not_run() -> None:
    """With ``attempts`` a call that was denied is an offence too, and the sentence says that it did not run."""
    verdict = verdict_of(APPROVE, refund(status="denied"), attempts=True)

    assert verdict.outcome is Outcome.FAILED
    assert "was asked for (denied)" in verdict.because


def test_a_need_may_count_tries() -> None:
    """``status`` widens what meets a need."""
    needs = {"tool": "approve", "status": ["ok", "tool_error"]}

    assert verdict_of(APPROVE, approve(status="tool_error"), refund(), needs=needs).outcome is Outcome.PASSED


def test_a_call_does_not_license_itself() -> None:
    """A rule whose need is its own tool asks for an earlier call."""
    spec = {**APPROVE, "call": "approve", "same": []}

    assert verdict_of(spec, approve()).outcome is Outcome.FAILED
    assert verdict_of(spec, approve(), approve("B"), once=True).numerator == 1


def test_many_violations_are_summed_up() -> None:
    """Three are told, the rest are counted; each has its finding."""
    verdict = verdict_of(APPROVE, *[refund(order_id=f"A-{n}") for n in range(5)])

    assert (len(verdict.findings), verdict.because.endswith("; and 2 more")) == (5, True)


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        pytest.param([refund(), call("escalate")], Outcome.PASSED, id="before"),
        pytest.param([call("escalate"), refund()], Outcome.FAILED, id="after"),
        pytest.param(
            [call("escalate", status="tool_error"), refund()], Outcome.PASSED, id="it did not succeed"
        ),
        pytest.param([call("escalate", status="unknown"), refund()], Outcome.INCONCLUSIVE, id="it may have"),
        pytest.param([call("escalate")], Outcome.NOT_APPLICABLE, id="nothing to forbid"),
        pytest.param([call("escalate"), refund(status="denied")], Outcome.NOT_APPLICABLE, id="refused"),
    ],
)
def test_forbidden_after(calls: list[ToolCall], outcome: Outcome) -> None:
    """No write once the case was handed to a person."""
    assert verdict_of(QUIET, *calls).outcome is outcome


def test_forbidden_after_says_after_what() -> None:
    """The completing event is the forbidden call; what opened the ban stands beside it."""
    verdict = verdict_of(QUIET, call("escalate", order_id="A-7"), refund(), same=["args.order_id"])

    assert verdict.because == (
        "refund (order A-7) was called after escalate of the same order A-7, which is forbidden"
    )
    assert [finding.subject for finding in verdict.findings] == ["refund|A-7"]
    assert [item.span_id[-1] for item in verdict.evidence] == ["2", "1"]


def test_forbidden_at_all() -> None:
    """Every call of the run is judged; a run without calls gives nothing to judge."""
    never = {"kind": "forbid", "id": "never", "call": "delete_account"}

    passed = verdict_of(never, refund(), call("f", status="denied"))
    assert (passed.outcome, passed.denominator) == (Outcome.PASSED, 1)
    failed = verdict_of(never, call("delete_account", user="x"))
    assert failed.because == "delete_account (user x) was called, which is forbidden"
    assert [finding.subject for finding in failed.findings] == ["delete_account"]
    assert verdict_of(never).outcome is Outcome.NOT_APPLICABLE
    asked = verdict_of(never, call("delete_account", status="denied"), attempts=True)
    assert "was asked for (denied)" in asked.because


def test_forbidden_with_a_condition() -> None:
    """Calls of the tool are judged; one whose argument was not recorded is left open."""
    force = {"kind": "forbid", "id": "force", "call": {"tool": "push", "where": {"args.force": True}}}

    assert verdict_of(force, call("push", force=False)).denominator == 1
    assert "where args.force is true" in verdict_of(force, call("push", force=True)).because
    assert verdict_of(force, call("push")).outcome is Outcome.INCONCLUSIVE
    assert verdict_of(force, refund()).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        pytest.param([refund()], Outcome.PASSED, id="one"),
        pytest.param([refund(), refund(5)], Outcome.FAILED, id="two of one order"),
        pytest.param([refund(), refund(order_id="A-8")], Outcome.PASSED, id="two orders"),
        pytest.param([refund(status="tool_error"), refund(5)], Outcome.FAILED, id="a failed try counts"),
        pytest.param([refund(status="denied"), refund()], Outcome.PASSED, id="a refused one does not"),
        pytest.param([refund(status="infra_error"), refund()], Outcome.INCONCLUSIVE, id="perhaps done twice"),
        pytest.param(
            [refund(status="infra_error", effect="write"), refund(effect="write")],
            Outcome.FAILED,
            id="a declared write",
        ),
        pytest.param(
            [refund(status="infra_error", idempotent=True), refund(idempotent=True)],
            Outcome.PASSED,
            id="idempotent",
        ),
        pytest.param([refund(), call("refund", amount=1)], Outcome.INCONCLUSIVE, id="one of an unread order"),
        pytest.param(
            [call("refund", args=None), call("refund", args=None)], Outcome.INCONCLUSIVE, id="both unread"
        ),
        pytest.param([approve()], Outcome.NOT_APPLICABLE, id="none"),
    ],
)
def test_one_refund_for_each_order(calls: list[ToolCall], outcome: Outcome) -> None:
    """The limit is per key and counts logical calls."""
    assert verdict_of(ONE, *calls).outcome is outcome


@pytest.mark.parametrize(
    ("status", "calls", "count"),
    [
        (["infra_error"], [refund(status="infra_error", idempotent=True), refund(idempotent=True)], 1),
        (["ok"], [refund(status="infra_error", idempotent=True), refund(idempotent=True)], 1),
        (["tool_error"], [refund(status="infra_error", idempotent=True), refund(idempotent=True)], 0),
        (["denied"], [refund(status="denied"), refund(status="denied"), refund()], 2),
        (["not_executed", "ok"], [refund(status="not_executed"), refund(5)], 2),
        (["denied"], [refund(status="not_executed"), refund()], 0),
    ],
)
def test_any_attempt_of_a_call_counts(status: list[str], calls: list[ToolCall], count: int) -> None:
    """A logical call is such a call when one of its attempts is; what did not run counts where it is named."""
    spec = {**ONE, "call": {"tool": "refund", "status": status}}

    assert verdict_of(spec, *calls, max=0).outcome is (Outcome.FAILED if count else Outcome.NOT_APPLICABLE)
    if count:
        assert verdict_of(spec, *calls, max=count).outcome is Outcome.PASSED
        assert f"called {count} times" in verdict_of(spec, *calls, max=count - 1).because


def test_the_answer_of_any_attempt_is_asked() -> None:
    """The first attempt was lost, the second answered what the rule speaks of."""
    spec = {**ONE, "call": {"tool": "refund", "where": {"result.paid": True}}}
    lost = refund(status="infra_error", idempotent=True, result={"paid": None})

    assert verdict_of(spec, lost, refund(idempotent=True, result={"paid": True}), max=0).outcome is (
        Outcome.FAILED
    )


def test_a_number_and_its_numeral_are_one_key() -> None:
    """120 and "120.00" are one value, "007" is text; booleans are no numbers."""
    spec = {**ONE, "same": ["args.amount"]}

    assert verdict_of(spec, refund(120), refund("120.00", "A-8")).outcome is Outcome.FAILED
    for other in ("007", True, "7x"):
        assert verdict_of(spec, refund(1 if other is True else 7), refund(other)).outcome is Outcome.PASSED


def test_the_call_over_the_limit_completes_the_violation() -> None:
    """Not the first call is the evidence but the first that was too much."""
    verdict = verdict_of(ONE, refund(), refund(1), refund(2))

    assert verdict.because == "refund was called 3 times for order A-7; at most 1 allowed"
    assert [finding.subject for finding in verdict.findings] == ["refund|A-7"]
    assert verdict.evidence[0].span_id.endswith("2")


def test_a_limit_over_several_tools() -> None:
    """Without ``same`` the subject is the tools alone; ``max: 0`` forbids."""
    spec = {"kind": "max_calls", "id": "m", "call": ["refund", "approve"], "max": 1}

    assert verdict_of(spec, refund(), approve()).findings[0].subject == "refund,approve"
    large = {"tool": "refund", "where": {"args.amount": {"gt": 100}}}
    assert verdict_of(spec, refund(1), refund(2), refund(200), call=large).outcome is Outcome.PASSED
    assert verdict_of(spec, approve(), max=0).outcome is Outcome.FAILED
    assert verdict_of(spec, refund(status="denied"), refund(1), attempts=True).outcome is Outcome.FAILED


def test_the_latest_earlier_result_is_joined() -> None:
    """Of two orders read, the one the call speaks of; of two readings, the later."""
    other = call("get_order", order_id="B-8", result={"customer_id": "C-1"})
    run = a_run(order("C-0"), order("C-77"), other, cancel(), order("C-9"))

    assert look("result_of.get_order.customer_id", run.tool_calls[3], run, "decided") == "C-77"


@pytest.mark.parametrize(
    "calls",
    [
        [order("C-1", at=(10, 30)), order("C-2", at=(10, 30))],
        [order("C-1"), order("C-2", status="unknown")],
        [order(status="tool_error")],
        [call("get_order", args=None, result={"customer_id": "C-1"})],
        [],
    ],
    ids=[
        "concurrent and different",
        "the later may have succeeded",
        "no success",
        "arguments unread",
        "none",
    ],
)
def test_what_cannot_be_joined_is_missing(calls: list[ToolCall]) -> None:
    """Where it cannot be told which result was the latest, there is no value."""
    run = a_run(*calls, cancel(turn=99))

    assert look("result_of.get_order.customer_id", run.tool_calls[-1], run, "decided") is MISSING


def test_order_that_cannot_be_told_is_unknown() -> None:
    """Without times and turns neither call comes before the other."""
    one, two = (replace(call("f"), turn=turn, start_ns=0, end_ns=0) for turn in (None, None))
    first, second = (replace(one, turn=turn) for turn in (1, 2))

    assert before(one, two, "decided") is None
    assert before(first, second, "decided") is True
    assert before(second, first, "decided") is False
    assert before(first, replace(first, index=1), "decided") is False
    assert before(first, replace(first, index=1), "executed") is None
    assert before(one, one, "decided") is False
    overlapping = a_run(call("f", turn=None, at=(1, 9)), call("f", turn=None, at=(5, 12))).tool_calls
    assert before(*overlapping, order="decided") is False


FILE = """\
schema: redfirst.rules/1
rules:
  - {id: verify-before-cancel, kind: require_before, call: cancel_order, needs: verify_identity, severity: page}
  - id: one-refund
    kind: max_calls
    call: refund
    max: 1
    same: [args.order_id]
tasks:
  - id: cancel-order
    when: {request: {matches: "(?i)cancel"}}
    required_calls: [get_order, {tool: verify_identity, where: {result.verified: true}}]
    state:
      required: [{path: orders.A-1.status, equals: cancelled}]
      allowed: [{path: "orders.*.status", mentioned: true}]
  - id: ask
    when: {request: {matches: "(?i)where"}}
    severity: note
    required_calls: [get_order]
state: {allowed: [{path: "tickets.**"}], collateral: fail}
"""


def test_a_file_gives_a_check_for_every_demand() -> None:
    """Rules first, then what each task demands, then what any run may change."""
    checks = load_rules(FILE, "rules.yaml")

    assert [(check.id, check.check_class, check.severity) for check in checks] == [
        ("verify-before-cancel", CheckClass.TRAJECTORY, Severity.PAGE),
        ("one-refund", CheckClass.TRAJECTORY, Severity.FLAG),
        ("recall:cancel-order", CheckClass.GOAL, Severity.FLAG),
        ("state.required:cancel-order", CheckClass.GOAL, Severity.FLAG),
        ("recall:ask", CheckClass.GOAL, Severity.NOTE),
        ("state.collateral", CheckClass.PROTECTION, Severity.FLAG),
    ]
    assert [check_from_spec(check.spec) for check in checks] == list(checks)


def test_what_a_task_allows_is_allowed_in_its_runs_only() -> None:
    """The same change is fine when it was asked for and collateral when it was not."""
    (check,) = [check for check in load_rules(FILE, "rules.yaml") if check.id == "state.collateral"]
    states = [
        {"orders": {"A-1": {"status": "new"}}},
        {"orders": {"A-1": {"status": "cancelled"}}, "tickets": {"T": {"a": 1}}},
    ]

    asked, not_asked = (
        judge(a_run(states=states, request=request), [check])[0]
        for request in ("cancel A-1", "where is A-1?")
    )

    assert (asked.outcome, not_asked.outcome) == (Outcome.PASSED, Outcome.FAILED)


def test_a_file_may_be_all_but_empty() -> None:
    """A schema alone demands nothing; a task may demand states without calls or calls without states."""
    assert load_rules("schema: redfirst.rules/1\n", "r") == ()
    text = "schema: redfirst.rules/1\ntasks: [{id: t, when: {agent: a}, state: {allowed: [{path: a}]}}]\n"
    assert [check.id for check in load_rules(text, "r")] == ["state.collateral"]


RULE = "schema: redfirst.rules/1\nrules:\n  - id: a\n    kind: forbid\n    call: x\n"
TASK = "schema: redfirst.rules/1\ntasks:\n  - id: a\n    when: {agent: x}\n"


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("[1]", 1, "a rules file is a mapping"),
        ("rules: []", 1, "schema is missing"),
        ("schema: redfirst.rules/2\n", 1, "redfirst.rules/1"),
        (RULE + "    sevrity: note\n", 6, "unknown key sevrity; did you mean severity?"),
        (RULE + "    max: 3\n", 6, "unknown key max; known: id, severity"),
        (RULE.replace("forbid", "forbit"), 4, "unknown kind forbit; did you mean forbid?"),
        (RULE.replace("    kind: forbid\n", ""), 3, "kind is missing"),
        (RULE.replace("    call: x\n", ""), 3, "call is missing"),
        (
            RULE + "    severity: high\n",
            6,
            "severity: expected info, note, flag or page, as in severity: page; found 'high'",
        ),
        ("schema: redfirst.rules/1\nrules: [5]\n", 2, "rules: expected a list of rules, as in rules: [{id:"),
        ("schema: redfirst.rules/1\nrules:\n", 2, "rules: expected a list of rules"),
        ("schema: redfirst.rules/1\nrules:\n", 2, "; found nothing"),
        ("schema: redfirst.rules/1\nrules: {}\n", 2, "; found {}"),
        ("schema: redfirst.rules/1\ntasks: all of them\n", 2, "tasks: expected a list of tasks"),
        ("schema: redfirst.rules/1\nstate:\n", 2, "state: expected a mapping"),
        ("schema: 5\n", 1, "as in schema: redfirst.rules/1; found 5"),
        (RULE.replace("id: a", "id: two words"), 3, "id: expected up to 100 letters, digits, _ . and -"),
        (RULE.replace("id: a", "id: two words"), 3, "as in id: verify-before-cancel; found 'two words'"),
        (RULE.replace("id: a", "id:"), 3, "; found nothing"),
        (RULE.replace("kind: forbid", "kind:"), 4, "kind: expected require_before, require_after, forbid"),
        (RULE.replace("call: x", "call: 5"), 5, "call: expected a tool, a list of tools, or a mapping"),
        (RULE.replace("call: x", "call: {tool: x, where: [a]}"), 5, "expected conditions by path, as in"),
        (RULE.replace("call: x", "call: {tool: x, status: done}"), 5, "as in status: [ok, tool_error]"),
        (RULE + "    after:\n", 6, "after: expected a tool"),
        (RULE + "    same: args.x\n", 6, "same: expected a list of paths"),
        (RULE.replace("call: x", f"call: [{'x' * 99}, '']"), 5, "tool: expected the name of a tool"),
        (RULE.replace("call: x", f"call: {{tool: {{{'x' * 99}: 1}}}}"), 5, "xxx…"),
        (TASK + "    state: []\n", 5, "state: expected a mapping"),
        (TASK + "    state: {collateral: }\n", 5, "collateral: expected fail or ignore"),
        (TASK + "    required_calls:\n", 5, "required_calls: expected a list of at least one call"),
        (TASK.replace("{agent: x}", "cancel"), 4, "when: expected conditions on the request or the agent"),
        (
            "schema: redfirst.rules/1\nstate: 5\n",
            2,
            "state: expected a mapping, as in state: {allowed: [{path: log.**}]}; found 5",
        ),
        (RULE + "    attempts: 1\n", 6, "attempts: expected true or false, as in attempts: true; found 1"),
        (RULE + "  - id: a\n    kind: forbid\n    call: y\n", 6, "the id 'a' stands on line 3 already"),
        (RULE.replace("id: a", "id: repeats"), 3, "taken by a check of redfirst"),
        (RULE.replace("id: a", "id: 'recall:a'"), 3, "taken by a check of redfirst"),
        (RULE + "    after: {tool: y, where: {arg.x: 1}}\n", 6, "does not begin with"),
        (RULE + "    after: {tool: y, where: {args.x: {gtt: 1}}}\n", 6, "unknown operator 'gtt'"),
        (RULE + "    after: {tool: []}\n", 6, "tool: expected the name of a tool or a list of names"),
        (RULE + "    same: [[args.x]]\n", 6, "same: expected a list of paths, or of pairs of paths"),
        (RULE + "    same: [x]\n", 6, "does not begin with"),
        (RULE + "    same: [[1, 2]]\n", 6, "as in same: [args.order_id]; found 1"),
        (TASK.replace("{agent: x}", "{}"), 4, "when is empty"),
        (TASK.replace("x}", "{matches: '('}}"), 4, "no regular expression"),
        (TASK + "  - id: a\n    when: {agent: y}\n", 5, "already"),
        (TASK + "    required_calls: []\n", 5, "required_calls: expected a list of at least one call"),
        (TASK + "    state: {required: [{path: a}]}\n", 5, "either equals (a value) or must"),
        (TASK + "    state: {required: [{path: 'a.*', equals: 1}]}\n", 5, "one place"),
        (
            TASK + "    state: {required: [{path: 1, equals: 1}]}\n",
            5,
            "path: expected keys joined by dots, as in path: orders.A-1.status; found 1",
        ),
        (TASK + "    state: {allowed: [{path: a, mentioned: true}]}\n", 5, "the path has none"),
        (TASK + "    state: {allowed: [{path: a, to: null}]}\n", 5, "write [null]"),
        (
            TASK + "    state: {allowed: [{path: 1}]}\n",
            5,
            "path: expected keys joined by dots, as in path: orders.A-1.status; found 1",
        ),
        (TASK + "    state: {allowed: [{path: a.**.b}]}\n", 5, "can only come last"),
        (TASK + "    state: {allowed: [], collateral: warn}\n", 5, "collateral"),
        (TASK + "state: {required: []}\n", 5, "unknown key required; known: allowed, collateral"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, line: int, what: str) -> None:
    """File, line, what is wrong and, where there is one, the nearest right word."""
    with pytest.raises(ConfigurationError) as caught:
        load_rules(text, "rules.yaml")

    assert str(caught.value).startswith(f"rules.yaml:{line}: ")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_key_can_be_complained_about() -> None:
    """Whatever stands wrongly at a key, the message has words and an example for it; pydantic's never show."""
    from redfirst.evaluators.declared import _declarations
    from redfirst.evaluators.file_shapes import RulesFile
    from redfirst.evaluators.rule_kinds.wording import EXPECTED

    keys = {
        key
        for schema in (RulesFile.model_json_schema(), _declarations().json_schema())
        for shape in (schema, *schema["$defs"].values())
        for key in shape.get("properties", {})
    }

    assert keys - set(EXPECTED) == {"equals"}
    assert all(f"{key}: " in EXPECTED[key] for key in EXPECTED)


def test_subjects_are_short_and_plain() -> None:
    """A key value that is long or structured stays on one line; arguments name the call where ids do not."""
    spec = {**ONE, "same": ["args.order_id", "args.tags"]}
    verdict = verdict_of(spec, *[call("refund", order_id="x\n" * 99, tags={"b": 1}) for _ in range(2)])

    assert len(verdict.findings[0].subject) < 100
    assert verdict.findings[0].subject.endswith('…|{"b":1}')

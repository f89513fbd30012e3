"""What an answer states, and what it may have that from."""

from dataclasses import replace
from decimal import Decimal

import pytest

from redfirst.evaluators import MISSING, CallStatus, Message, ModelCall, Outcome
from redfirst.evaluators.claims import claims, whole_id
from redfirst.evaluators.recovery import recovery
from redfirst.evaluators.testing import ROOT, a_run, call
from redfirst.evaluators.ungrounded_argument import ungrounded_argument
from redfirst.evaluators.unverified_claim import unverified_claim


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Order #W5918442 and A-7", ["w5918442", "a-7"]),
        ("refund of $1,234.50 to card 4065275", ["1234.50", "4065275"]),
        ("$5 off, then €7", ["5", "7"]),
        ("3 items, 12 days, the 2nd of 10", []),
        ("1. first\n2) second\n33. third", []),
        ("in 2026, at 10:30 am, 14:05 or 3pm", []),
        ("13 items and 3-5-day delivery, 30-day returns", ["13", "30"]),
        ("on May 15, 2026 or 2026-05-16 or 17 May", ["2026-05-15", "2026-05-16", "05-17"]),
        ("05/06/2026 is one of two days", ["2026-05-06"]),
        ("at 2026-05-15T10:30:00", ["2026-05-15"]),
        ("call 555-123-4567", ["5551234567"]),
        ("see https://x.example/a1b2 or mail a1@b2.example", []),
        ("```\nx = 12345678\n```", []),
        ("100% sure, 15% off", ["15"]),
        ("550e8400-e29b-41d4-a716-446655440000", ["550e8400-e29b-41d4-a716-446655440000"]),
        ("no figures at all", []),
        ("February 30 is no day, 31/31/2026 neither", []),
    ],
)
def test_what_a_text_states(text: str, stated: list[str]) -> None:
    """Ids, money, numbers above twelve and dates; no counts, list numbers, years, times or addresses."""
    names = [claim.name for claim in claims(text)]

    assert names == list(dict.fromkeys(stated))


def answering(answer: str, *results: object, request: str = "please") -> tuple[Outcome, list[str]]:
    run = a_run(*(call("look", result=one) for one in results), request=request, answer=answer)
    verdict = unverified_claim(run)
    return verdict.outcome, [finding.subject for finding in verdict.findings]


P, F, N = Outcome.PASSED, Outcome.FAILED, Outcome.NOT_APPLICABLE
OPEN = Outcome.INCONCLUSIVE


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("It costs 1,234.50.", {"price": 1234.5}),
        ("It costs $1234.50.", {"price": "1234.50"}),
        ("You get $20.00 back.", {"refund": 20}),
        ("About 12.35 kg.", {"weight": 12.3461}),
        ("It arrives on May 6, 2026.", {"created": "2026-05-06T17:41:02"}),
        ("It arrives on May 6.", {"created": "2026-05-06"}),
        ("The total is 44.50.", {"items": [{"price": 20.25}, {"price": 24.25}]}),
        ("There are 13 offers.", {"offers": [{} for _ in range(13)]}),
        ("It was 50.00, now 42.50: you save 7.50.", {"old": 50, "new": 42.5}),
        ("Items of 20.00 and 5.50 and 2.00: 27.50.", {"p": [20, 5.5, 2, 1]}),
        ("15% off.", {"discount": 0.15}),
        ("With 15 percent off 80.00 you save 12.00.", {"discount": 15, "price": 80}),
        ("Order a-7 is on its way.", {"id": "A-7"}),
        ("The card ending in 1234.", {"card": "XXXX-XXXX-99991234"}),
        ("Call 555-123-4567.", "our line is (555) 123 4567"),
        ("Order A-7.", '{"order_id": "A-7"}'),
    ],
)
def test_what_can_come_from_what_was_told(answer: str, told: object) -> None:
    """Written otherwise, rounded, summed up, counted, worked out of two of which the answer names one."""
    assert answering(answer, told) == (P, [])


@pytest.mark.parametrize(
    ("answer", "told", "subject"),
    [
        ("Order A-8 is on its way.", {"id": "A-7"}, "id|a-8"),
        ("Order A-1 is on its way.", {"id": "A-10"}, "id|a-1"),
        ("It costs 41.50.", {"price": 41.05}, "number|41.50"),
        ("It costs 50.", {"price": 12.50}, "number|50"),
        ("It arrives on May 7, 2026.", {"created": "2026-05-06"}, "date|2026-05-07"),
        ("It arrives on May 6, 2027.", {"created": "2026-05-06"}, "date|2027-05-06"),
        ("You save 7.50.", {"old": 50, "new": 42.5}, "number|7.50"),
    ],
)
def test_what_cannot(answer: str, told: object, subject: str) -> None:
    """A part of a longer id or number is none of it, and a difference of two that it does not name is no source."""
    assert answering(answer, told) == (F, [subject])


def test_the_share_the_reason_and_the_place() -> None:
    """One of two claims has a source; evidence points at the answer."""
    run = a_run(call("look", result={"id": "A-7"}), answer="A-7 costs 41.50")
    verdict = unverified_claim(run)

    assert (verdict.numerator, verdict.denominator) == (1, 2)
    assert verdict.because == "the answer states the number 41.50, found in none of 0 turn(s) and 1 call(s)"
    assert [(item.span_id, item.pointer) for item in verdict.evidence] == [(ROOT, "/answer")]


def test_no_source_is_concluded_only_where_all_was_recorded() -> None:
    """A claim that is found passes whatever else is missing; one that is not may be in what is missing."""
    lost = call("look", result=MISSING, status=CallStatus.UNKNOWN)

    assert unverified_claim(a_run(lost, request="A-7", answer="A-7")).outcome is P
    assert unverified_claim(a_run(lost, answer="A-7")).outcome is OPEN
    assert unverified_claim(a_run(answer="A-7", missing=["request"])).outcome is OPEN
    assert unverified_claim(a_run(answer="A-7", complete=False)).outcome is OPEN
    assert unverified_claim(a_run(answer=None)).outcome is N
    assert unverified_claim(a_run(answer=None, missing=["answer"])).outcome is OPEN
    assert unverified_claim(a_run(answer="fine")).outcome is N


@pytest.mark.parametrize(
    ("text", "found"),
    [("#W5918442", "w5918442"), ("A-7", "a-7"), ("9523456873", "9523456873"), ("user_sara_496", "user_sara_496"),
     ("F2", None), ("12", None), ("2026-05-15", None), ("2026-05-15T10:00:00Z", None), ("10:30", None),
     ("two words 12", None), ("medium", None), ("round_trip", None), ("one-way", None), ("", None), ("a1@b2.example", None)],
)  # fmt: skip
def test_what_is_an_id_as_a_whole(text: str, found: str | None) -> None:
    """Letters and digits in one, or seven digits and more; no count, date, time or word."""
    assert whole_id(text) == found


def test_an_id_must_have_been_told_before_the_call() -> None:
    """By the user, the system or an earlier result; not by a later one, nor by the call's own turn."""
    listed = call("list", result={"orders": ["A-7"]})
    get = call("get", order_id="A-7", result={"order_id": "A-7"})

    def outcome(*calls: object, **how: object) -> Outcome:
        return ungrounded_argument(a_run(*calls, **how)).outcome  # type: ignore[arg-type]

    assert outcome(listed, get) is P
    assert outcome(get, request="where is a-7?") is P
    assert outcome(get, listed) is F
    assert outcome(replace(listed, turn=0), replace(get, turn=0)) is F
    assert outcome(replace(get, by_code=True)) is N
    assert outcome(call("get", request_id="A-7")) is N
    assert outcome(get, complete=False) is OPEN
    assert outcome(call("list", result=MISSING, status="unknown"), get) is OPEN
    assert outcome(call("get", args=None)) is OPEN
    assert outcome() is N


def test_an_invented_id_is_named_with_its_argument() -> None:
    """The subject is the tool and the argument; the id stands in the reason and where the evidence points."""
    bad = call("refund", items=[{"order_id": "A-9"}], note="A-9")
    verdict = ungrounded_argument(a_run(call("list", result="A-7"), call("get", order_id="A-7"), bad))

    assert (verdict.numerator, verdict.denominator) == (1, 3)
    assert [finding.subject for finding in verdict.findings] == ["refund|items/0/order_id", "refund|note"]
    assert verdict.evidence[0].pointer == "/tool_calls/2/arguments/items/0/order_id"
    assert "refund items/0/order_id is A-9, which nothing told before" in verdict.because


def test_what_the_model_said_itself_is_no_source() -> None:
    """An id in an assistant's message may have been invented there."""
    run = a_run(call("get", order_id="A-7"))
    said, asked = Message(role="assistant", content="A-7"), Message(role="user", content="A-7")

    assert ungrounded_argument(replace(run, history=(said,))).outcome is F
    assert ungrounded_argument(replace(run, history=(asked,))).outcome is P


def test_an_error_is_got_over_by_a_later_success_of_the_tool() -> None:
    """Two errors before one success, one error without: two of three."""
    lost = [call("get", order_id=n, status="tool_error") for n in ("A-1", "A-2")]
    verdict = recovery(a_run(*lost, call("get", order_id="A-3"), call("pay", status="tool_error")))

    assert (verdict.outcome, verdict.numerator, verdict.denominator) == (F, 2, 3)
    assert [finding.subject for finding in verdict.findings] == ["pay"]
    assert recovery(a_run(*lost, call("get"))).numerator == 2
    assert recovery(a_run(*lost, call("get"))).outcome is P


def test_what_is_no_recovery_and_what_cannot_be_told() -> None:
    """An earlier success, one of the same turn, a lost wire; an unknown end; calls that may be missing."""
    bad, good = call("get", status="tool_error"), call("get")

    assert recovery(a_run(good, bad)).outcome is F
    assert recovery(a_run(replace(bad, turn=0), replace(good, turn=0))).outcome is F
    assert recovery(a_run(call("get", status="infra_error"))).outcome is N
    assert recovery(a_run(bad, call("get", status="unknown"))).outcome is OPEN
    assert recovery(a_run(bad, complete=False)).outcome is OPEN
    assert recovery(a_run(good, call("x", status="unknown"))).outcome is OPEN
    assert recovery(a_run(good)).outcome is N


def test_long_numbers_and_odd_values_harm_nothing() -> None:
    """Thirty digits, infinities and lone surrogates are read as far as they go."""
    odd = {"n": 10**40, "f": float("inf"), "s": "\ud800", "e": []}

    assert answering(f"{'9' * 30} and 41.50", odd)[0] is F
    assert claims("1" * 30)[0].value == "1" * 30
    assert claims("12345678901234567890123456.5") == []
    assert claims("$0.10")[0].value == Decimal("0.10")


def test_an_id_may_have_been_told_in_an_earlier_turn_that_is_not_repeated() -> None:
    """Where each turn is given only what is new, the user's A-7 of turn 1 is a source in turn 2, not before."""
    told = (Message(role="user", content="take A-7"),)
    turns = (
        ModelCall(index=0, span_id=ROOT, input_messages=(Message(role="user", content="hello"),)),
        ModelCall(index=1, span_id=ROOT, input_messages=told),
        ModelCall(index=2, span_id=ROOT, input_messages=()),
    )
    run = replace(a_run(call("get", order_id="A-7")), model_calls=turns, history=turns[0].input_messages)

    def of(turn: int) -> Outcome:
        return ungrounded_argument(
            replace(run, tool_calls=tuple(replace(one, turn=turn) for one in run.tool_calls))
        ).outcome

    assert (of(0), of(1), of(2)) == (F, P, P)
    assert list(run.user_texts()) == ["hello", "take A-7"]

"""The cases by which peers' loop detectors are told apart, one line each, and what is counted in each."""

import pytest

from redfirst.evaluators import Outcome, ToolCall
from redfirst.evaluators.repeats import repeats
from redfirst.evaluators.testing import a_run, call


def read(tool: str = "search", *, says: object = "same answer", **how: object) -> ToolCall:
    """A declared read."""
    return call(tool, effect="read", result={"text": says}, **how)  # type: ignore[arg-type]


def write(**how: object) -> ToolCall:
    """A declared write of order A-1."""
    return call("refund", **{"effect": "write", "order_id": "A-1", **how})  # type: ignore[arg-type]


LONG = "no offers for this query; try another one or ask the customer for more detail"
"""An answer that is equal by no chance: longer than 64 characters."""


@pytest.mark.parametrize(
    ("calls", "counted", "judged"),
    [
        pytest.param([read(q="a"), read(q="b"), read(q="a")], 1, 3, id="1 exact repeat"),
        pytest.param(
            [call("search", effect="read", q="a", status="infra_error"), read(q="a")], 0, 1, id="2 retry"
        ),
        pytest.param([write(), write()], 1, 2, id="3 a write repeated"),
        pytest.param([read(q="a"), write(), read(q="a")], 0, 3, id="4 read again after a write"),
        pytest.param(
            [read(q="a", poll=True, says=n) for n in ("wait", "wait", "done")], 0, 3, id="5 declared poll"
        ),
        pytest.param([read(q="a", says="wait"), read(q="a", says="done")], 1, 2, id="6 undeclared poll"),
        pytest.param(
            [call("search", effect="read", q="a", status="tool_error") for _ in range(3)],
            1,
            3,
            id="7 blind retry, counted from the second",
        ),
        pytest.param([read(q="a", page=n, says=LONG) for n in range(4)], 0, 4, id="8 pagination"),
        pytest.param(
            [read(q=f"q{n}", says=LONG) for n in range(4)], 2, 4, id="9 no progress, from the third"
        ),
        pytest.param(
            [read(tool, says=LONG) for tool in "ABABABA"], 5, 7, id="10 cycle of two, all but its first round"
        ),
        pytest.param(
            [call(tool, result={"n": n}) for n, tool in enumerate("ABABAB")],
            0,
            6,
            id="11 alternating, new data",
        ),
    ],
)
def test_the_eleven_cases(calls: list[ToolCall], counted: int, judged: int) -> None:
    """Exact repeats, blind retries, standstills and cycles count; retries, re-reads, polls and pages do not."""
    verdict = repeats(a_run(*calls))

    assert (verdict.denominator, verdict.numerator) == (judged, judged - counted)
    assert verdict.outcome is (Outcome.FAILED if counted else Outcome.PASSED)


@pytest.mark.parametrize(("tools", "counted"), [("ABCABCABC", 6), ("ABABA", 3), ("ABCDABCD", 4)])
def test_cycles_of_undeclared_tools(tools: str, counted: int) -> None:
    """A cycle needs three rounds; two rounds are exact repeats all the same, where the answers are equal."""
    verdict = repeats(a_run(*(call(tool, result={"text": LONG}) for tool in tools)))

    assert verdict.denominator is not None
    assert verdict.numerator is not None
    assert verdict.denominator - verdict.numerator == counted


def test_cycles_are_seen_where_no_exact_repeat_is() -> None:
    """Each re-read follows a write, so that none is a repeat by itself; the third equal round shows the loop."""
    round_ = [read("get", says=LONG), call("note", effect="write", text="x", idempotency_key="k")]
    verdict = repeats(a_run(*(round_ * 3)))

    assert verdict.outcome is Outcome.FAILED
    assert {finding.subject.partition("|")[0] for finding in verdict.findings} == {"get", "note"}

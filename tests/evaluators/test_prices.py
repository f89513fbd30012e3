"""What a run costs, or why that is not known."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.prices import PriceTable, cost_of, cost_record, read_prices
from redfirst.evaluators.trajectory import Coverage, Gap, ModelCall, Tokens, Trajectory

TABLE = read_prices(
    """
as_of: 2026-06-20
models:
  plain: {input: 2, output: 8, cached: 0.5}
  thinks: {input: 2, output: 8, cached: 0.5, reasoning: 4}
  short: {input: 2, output: 8, up_to_input: 1000}
""",
    "prices.yaml",
)


def a_run(*calls: tuple[str | None, Tokens], **facts: Any) -> Trajectory:
    """A run of these model calls."""
    made = tuple(
        ModelCall(index=n, span_id=f"{n:016x}", model=model, tokens=used)
        for n, (model, used) in enumerate(calls)
    )
    return Trajectory(run_id="r", trace_ids=("t",), root_span_id="0" * 16, model_calls=made, **facts)


USED = Tokens(input=1000, output=100, cached=400, reasoning=40)


def test_each_kind_of_token_has_its_price() -> None:
    """600 at 2, 400 at 0.50, 60 and 40 at 8 for a million."""
    cost = cost_of(a_run(("plain", USED)), TABLE)

    assert cost.parts == {
        "input": Decimal("0.0012"),
        "cached": Decimal("0.0002"),
        "output": Decimal("0.00048"),
        "reasoning": Decimal("0.00032"),
    }
    assert cost.amount == Decimal("0.0022")
    assert cost.because == ""


def test_reasoning_may_have_a_price_of_its_own() -> None:
    """40 at 4 instead of 8."""
    assert cost_of(a_run(("thinks", USED)), TABLE).amount == Decimal("0.00204")


def test_the_calls_are_added_up_and_not_the_runs_total() -> None:
    """A total that a parent span reports besides counts nothing."""
    run = a_run(("plain", USED), ("plain", USED), tokens=Tokens(input=9999, output=9999))

    assert cost_of(run, TABLE).amount == Decimal("0.0044")


def test_cached_tokens_that_nobody_reports_are_said_to_be_unreported() -> None:
    """All input at its price, with a note; 1000 at 2 and 100 at 8."""
    cost = cost_of(a_run(("plain", Tokens(input=1000, output=100))), TABLE)

    assert cost.amount == Decimal("0.0028")
    assert cost.because == "1 of 1 turns report no cached tokens"


@pytest.mark.parametrize(
    ("model", "used", "why"),
    [
        (None, USED, "the model is not recorded"),
        ("plain-2", USED, "no price for the model plain-2"),
        ("plain", Tokens(input=1000), "its tokens are not recorded"),
        ("plain", Tokens(output=100), "its tokens are not recorded"),
        ("short", Tokens(input=1001, output=1), "1001 input tokens are more than the 1000"),
        ("short", Tokens(input=100, output=1, cached=1), "no price for cached input of short"),
        ("thinks", Tokens(input=100, output=1), "reasoning tokens, which have a price of their own"),
        ("plain", Tokens(input=100, output=1, cached=101), "contradict"),
        ("plain", Tokens(input=100, output=1, reasoning=2), "contradict"),
    ],
)
def test_what_is_not_known_makes_no_cost(model: str | None, used: Tokens, why: str) -> None:
    """One call without a cost is a run without one; the turn is named."""
    cost = cost_of(a_run(("plain", USED), (model, used)), TABLE)

    assert cost.amount is None
    assert cost.because.startswith("turn 2: ")
    assert why in cost.because
    assert cost_record(cost, TABLE)["parts"] is None


def test_without_model_calls_there_is_no_cost() -> None:
    """Neither nothing called nor nothing recorded is a cost of 0."""
    unread = Coverage(missing=(Gap(fact="model_calls", because="no message was recorded"),))

    assert cost_of(a_run(), TABLE).because == "no model was called"
    assert cost_of(a_run(coverage=unread), TABLE).because == "the model calls were not recorded"


def test_the_record_is_plain_json() -> None:
    """Amounts as numbers, with the day they are of."""
    assert cost_record(cost_of(a_run(("plain", USED)), TABLE), TABLE) == {
        "amount": 0.0022,
        "currency": "USD",
        "parts": {"input": 0.0012, "cached": 0.0002, "output": 0.00048, "reasoning": 0.00032},
        "because": None,
        "as_of": "2026-06-20",
    }


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("models: {}", "as_of"),
        ("as_of: soon\nmodels: {}", "as_of"),
        ("as_of: 2026-01-01\nmodels:\n  m: {input: -1, output: 1}", "models.m.input"),
        ("as_of: 2026-01-01\nmodels:\n  m: {input: 1, outptu: 1}", "models.m.out"),
        ("as_of: 2026-01-01\ncurrency: dollars\nmodels: {}", "currency"),
        ("[]", "the file"),
    ],
)
def test_a_wrong_table_says_where(text: str, what: str) -> None:
    """In one line, with the file."""
    with pytest.raises(ConfigurationError, match=rf"prices\.yaml.*{what}"):
        read_prices(text, "prices.yaml")


def test_a_table_is_a_value() -> None:
    """Equal text is an equal table."""
    text = "as_of: 2026-01-01\nmodels: {m: {input: 1, output: 2}}"

    assert read_prices(text, "a") == read_prices(text, "b")
    assert isinstance(read_prices(text, "a"), PriceTable)

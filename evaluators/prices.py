"""What the model calls of a run cost, by a table of prices. Nothing is estimated: what is not known makes no cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from redfirst.evaluators import strict_yaml
from redfirst.evaluators.trajectory import ModelCall, Trajectory

_MILLION = 1_000_000


class Price(BaseModel):
    """Money for a million tokens of each kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: Decimal = Field(ge=0)
    """Of input that was not cached."""
    output: Decimal = Field(ge=0)
    cached: Decimal | None = Field(default=None, ge=0)
    """Of input read from the provider's cache; without it a call that read any has no cost."""
    reasoning: Decimal | None = Field(default=None, ge=0)
    """Of output that is reasoning; without it that of output."""
    up_to_input: int | None = Field(default=None, gt=0)
    """Most input tokens of a call that these prices are for; a longer one has no cost."""


class PriceTable(BaseModel):
    """Prices by exact model name, as of one day."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    as_of: date
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")
    sources: tuple[str, ...] = ()
    models: Mapping[str, Price]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one run, in the table's currency."""

    amount: Decimal | None
    """``None`` when it is not known; ``because`` says why."""
    because: str = ""
    """Of a known amount: what stands behind it that the trace does not say."""
    parts: Mapping[str, Decimal] = field(default_factory=dict)
    """``input`` (not cached), ``cached``, ``output`` (no reasoning), ``reasoning``; their sum is the amount."""


def read_prices(text: str, name: str) -> PriceTable:
    """The table of a YAML file; ``name`` is the file's, for messages.

    Raises:
        ConfigurationError: the text is no table of prices.
    """
    document = strict_yaml.read(text, name)
    try:
        return PriceTable.model_validate(document.data)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise document.fault(tuple(first["loc"]), f"{place}: {first['msg']}") from None


def cost_of(run: Trajectory, table: PriceTable) -> Cost:
    """The cost of a run's model calls: the leaves, so that no token counts twice."""
    if any(gap.fact == "model_calls" for gap in run.coverage.missing):
        return Cost(amount=None, because="the model calls were not recorded")
    if not run.model_calls:
        return Cost(amount=None, because="no model was called")
    parts = dict.fromkeys(("input", "cached", "output", "reasoning"), Decimal(0))
    for number, call in enumerate(run.model_calls, 1):
        trouble = _unpriced(call, table)
        if trouble:
            return Cost(amount=None, because=f"turn {number}: {trouble}")
        for part, amount in _parts(call, table).items():
            parts[part] += amount
    silent = sum(call.tokens.cached is None for call in run.model_calls)
    because = f"{silent} of {len(run.model_calls)} turns report no cached tokens" if silent else ""
    return Cost(amount=sum(parts.values(), Decimal(0)), because=because, parts=parts)


def _unpriced(call: ModelCall, table: PriceTable) -> str:
    """Why a call has no cost; empty when it has one."""
    used = call.tokens
    if call.model is None:
        return "the model is not recorded"
    if used.input is None or used.output is None:
        return "its tokens are not recorded"
    price = table.models.get(call.model)
    if price is None:
        return f"there is no price for the model {call.model}"
    if price.up_to_input is not None and used.input > price.up_to_input:
        return f"{used.input} input tokens are more than the {price.up_to_input} that the price is for"
    if used.cached and price.cached is None:
        return f"there is no price for cached input of {call.model}"
    if price.reasoning is not None and used.reasoning is None:
        return "its reasoning tokens, which have a price of their own, are not recorded"
    if (used.cached or 0) > used.input or (used.reasoning or 0) > used.output:
        return "its token counts contradict each other"
    return ""


def _parts(call: ModelCall, table: PriceTable) -> Mapping[str, Decimal]:
    price, used = table.models[str(call.model)], call.tokens
    cached, reasoning = used.cached or 0, used.reasoning or 0
    return {
        "input": ((used.input or 0) - cached) * price.input / _MILLION,
        "cached": cached * (price.cached or Decimal(0)) / _MILLION,
        "output": ((used.output or 0) - reasoning) * price.output / _MILLION,
        "reasoning": reasoning * (price.output if price.reasoning is None else price.reasoning) / _MILLION,
    }


def cost_record(cost: Cost, table: PriceTable) -> dict[str, object]:
    """The cost as ``score --json`` prints it under ``metrics``."""
    known = cost.amount is not None
    return {
        "amount": None if cost.amount is None else float(cost.amount),
        "currency": table.currency,
        "parts": {part: float(amount) for part, amount in cost.parts.items()} if known else None,
        "because": cost.because or None,
        "as_of": table.as_of.isoformat(),
    }

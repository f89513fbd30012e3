"""What a model call cost, in US dollars, where its span says so."""

from __future__ import annotations

import math
from collections.abc import Mapping

from redfirst.evaluators import semconv
from redfirst.evaluators.dialects.values import mapping

_PLAIN = (semconv.OI_COST, "operation.cost", "gen_ai.usage.cost")
"""OpenInference; pydantic-ai; OpenRouter and OpenLIT."""
_DETAILS = ("langfuse.observation.cost_details", "mlflow.llm.cost")
"""JSON objects with a total."""
_TOTALS = ("total", "total_cost")


def cost_of(attributes: Mapping[str, object]) -> float | None:
    """The cost of one model call; ``None`` when the span does not say, or says no amount."""
    for name in _PLAIN:
        if name in attributes and (found := _amount(attributes[name])) is not None:
            return found
    for name in _DETAILS:
        if name not in attributes:
            continue
        details = mapping(attributes[name]) or {}
        for total in _TOTALS:
            if (found := _amount(details.get(total))) is not None:
                return found
    return None


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None

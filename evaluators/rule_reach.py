"""Whether a condition can hold of any value at all."""

from __future__ import annotations

from decimal import Decimal

from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.conditions import Condition, Test, ValueOf


def contradiction(condition: Condition) -> str | None:
    """Why no value meets every test, where that can be seen without a run."""
    tests = [test for test in condition.tests if not isinstance(test.wanted, ValueOf)]
    if any(test.operator == "exists" and test.wanted is False for test in tests) and len(condition.tests) > 1:
        return "what is absent has no value"
    for test in tests:
        candidates = _candidates(test)
        if candidates is not None and all(_refused(value, tests) for value in candidates):
            return f"none of its values meets the rest of {condition}"
    return _empty_range(tests)


def _candidates(test: Test) -> list[object] | None:
    """The only values that meet a test, where they can be listed."""
    if test.operator == "eq":
        return [test.wanted]
    return list(test.wanted) if test.operator == "in" and isinstance(test.wanted, list) else None


def _refused(value: object, tests: list[Test]) -> bool:
    return any(test.holds(value) is not True for test in tests)


def _empty_range(tests: list[Test]) -> str | None:
    bounds = [(test.operator, number) for test in tests if (number := number_of(test.wanted)) is not None]
    lows = [(number, operator == "gt") for operator, number in bounds if operator in ("gt", "ge")]
    highs = [(number, operator == "lt") for operator, number in bounds if operator in ("lt", "le")]
    if not lows or not highs:
        return None
    low: tuple[Decimal, bool] = max(lows)
    high: tuple[Decimal, bool] = min(highs, key=lambda one: (one[0], not one[1]))
    empty = low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))
    return "the bounds leave no number" if empty else None

"""What the kinds of rules have in common, and the forms of what stands at their keys."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from redfirst.evaluators.conditions import ORDERED, parse_condition, parse_where
from redfirst.evaluators.paths import call_path, parse_path
from redfirst.evaluators.patterns import compile_pattern
from redfirst.evaluators.rule_kinds.invariant import invariant_path
from redfirst.evaluators.rule_kinds.validity import duration_ns
from redfirst.evaluators.schemas import UnusableSchema, schema_of
from redfirst.evaluators.shapes import (
    Calls,
    Id,
    Pair,
    SeverityName,
    Shape,
    WhenShape,
)

_OF_THE_CALL = "call."
StopName = Literal[
    "completed",
    "handoff",
    "refused",
    "step_cap",
    "token_cap",
    "time_cap",
    "loop_cut",
    "error",
    "infra",
    "abandoned",
    "parked",
]


def checked_duration(data: object) -> object:
    if isinstance(data, str):
        duration_ns(data)
    return data


def checked_pattern_text(data: object) -> object:
    if isinstance(data, str):
        compile_pattern(data)
    return data


def checked_invariant(data: object) -> object:
    if isinstance(data, str):
        invariant_path(data)
    return data


def checked_state_condition(data: object) -> object:
    parse_condition(data, parse_path)
    return data


def checked_schema(data: object) -> object:
    if isinstance(data, dict):
        try:
            schema_of(data)
        except UnusableSchema as problem:
            raise ValueError(f"schema cannot be used: {problem}; write a JSON Schema") from problem
    return data


def covers_as_where(data: object) -> object:
    """``{result.max: {ge: call.args.amount}}`` as conditions that compare with a path of the call.

    Raises:
        ValueError: it compares with something else.
    """
    if not isinstance(data, dict):
        return data
    return {path: _covered(path, operators) for path, operators in data.items()}


def _covered(path: object, operators: object) -> dict[str, object]:
    if not isinstance(operators, dict) or not operators:
        operators = {"eq": operators}
    out: dict[str, object] = {}
    for operator, wanted in operators.items():
        if (
            operator not in (*ORDERED, "eq")
            or not isinstance(wanted, str)
            or not wanted.startswith(_OF_THE_CALL)
        ):
            raise ValueError(
                f"covers compares a value of the need with one of the call by eq, ge, gt, le or lt, as in"
                f" {{result.max_amount: {{ge: call.args.amount}}}}, not {path}: {operators!r}"
            )
        out[operator] = {"value_of": wanted.removeprefix(_OF_THE_CALL)}
    return out


def _covers(data: object) -> object:
    parse_where(covers_as_where(data), call_path)
    return data


Duration = Annotated[str, BeforeValidator(checked_duration)]
Steps = Annotated[int, Field(ge=0)]
Limit = Annotated[int, Field(ge=0)]
Covers = Annotated[dict[str, Any], BeforeValidator(_covers)]


class RuleShape(Shape):
    """What every rule has."""

    id: Id
    severity: SeverityName = "flag"
    missing: Literal["failed", "ignore"] | None = None
    when: WhenShape | None = None


class OrderedShape(RuleShape):
    """What rules about calls have beside that."""

    order: Literal["decided", "executed"] = "decided"
    attempts: bool = False
    same: list[Pair] = []
    scope: Literal["trace", "agent"] = "trace"


class TiedShape(OrderedShape):
    """What rules have that tie one call to others."""

    scope: Literal["trace", "subtree", "agent"] = "trace"  # type: ignore[assignment] # one more word


class LastingShape(TiedShape):
    """What rules have whose events count for a while."""

    within: Duration | None = None
    within_steps: Steps | None = None
    until: Calls | None = None
    once: bool = False

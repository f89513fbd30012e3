"""The shape of each kind of rule, as it stands under ``rules:`` and as a declaration carries it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.conditions import parse_condition
from redfirst.evaluators.paths import call_path
from redfirst.evaluators.rule_base_shapes import (
    Covers,
    Duration,
    LastingShape,
    Limit,
    OrderedShape,
    RuleShape,
    StopName,
    TiedShape,
    checked_invariant,
    checked_pattern_text,
    checked_schema,
    checked_state_condition,
)
from redfirst.evaluators.rule_kinds.budget import Resource
from redfirst.evaluators.shapes import (
    AllowedShape,
    CallPath,
    Calls,
    ConditionData,
    Id,
    Name,
    Pair,
    RequiredShape,
    SeverityName,
    Shape,
    Wheres,
    listed,
)


class RequireBeforeShape(LastingShape):
    """``kind: require_before``."""

    kind: Literal["require_before"]
    call: Calls
    needs: Calls
    covers: Covers = {}


class RequireAfterShape(LastingShape):
    """``kind: require_after``."""

    kind: Literal["require_after"]
    call: Calls
    needs: Calls


class ForbidShape(TiedShape):
    """``kind: forbid``."""

    kind: Literal["forbid"]
    call: Calls
    after: Calls | None = None


class MutuallyExclusiveShape(OrderedShape):
    """``kind: mutually_exclusive``."""

    kind: Literal["mutually_exclusive"]
    calls: Annotated[list[Calls], Field(min_length=2)]


class MaxCallsShape(OrderedShape):
    """``kind: max_calls``."""

    kind: Literal["max_calls"]
    call: Calls
    limit: Annotated[Limit, Field(alias="max")]


class MaxConsecutiveShape(RuleShape):
    """``kind: max_consecutive``. Rows are of one agent, so it takes no scope."""

    kind: Literal["max_consecutive"]
    call: Calls
    limit: Annotated[int, Field(ge=1, alias="max")]
    order: Literal["decided", "executed"] = "decided"
    attempts: bool = False
    same: list[Pair] = []


class SequenceShape(TiedShape):
    """``kind: sequence``."""

    kind: Literal["sequence"]
    steps: Annotated[list[Calls], Field(min_length=2)]


class InvariantShape(RuleShape):
    """``kind: invariant``."""

    kind: Literal["invariant"]
    state: Annotated[str, BeforeValidator(checked_invariant)]
    must: Annotated[Any, BeforeValidator(checked_state_condition)]


class SinkShape(Shape):
    """The arguments of a tool that nothing may reach."""

    tool: Annotated[list[Name], Field(min_length=1), BeforeValidator(listed)]
    arg: Annotated[list[CallPath], Field(min_length=1), BeforeValidator(listed)] = ["args"]
    where: Wheres = {}


class NoFlowShape(RuleShape):
    """``kind: no_flow``."""

    kind: Literal["no_flow"]
    sources: Annotated[Calls | None, Field(alias="from")] = None
    to: SinkShape
    trusted: Annotated[list[Name], BeforeValidator(listed)] = []
    mode: Literal["value", "order"] = "value"
    unless: Calls | None = None
    pattern: Annotated[str, BeforeValidator(checked_pattern_text)] | None = None
    differs: list[Pair] = []
    order: Literal["decided", "executed"] = "decided"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.sources is None and (
            self.pattern is None or self.mode == "order" or self.unless or self.differs
        ):
            raise PydanticCustomError(
                "no_source",
                "from is missing; add the tools whose answers are not trusted, as in from: [fetch_web, read_email]",
            )
        return self


class ArgsSchemaShape(OrderedShape):
    """``kind: args_schema``."""

    kind: Literal["args_schema"]
    call: Calls
    must: Wheres = {}
    json_schema: Annotated[dict[str, Any] | None, Field(alias="schema"), BeforeValidator(checked_schema)] = (
        None
    )


class LimitsShape(Shape):
    """How much of each resource a run may spend."""

    model_calls: Limit | None = None
    tool_calls: Limit | None = None
    steps: Limit | None = None
    tokens: Limit | None = None
    seconds: Annotated[int | float, Field(ge=0)] | None = None
    usd: Annotated[int | float, Field(ge=0)] | None = None

    def given(self) -> tuple[tuple[Resource, float], ...]:
        """The limits that are set."""
        every: tuple[tuple[Resource, float | None], ...] = (
            ("model_calls", self.model_calls),
            ("tool_calls", self.tool_calls),
            ("steps", self.steps),
            ("tokens", self.tokens),
            ("seconds", self.seconds),
            ("usd", self.usd),
        )
        return tuple((name, limit) for name, limit in every if limit is not None)


class BudgetShape(RuleShape):
    """``kind: budget``: limits of the run, or a sum over calls."""

    kind: Literal["budget"]
    limits: LimitsShape | None = None
    call: Calls | None = None
    sum: CallPath | None = None
    by: list[Pair] = []
    within: Duration | None = None
    limit: Annotated[Any, Field(alias="max")] = None
    order: Literal["decided", "executed"] = "decided"

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        parts = (self.call, self.sum, self.limit)
        summed = all(part is not None for part in parts)
        if (self.limits is None) is not summed or (
            self.limits is not None and any(part is not None for part in parts)
        ):
            raise PydanticCustomError(
                "budget_form",
                "give either limits, as in limits: {tool_calls: 20, usd: 0.2}, or call, sum and max, as in {example}",
                {"example": "{call: refund, sum: args.amount, by: [args.order_id], max: 500}"},
            )
        if self.limits is not None and not self.limits.given():
            raise PydanticCustomError(
                "budget_form", "limits is empty; set one, as in limits: {tool_calls: 20}"
            )
        if summed and not isinstance(self.limit, dict) and number_of(self.limit) is None:
            raise PydanticCustomError(
                "budget_form",
                "max takes a number or a value_of, as in max: {example}",
                {"example": "{value_of: result_of.get_order.total}"},
            )
        if summed:
            parse_condition({"le": self.limit}, call_path)
        return self


class ApprovalShape(LastingShape):
    """``kind: approval``."""

    kind: Literal["approval"]
    call: Calls
    approval: Calls | None = None
    distinct: Annotated[int, Field(ge=1)] = 1
    approver: CallPath = "args.approver"
    covers: Covers = {}

    @model_validator(mode="after")
    def _one_use(self) -> Self:
        if self.once and self.distinct > 1:
            raise PydanticCustomError("approval_once", "once goes with distinct: 1; leave one of them out")
        return self


class StateDiffShape(RuleShape):
    """``kind: state_diff``."""

    kind: Literal["state_diff"]
    required: list[RequiredShape] = []
    allowed: list[AllowedShape] | None = None
    collateral: Literal["fail", "ignore"] = "fail"
    together: Annotated[list[str], Field(min_length=2)] | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.required and self.allowed is None and self.together is None:
            raise PydanticCustomError(
                "empty_state",
                "nothing is demanded; add required, allowed or together, as in allowed: [{path: log.**}]",
            )
        return self


class TerminationShape(RuleShape):
    """``kind: termination`` with the ends that are allowed."""

    kind: Literal["termination"]
    ends: Annotated[list[StopName], Field(min_length=1), BeforeValidator(listed)]
    answer: ConditionData = None
    pending: bool = True


FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z_][\w.-]*(:[A-Za-z_][\w.]*)?$")]


class PythonShape(Shape):
    """``kind: python``: a function of the project, or a check that a package installed."""

    kind: Literal["python"]
    id: Id
    severity: SeverityName = "flag"
    check_class: Annotated[
        Literal["goal", "protection", "budget", "judge", "trajectory"], Field(alias="class")
    ] = "trajectory"
    function: FunctionName
    params: dict[str, Any] = {}


RULE_SHAPES = (
    RequireBeforeShape
    | RequireAfterShape
    | ForbidShape
    | MutuallyExclusiveShape
    | MaxCallsShape
    | MaxConsecutiveShape
    | SequenceShape
    | InvariantShape
    | NoFlowShape
    | ArgsSchemaShape
    | BudgetShape
    | ApprovalShape
    | StateDiffShape
    | TerminationShape
)
Rule = Annotated[RULE_SHAPES | PythonShape, Field(discriminator="kind")]

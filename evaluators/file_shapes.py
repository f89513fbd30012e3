"""The shape of a whole rules file, and of every declaration that a check is built from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from redfirst.evaluators.outcome_shapes import OutcomeCheckShape, OutcomeShape
from redfirst.evaluators.reference.learned_shapes import LearnedCheckShape, LearnedShape
from redfirst.evaluators.reference.shapes import (
    Facts,
    MatchShape,
    RatioShape,
    RecallFactsShape,
    ReferenceShape,
    fault,
)
from redfirst.evaluators.rule_kind_shapes import RULE_SHAPES, PythonShape, Rule
from redfirst.evaluators.rule_shapes import (
    StateCollateralShape,
    StateRequiredShape,
    StateShape,
    TopStateShape,
)
from redfirst.evaluators.rule_test_shapes import RuleTestShape
from redfirst.evaluators.shapes import Calls, Id, SeverityName, Shape, WhenShape


class TaskShape(Shape):
    """What is asked of the runs that ``when`` picks."""

    id: Id
    when: WhenShape
    severity: SeverityName = "flag"
    required_calls: Annotated[list[Calls], Field(min_length=1)] | None = None
    reference: ReferenceShape | None = None
    facts: Facts | None = None
    state: StateShape | None = None
    outcome: OutcomeShape | None = None

    @model_validator(mode="after")
    def _one_recall(self) -> TaskShape:
        if self.required_calls is not None and self.reference is not None:
            raise fault(
                "required_calls and reference both say which calls a task needs; make each required call a step"
                " of the reference"
            )
        return self


class RecallShape(Shape):
    """``kind: recall``, as a declaration carries it."""

    kind: Literal["recall"]
    id: Id
    severity: SeverityName = "flag"
    when: WhenShape | None = None
    required_calls: Annotated[list[Calls], Field(min_length=1)] | None = None
    reference: ReferenceShape | None = None

    @model_validator(mode="after")
    def _one(self) -> RecallShape:
        if (self.required_calls is None) is (self.reference is None):
            raise fault("recall takes either required_calls or reference, as in required_calls: [get_order]")
        return self


Declaration = Annotated[
    RULE_SHAPES
    | PythonShape
    | RecallShape
    | OutcomeCheckShape
    | StateRequiredShape
    | StateCollateralShape
    | MatchShape
    | RatioShape
    | RecallFactsShape
    | LearnedCheckShape,
    Field(discriminator="kind"),
]


class RulesFile(Shape):
    """A whole rules file."""

    schema_name: Annotated[Literal["redfirst.rules/1"], Field(alias="schema")]
    rules: list[Rule] = Field(default_factory=list)
    tasks: list[TaskShape] = Field(default_factory=list)
    state: TopStateShape | None = None
    learned: LearnedShape | None = None
    tests: list[RuleTestShape] = Field(default_factory=list)

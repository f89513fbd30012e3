"""The shape of what a task says of its outcome."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from redfirst.evaluators.patterns import compile_pattern
from redfirst.evaluators.rule_kind_shapes import FunctionName
from redfirst.evaluators.shapes import Id, RequiredShape, SeverityName, Shape, WhenShape


def _checked_pattern_text(data: object) -> object:
    if isinstance(data, str):
        compile_pattern(data)
    return data


def _one_or_more(data: object) -> object:
    return data if isinstance(data, list) else [data]


Wanted = Annotated[str, Field(min_length=1)] | int | float


class AnswerShape(Shape):
    """What the final answer must be; all that is given must hold."""

    equals: Wanted | None = None
    contains: Annotated[list[Wanted], Field(min_length=1), BeforeValidator(_one_or_more)] | None = None
    matches: Annotated[str, BeforeValidator(_checked_pattern_text)] | None = None

    @model_validator(mode="after")
    def _something(self) -> AnswerShape:
        if self.equals is None and self.contains is None and self.matches is None:
            raise PydanticCustomError(
                "empty_answer",
                "answer says nothing; give equals, contains or matches, as in {example}",
                {"example": "answer: {contains: [A-7, 120.00]}"},
            )
        return self


class OutcomeShape(Shape):
    """What a run of a task must come to; all that is given must hold."""

    answer: AnswerShape | None = None
    state: Annotated[list[RequiredShape], Field(min_length=1)] | None = None
    function: FunctionName | None = None
    params: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _some_part(self) -> OutcomeShape:
        if self.answer is None and self.state is None and self.function is None:
            raise PydanticCustomError(
                "empty_outcome",
                "outcome says nothing; give answer, state or function, as in {example}",
                {"example": "outcome: {answer: {contains: A-7}}"},
            )
        return self


class OutcomeCheckShape(OutcomeShape):
    """``kind: outcome``, as a declaration carries it."""

    kind: Literal["outcome"]
    id: Id
    severity: SeverityName = "flag"
    when: WhenShape | None = None

"""The shape of the tests in a rules file."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from redfirst.evaluators.shapes import Name, Shape, StatusName, listed

OutcomeName = Literal["passed", "failed", "inconclusive", "not_applicable"]
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
    "unknown",
]
_WHAT = ("tool", "event", "user", "system", "handoff", "state")


def _date_time(data: object) -> object:
    if isinstance(data, str):
        try:
            datetime.fromisoformat(data)
        except ValueError as problem:
            raise ValueError(
                f'at takes a date and time, as in at: "2026-11-30T10:00:00Z", not {data!r}'
            ) from problem
    return data


def _as_step(data: object) -> object:
    return {"tool": data} if isinstance(data, str) else data


class StepShape(Shape):
    """One thing that happens: a call, an event, what the user says, a handoff, a state."""

    tool: Name | None = None
    event: Name | None = None
    user: str | None = None
    system: str | None = None
    handoff: Name | None = None
    state: dict[str, Any] | None = None
    args: dict[str, Any] = {}
    result: Any = None
    status: StatusName = "ok"
    error: str | None = None
    turn: Annotated[int, Field(ge=0)] | None = None
    at: Annotated[str, BeforeValidator(_date_time)] | None = None
    agent: Name | None = None
    effect: Literal["read", "write", "control"] | None = None
    idempotent: bool | None = None
    poll: bool = False
    unrecorded: Annotated[list[Literal["args", "result"]], BeforeValidator(listed)] = []

    nullable = frozenset({"result"})

    @model_validator(mode="after")
    def _one(self) -> Self:
        if sum(getattr(self, name) is not None for name in _WHAT) != 1:
            raise PydanticCustomError(
                "one_step",
                "a step is one of tool, event, user, handoff and state (system stands before a run), as in {example}",
                {"example": "{tool: refund, args: {order_id: A-7}}"},
            )
        return self


Step = Annotated[StepShape, BeforeValidator(_as_step)]


class RuleTestShape(Shape):
    """One run and what is expected of it; or a file of recorded runs, of each of which it is expected."""

    name: str | None = None
    before: list[Step] = []
    request: str | None = "please"
    steps: list[Step] = []
    answer: str | None = "done"
    stop: StopName = "completed"
    cap: int | None = None
    complete: bool = True
    missing: list[str] = []
    tokens: dict[Literal["input", "output", "cached", "reasoning"], int] | None = None
    seconds: int | float | None = None
    usd: float | int | None = None
    trace: Name | None = None
    nullable = frozenset({"request", "answer"})

    expect: Annotated[dict[str, OutcomeName], Field(min_length=1)]

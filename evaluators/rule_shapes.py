"""The shape of what tasks say of state, and of the checks of it. What these accept, ``declared`` can build."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from redfirst.evaluators.shapes import AllowedShape, Id, RequiredShape, SeverityName, Shape, WhenShape

SCHEMA = "redfirst.rules/1"


class TopStateShape(Shape):
    """What any run may change."""

    allowed: list[AllowedShape] = []
    collateral: Literal["fail", "ignore"] = "fail"


class StateShape(Shape):
    """What the runs of a task must and may change. What is left out differs from any value."""

    required: list[RequiredShape] = []
    allowed: list[AllowedShape] | None = None
    collateral: Literal["fail", "ignore"] | None = None


class StateRequiredShape(Shape):
    """``kind: state.required``, as a declaration carries it."""

    kind: Literal["state.required"]
    id: Id
    severity: SeverityName = "flag"
    when: WhenShape | None = None
    required: Annotated[list[RequiredShape], Field(min_length=1)]


class ScopeShape(StateShape):
    """One part of ``kind: state.collateral``; without ``when`` what the file says of every run."""

    when: WhenShape | None = None
    severity: SeverityName | None = None


class StateCollateralShape(Shape):
    """``kind: state.collateral``, as a declaration carries it."""

    kind: Literal["state.collateral"]
    id: Id
    severity: SeverityName = "flag"
    scopes: Annotated[list[ScopeShape], Field(min_length=1)]

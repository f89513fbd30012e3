"""From the parts of a declaration to what the evaluators are made of: calls, keys, conditions, places."""

from __future__ import annotations

from redfirst.evaluators import state
from redfirst.evaluators.conditions import Condition, parse_condition, parse_where
from redfirst.evaluators.paths import call_path
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.shapes import AllowedShape, CallShape, RequiredShape, WhenShape
from redfirst.evaluators.state_diff import Allowed, parse_pattern
from redfirst.evaluators.trajectory import CallStatus


def calls_of(shape: CallShape, statuses: frozenset[CallStatus]) -> CallPattern:
    """The calls that a shape names; ``statuses`` count unless it says which do."""
    return CallPattern(
        tools=tuple(shape.tool),
        statuses=statuses if shape.status is None else frozenset(CallStatus(name) for name in shape.status),
        where=parse_where(shape.where, call_path),
    )


def when_of(shape: WhenShape | None) -> When:
    """The runs that a shape picks; every run without one."""
    if shape is None:
        return When()
    return When(request=_condition(shape, "request"), agent=_condition(shape, "agent"))


def required_of(shape: RequiredShape) -> state.Required:
    """What must stand at a place."""
    must = parse_condition({"eq": shape.equals} if "equals" in shape.model_fields_set else shape.must)
    return state.Required(path=state.required_path(shape.path), must=must)


def allowed_of(shape: AllowedShape) -> Allowed:
    """A change that may happen."""
    values = shape.to if isinstance(shape.to, list) else [shape.to]
    return Allowed(
        segments=parse_pattern(shape.path),
        mentioned=shape.mentioned,
        to=None if shape.to is None else tuple(values),
    )


def _condition(shape: WhenShape, name: str) -> Condition | None:
    return parse_condition(getattr(shape, name)) if name in shape.model_fields_set else None

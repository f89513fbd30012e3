"""What every part of a rules file is made of: mappings with known keys, calls, conditions, paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from redfirst.evaluators.conditions import parse_condition, parse_where
from redfirst.evaluators.paths import call_path
from redfirst.evaluators.rule_kinds.happenings import ANSWER, EVENT, HANDOFF, USER, reserved
from redfirst.evaluators.rule_kinds.wording import expected
from redfirst.evaluators.state import required_path
from redfirst.evaluators.state_diff import ANY_ONE, parse_pattern
from redfirst.evaluators.strict_yaml import nearest

SeverityName = Literal["info", "note", "flag", "page"]
StatusName = Literal["ok", "tool_error", "infra_error", "denied", "not_executed", "unknown"]


def _checked_name(data: object) -> object:
    if isinstance(data, str) and data.startswith("$") and not reserved(data):
        raise PydanticCustomError(
            "no_such_happening",
            "{name} is nothing that happens in a run; {hint}",
            {"name": data, "hint": nearest(data, (USER, ANSWER, HANDOFF, f"{EVENT}NAME"))},
        )
    return data


Name = Annotated[str, Field(min_length=1), BeforeValidator(_checked_name)]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$")]


class Shape(BaseModel):
    """A mapping with known keys, each with a value; an unknown key is answered with the nearest."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    nullable: ClassVar[frozenset[str]] = frozenset({"equals", "must", "to", "missing"})
    """Keys at which null says something; elsewhere a key without a value is a mistake."""

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: object) -> object:
        if isinstance(data, Mapping):
            known = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in known:
                    raise PydanticCustomError(
                        "unknown_key", "unknown key {key}; {hint}", {"key": key, "hint": nearest(key, known)}
                    )
                if data[key] is None and key not in cls.nullable:
                    raise PydanticCustomError("no_value", "{what}", {"key": key, "what": expected(key, None)})
        return data


def _checked_where(data: object) -> object:
    parse_where(data, call_path)
    return data


def _checked_condition(data: object) -> object:
    parse_condition(data)
    return data


def _checked_path(data: object) -> object:
    if isinstance(data, str):
        call_path(data)
    return data


def _checked_required_path(data: object) -> object:
    if isinstance(data, str):
        required_path(data)
    return data


def _checked_pattern(data: object) -> object:
    if isinstance(data, str):
        parse_pattern(data)
    return data


def listed(data: object) -> object:
    return [data] if isinstance(data, str) else data


def as_pattern(data: object) -> object:
    return {"tool": data} if isinstance(data, str | list) else data


def _as_pair(data: object) -> object:
    return [data, data] if isinstance(data, str) else data


Wheres = Annotated[dict[str, Any], BeforeValidator(_checked_where)]
ConditionData = Annotated[Any, BeforeValidator(_checked_condition)]
CallPath = Annotated[str, BeforeValidator(_checked_path)]
Pair = Annotated[list[CallPath], Field(min_length=2, max_length=2), BeforeValidator(_as_pair)]


class CallShape(Shape):
    """Calls to a tool, or to any of several."""

    tool: Annotated[list[Name], Field(min_length=1), BeforeValidator(listed)]
    where: Wheres = {}
    status: Annotated[list[StatusName], Field(min_length=1), BeforeValidator(listed)] | None = None


Calls = Annotated[CallShape, BeforeValidator(as_pattern)]


class WhenShape(Shape):
    """The runs a task speaks of."""

    request: ConditionData = None
    agent: ConditionData = None

    @model_validator(mode="after")
    def _something(self) -> WhenShape:
        if not self.model_fields_set:
            raise PydanticCustomError(
                "empty_when",
                "when is empty; test the request or the agent, as in {example}",
                {"example": "when: {request: {matches: cancel}}"},
            )
        return self


class RequiredShape(Shape):
    """One place of the state and what must stand there at the end."""

    path: Annotated[str, BeforeValidator(_checked_required_path)]
    equals: Any = None
    must: ConditionData = None

    @model_validator(mode="after")
    def _one(self) -> RequiredShape:
        if len(self.model_fields_set & {"equals", "must"}) != 1:
            raise PydanticCustomError(
                "one_of",
                "give either equals (a value) or must (a condition), as in {example}",
                {"example": "{path: orders.A-1.status, equals: cancelled}"},
            )
        return self


class AllowedShape(Shape):
    """Changes that may happen."""

    path: Annotated[str, BeforeValidator(_checked_pattern)]
    mentioned: bool = False
    to: Any = None

    @model_validator(mode="after")
    def _meant(self) -> AllowedShape:
        if "to" in self.model_fields_set and self.to is None:
            raise PydanticCustomError(
                "no_new_value", "to allows no value; write [null] to allow null, as in to: [null]"
            )
        if self.mentioned and ANY_ONE not in parse_pattern(self.path):
            raise PydanticCustomError(
                "no_star",
                "mentioned speaks of the key under the first *, and the path has none, as orders.*.status has",
            )
        return self

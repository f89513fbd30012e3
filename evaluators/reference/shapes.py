"""The shape of a reference and of facts, in a rules file and in a declaration, and what is built from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from redfirst.evaluators.conditions import parse_condition
from redfirst.evaluators.reference.facts import Fact, Told
from redfirst.evaluators.reference.matchers import Arguments, parse_matcher
from redfirst.evaluators.reference.steps import Acceptable, Reference, Step, closed
from redfirst.evaluators.shapes import (
    CallPath,
    ConditionData,
    Id,
    Name,
    SeverityName,
    Shape,
    WhenShape,
    as_pattern,
    listed,
)

_STEP = "{tool: book_flight, args: {flight: F2}}"


def fault(what: str) -> PydanticCustomError:
    """A fault told in our own words."""
    return PydanticCustomError("reference", "{what}", {"what": what})


def _checked_args(data: object) -> object:
    if not isinstance(data, Mapping):
        raise fault(f"args: expected matchers by argument, as in {_STEP}; found {data!r}")
    for path, matcher in data.items():
        if "" in str(path).split("."):
            raise fault(f"args: path {path!r} has an empty part; name an argument, as in {_STEP}")
        parse_matcher(matcher)
    return data


class StepShape(Shape):
    """A call to make, or a group of calls to make in any order."""

    tool: Annotated[list[Name], Field(min_length=1), BeforeValidator(listed)] | None = None
    unordered: Annotated[list[Steps], Field(min_length=1)] | None = None
    args: Annotated[dict[str, Any], BeforeValidator(_checked_args)] = Field(default_factory=dict)
    only: bool = False
    optional: bool = False
    id: Id | None = None
    after: Annotated[list[Name], BeforeValidator(listed)] | None = None

    @model_validator(mode="after")
    def _one_thing(self) -> StepShape:
        if (self.tool is None) is (self.unordered is None):
            raise fault(
                f"a step has either tool or unordered, as in {_STEP} or {{unordered: [search, look_up]}}"
            )
        others = self.model_fields_set - {"unordered"}
        if self.unordered is not None and others:
            name = sorted(others)[0]
            raise fault(f"unordered stands alone; give {name} to the steps in it")
        return self

    def singles(self) -> Iterator[StepShape]:
        """The step, or the steps of the group."""
        if self.unordered is None:
            yield self
        for inner in self.unordered or ():
            yield from inner.singles()

    def built(self) -> Step:
        """The step, of a shape that is no group."""
        matchers = tuple((path, parse_matcher(self.args[path])) for path in sorted(self.args))
        return Step(tuple(self.tool or ()), Arguments(matchers, self.only), self.optional)


Steps = Annotated[StepShape, BeforeValidator(as_pattern)]
Listed = Annotated[list[Steps], Field(min_length=1)]


class ReferenceShape(Shape):
    """Acceptable trajectories: ``steps`` for one, ``any_of`` for several."""

    match: Literal["strict", "unordered", "subset", "superset"] = "superset"
    order: Literal["decided", "executed"] = "decided"
    steps: Listed | None = None
    any_of: Annotated[list[Listed], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _buildable(self) -> ReferenceShape:
        if (self.steps is None) is (self.any_of is None):
            raise fault(
                "a reference has either steps (one acceptable trajectory) or any_of (a list of several), as in"
                " reference: {steps: [get_order, cancel_order]}"
            )
        self.built()
        return self

    def built(self) -> Reference:
        """The reference."""
        accepted = [self.steps] if self.steps is not None else self.any_of or []
        return Reference(tuple(map(acceptable, accepted)), self.match, self.order)


def acceptable(shapes: Sequence[StepShape]) -> Acceptable:
    """The trajectory of a list of steps: each after those listed before it, or after those that it names.

    Raises:
        PydanticCustomError: ids are not unique, unknown, or in a circle.
    """
    singles = [single for shape in shapes for single in shape.singles()]
    place_of = {single.id: place for place, single in enumerate(singles) if single.id is not None}
    if len(place_of) < sum(single.id is not None for single in singles):
        raise fault("two steps of one trajectory have the same id; give each its own")
    unknown = [name for single in singles for name in single.after or () if name not in place_of]
    if unknown:
        raise fault(
            f"after names {unknown[0]!r}, which is the id of no step here; add id: {unknown[0]} to one"
        )
    demanded = [[place_of[name] for name in single.after or ()] for single in singles]
    listed_before: list[list[int]] = []
    before: list[int] = []
    for shape in shapes:
        group = list(shape.singles())
        first = len(listed_before)
        for place, single in enumerate(group, first):
            listed_before.append(before if single.after is None else demanded[place])
        before = list(range(first, first + len(group)))
    try:
        order, asked = closed(listed_before), closed(demanded)
    except ValueError:
        raise fault(
            "the steps named in after form a circle, so none can come first; take one of them out"
        ) from None
    return Acceptable(tuple(single.built() for single in singles), order, asked)


class FactSourceShape(Shape):
    """A way to learn a fact."""

    tool: Name
    path: CallPath
    equals: Any = None
    must: ConditionData = None

    @model_validator(mode="after")
    def _one(self) -> FactSourceShape:
        if len(self.model_fields_set & {"equals", "must"}) != 1:
            raise fault(
                "give either equals (a value) or must (a condition), as in"
                " {tool: get_order, path: result.status, equals: shipped}"
            )
        return self


class FactShape(Shape):
    """What a run must find out before it answers."""

    id: Id
    from_any: Annotated[list[FactSourceShape], Field(min_length=1)]

    def built(self) -> Fact:
        """The fact."""
        ways = (
            Told(
                one.tool,
                one.path,
                parse_condition({"eq": one.equals} if "equals" in one.model_fields_set else one.must),
            )
            for one in self.from_any
        )
        return Fact(self.id, tuple(ways))


Facts = Annotated[list[FactShape], Field(min_length=1)]


class AgainstShape(Shape):
    """What a declaration of a check beside a reference has."""

    id: Id
    when: WhenShape | None = None
    reference: ReferenceShape


class RecallFactsShape(Shape):
    """``kind: recall.facts``, as a declaration carries it."""

    kind: Literal["recall.facts"]
    id: Id
    severity: SeverityName = "flag"
    when: WhenShape | None = None
    facts: Facts


class MatchShape(AgainstShape):
    """``kind: match``, as a declaration carries it."""

    kind: Literal["match"]
    severity: SeverityName = "flag"


class RatioShape(AgainstShape):
    """One of the ratios beside a reference, as a declaration carries it (``recall`` has a shape of its own)."""

    kind: Literal["precision", "tool_selection", "argument_validity", "efficiency"]
    severity: SeverityName = "note"

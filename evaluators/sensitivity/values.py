"""Values that make a condition hold or fail, as near to the value that stands there as can be."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal

from redfirst.evaluators.canonical import number_of
from redfirst.evaluators.conditions import Condition, Look, Test, ValueOf
from redfirst.evaluators.paths import ABSENT, look_up, opened
from redfirst.evaluators.patterns import Pattern
from redfirst.evaluators.trajectory import MISSING

_GROUP = re.compile(r"\((?:\?:)?([^()|]*)(?:\|[^()]*)?\)")
_NO_TEXT = re.compile(r"\(\?[a-z]+\)|\\b|[\^$]")
_ELSE: Mapping[str, Decimal] = {"gt": Decimal(0), "ge": Decimal(-1), "lt": Decimal(0), "le": Decimal(1)}
"""What must be added to a bound to be just beyond it."""
_WITHIN: Mapping[str, Decimal] = {"gt": Decimal(1), "ge": Decimal(0), "lt": Decimal(-1), "le": Decimal(0)}
NOTHING_SAID = "Hmm."


def breaking(condition: Condition, value: object, look: Look) -> object:
    """A value with which the condition surely fails; ``MISSING`` where none was found, ``ABSENT`` to take it out."""
    return _first(_against, condition, value, look, wanted=False)


def meeting(condition: Condition, value: object, look: Look) -> object:
    """A value with which the condition surely holds; ``MISSING`` where none was found, ``ABSENT`` to take it out."""
    if condition.holds(value, look) is True:
        return value
    return _first(_for, condition, value, look, wanted=True)


def another(value: object) -> object:
    """A value of the same kind that equals it nowhere."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list | tuple):
        return [*value, "another"]
    return f"{value}-another" if isinstance(value, str) else "another"


def spelt_as(number: Decimal, like: object) -> object:
    """A number in the spelling of another value: text where that is text."""
    if isinstance(like, str):
        return format(number, "f")
    return int(number) if number == number.to_integral_value() else float(number)


def placed(value: object, parts: Sequence[str], new: object) -> object:
    """A copy of the value with another one at a place in it; ``ABSENT`` takes out what stands there.

    JSON text is entered, and stays text.
    """
    if not parts:
        return new
    inside = opened(value)
    if isinstance(value, str) and inside is not value:
        return json.dumps(placed(inside, parts, new), ensure_ascii=False)
    key, rest = parts[0], parts[1:]
    if isinstance(inside, list | tuple) and key.isdigit():
        items = list(inside)
        if rest or new is not ABSENT:
            return [placed(item, rest, new) if n == int(key) else item for n, item in enumerate(items)] + (
                [placed({}, rest, new)] if int(key) == len(items) else []
            )
        return items[: int(key)]
    known = dict(inside) if isinstance(inside, Mapping) else {}
    if not rest and new is ABSENT:
        return {name: item for name, item in known.items() if name != key}
    return {**known, key: placed(look_up(known, [key]) if rest else None, rest, new)}


def text_like(pattern: str) -> str:
    """The plainest text that a pattern of literals and alternatives is found in; others give themselves."""
    plain = _NO_TEXT.sub("", pattern)
    while (shorter := _GROUP.sub(r"\1", plain)) != plain:
        plain = shorter
    return plain.split("|")[0]


def _first(
    candidates: Callable[[Test, object, object], Iterator[object]],
    condition: Condition,
    value: object,
    look: Look,
    *,
    wanted: bool,
) -> object:
    for test in condition.tests:
        named = test.wanted.read(look) if isinstance(test.wanted, ValueOf) else test.wanted
        if named is MISSING:
            continue
        for candidate in candidates(test, named, value):
            if condition.holds(candidate, look) is wanted:
                return candidate
    return MISSING


def _against(test: Test, named: object, value: object) -> Iterator[object]:
    number = number_of(named)
    match test.operator:
        case "eq" | "in" | "subset_of":
            yield another(value)
            yield from map(another, named if isinstance(named, list) else [named])
            yield [another("")]
        case "ne" | "not_in":
            yield from named if isinstance(named, list) else (named,)
        case "exists":
            yield ABSENT if named else "something"
        case "matches":
            yield from (NOTHING_SAID, "-", "")
        case bound if number is not None:
            yield spelt_as(number + _ELSE[bound], value)
        case "lt" | "gt":
            yield named
        case bound:
            yield f"{named}~" if bound == "le" else str(named)[:-1]


def _for(test: Test, named: object, value: object) -> Iterator[object]:
    number = number_of(named)
    match test.operator:
        case "eq":
            yield named
        case "in" | "subset_of":
            yield from named if isinstance(named, list) else ()
            yield []
        case "ne" | "not_in":
            yield another(value)
            yield another(named)
        case "exists":
            yield {} if named else ABSENT
        case "matches":
            yield text_like(named.text) if isinstance(named, Pattern) else named
        case bound if number is not None:
            yield spelt_as(number + _WITHIN[bound], value)
        case "le" | "ge":
            yield named
        case bound:
            yield f"{named}~" if bound == "gt" else str(named)[:-1]

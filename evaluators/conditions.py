"""Conditions on values: ``{args.amount: {gt: 100}, result.verified: true}``, answered true, false or unknown.

An absent path is unknown for every operator but ``exists``; so is a value of another type than the one
asked for (null is a value of every type). What is equal, and what is a number, ``canonical`` says:
``"249.00"`` is one, because money travels as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from redfirst.evaluators.canonical import canonical_text, equal, number_of
from redfirst.evaluators.kleene import Truth, all_of, any_of, negated
from redfirst.evaluators.paths import ABSENT
from redfirst.evaluators.patterns import Pattern, compile_pattern
from redfirst.evaluators.trajectory import MISSING

ORDERED = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
_LISTS = {"in": "one of", "not_in": "none of", "subset_of": "only of"}
_SAID = {"eq": "", "ne": "not", "matches": "matching", **_LISTS, **ORDERED}
OPERATORS = ("eq", "ne", "gt", "ge", "lt", "le", "in", "not_in", "subset_of", "matches", "exists")
VALUE_OF = "value_of"

Look = Callable[[str], object]
"""What stands at a path."""


@dataclass(frozen=True, slots=True)
class ValueOf:
    """What stands at another path, to compare with: ``{gt: {value_of: result_of.get_order.total, times: 0.05}}``."""

    path: str
    times: Decimal | None = None

    def read(self, look: Look | None) -> object:
        """The value; ``MISSING`` where there is none, or no number to multiply."""
        found = MISSING if look is None else look(self.path)
        if found is ABSENT or self.times is None:
            return MISSING if found is ABSENT else found
        number = number_of(found)
        return MISSING if number is None else format(number * self.times, "f")

    def __str__(self) -> str:
        return self.path if self.times is None else f"{self.times} × {self.path}"


@dataclass(frozen=True, slots=True)
class Test:
    """One operator with what it compares against."""

    operator: str
    wanted: object

    def holds(self, value: object, look: Look | None = None) -> Truth:
        """Whether the value passes; ``look`` reads what stands at other paths."""
        if value is MISSING:
            return None
        if self.operator == "exists":
            return (value is not ABSENT) is self.wanted
        if value is ABSENT:
            return None
        wanted = self.wanted.read(look) if isinstance(self.wanted, ValueOf) else self.wanted
        return None if wanted is MISSING else _TESTS[self.operator](value, wanted)

    def __str__(self) -> str:
        if self.operator == "exists":
            return "present" if self.wanted else "absent"
        shown = self.wanted.text if isinstance(self.wanted, Pattern) else self.wanted
        shown = str(shown) if isinstance(shown, ValueOf) else shown
        text = shown if isinstance(shown, str) else canonical_text(shown)
        return f"{_SAID[self.operator]} {text}".strip()


@dataclass(frozen=True, slots=True)
class Condition:
    """Every test of one value."""

    tests: tuple[Test, ...]

    def holds(self, value: object, look: Look | None = None) -> Truth:
        """Whether the value passes every test."""
        return all_of(test.holds(value, look) for test in self.tests)

    def __str__(self) -> str:
        return " and ".join(str(test) for test in self.tests)


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions by path; all of them must hold."""

    conditions: tuple[tuple[str, Condition], ...] = ()

    def holds(self, look: Look) -> Truth:
        """Whether all hold, given what stands at each path."""
        return all_of(condition.holds(look(path), look) for path, condition in self.conditions)

    def __str__(self) -> str:
        return " and ".join(f"{path} is {condition}" for path, condition in self.conditions)


def parse_where(data: object, check_path: Callable[[str], object]) -> Where:
    """Conditions by path from plain data.

    Raises:
        ValueError: it is not a mapping of paths to conditions, or a path or condition is wrong.
    """
    if not isinstance(data, Mapping):
        raise ValueError(  # noqa: TRY004 - a fault of the data, which the reader of the file reports
            f"expected conditions by path, as in {{args.amount: {{gt: 100}}}}, found {data!r}"
        )
    for path in data:
        check_path(path)
    return Where(tuple((path, parse_condition(data[path], check_path)) for path in sorted(data)))


def parse_condition(data: object, check_path: Callable[[str], object] | None = None) -> Condition:
    """A condition from a bare value (equality) or a mapping of operators.

    With ``check_path``, an operator may compare with ``{value_of: PATH}``.

    Raises:
        ValueError: an operator is unknown or what it compares against has the wrong type.
    """
    if not isinstance(data, Mapping):
        return Condition((_parse_test("eq", data),))
    if VALUE_OF in data:
        return Condition((Test("eq", _parse_value_of("eq", data, check_path)),))
    if not data:
        raise ValueError(f"empty condition; give a value or one of {', '.join(OPERATORS)}, as in {{gt: 100}}")
    return Condition(
        tuple(_parse_test(str(operator), data[operator], check_path) for operator in sorted(data))
    )


def _parse_value_of(
    operator: str, data: Mapping[object, object], check_path: Callable[[str], object] | None
) -> ValueOf:
    path, times = data[VALUE_OF], data.get("times")
    if operator in ("exists", "matches") or check_path is None:
        raise ValueError(
            f"{operator} takes no value_of here; give the value itself"
            if check_path is None
            else f"{operator} takes no value_of; give {'true or false' if operator == 'exists' else 'a regular expression'}"
        )
    if not isinstance(path, str) or set(data) - {VALUE_OF, "times"}:
        raise ValueError(
            f"value_of takes a path, and a number as times beside it, as in"
            f" {{value_of: result_of.get_order.total, times: 0.5}}, not {dict(data)!r}"
        )
    check_path(path)
    number = None if times is None else number_of(times)
    if times is not None and number is None:
        raise ValueError(f"times takes a number, as in times: 0.5, not {times!r}")
    return ValueOf(path, number)


def _parse_test(operator: str, wanted: object, check_path: Callable[[str], object] | None = None) -> Test:
    if operator not in OPERATORS:
        known = ", ".join(OPERATORS)
        raise ValueError(
            f"unknown operator {operator!r}; use one of {known}, as in {{gt: 100}}"
            " (an object is compared with {eq: …})"
        )
    if isinstance(wanted, Mapping) and VALUE_OF in wanted:
        return Test(operator, _parse_value_of(operator, wanted, check_path))
    if operator == "exists" and not isinstance(wanted, bool):
        raise ValueError(f"exists takes true or false, as in {{exists: true}}, not {wanted!r}")
    if operator in _LISTS and not (isinstance(wanted, list) and wanted):
        raise ValueError(
            f"{operator} takes a list with at least one value, as in {{{operator}: [open, paid]}}, not {wanted!r}"
        )
    if operator in ORDERED and (isinstance(wanted, bool) or not isinstance(wanted, int | float | str)):
        raise ValueError(f"{operator} takes a number or a text, as in {{{operator}: 100}}, not {wanted!r}")
    if operator == "matches":
        if not isinstance(wanted, str):
            raise ValueError(
                f'matches takes a regular expression, as in {{matches: "(?i)cancel"}}, not {wanted!r}'
            )
        return Test(operator, compile_pattern(wanted))
    return Test(operator, wanted)


def _compared(value: object, wanted: object) -> int | None:
    """-1, 0 or 1 as the value is less, equal or more; ``None`` when the two have no order."""
    left, right = number_of(value), number_of(wanted)
    if left is not None and right is not None:
        return (left > right) - (left < right)
    if left is None and right is None and isinstance(value, str) and isinstance(wanted, str):
        return (value > wanted) - (value < wanted)
    return None


def _ordered(accepted: tuple[int, ...]) -> Callable[[object, object], Truth]:
    def test(value: object, wanted: object) -> Truth:
        sign = _compared(value, wanted)
        return None if sign is None else sign in accepted

    return test


def _in(value: object, wanted: object) -> Truth:
    return any_of(equal(value, item) for item in wanted) if isinstance(wanted, list) else None


def _subset(value: object, wanted: object) -> Truth:
    return all_of(_in(item, wanted) for item in value) if isinstance(value, list | tuple) else None


def _matches(value: object, wanted: object) -> Truth:
    return wanted.found_in(value) if isinstance(wanted, Pattern) and isinstance(value, str) else None


_TESTS: dict[str, Callable[[object, object], Truth]] = {
    "eq": equal,
    "ne": lambda value, wanted: negated(equal(value, wanted)),
    "gt": _ordered((1,)),
    "ge": _ordered((0, 1)),
    "lt": _ordered((-1,)),
    "le": _ordered((-1, 0)),
    "in": _in,
    "not_in": lambda value, wanted: negated(_in(value, wanted)),
    "subset_of": _subset,
    "matches": _matches,
}

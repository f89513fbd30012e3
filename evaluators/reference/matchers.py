"""Matchers of arguments: the conditions of rules, and ``approx`` for numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from redfirst.evaluators.canonical import INTENT, number_of
from redfirst.evaluators.conditions import Condition, Test, parse_condition
from redfirst.evaluators.kleene import Truth, all_of
from redfirst.evaluators.paths import ABSENT, look_up, parse_path
from redfirst.evaluators.rule_kinds.keys import show
from redfirst.evaluators.trajectory import MISSING, ToolCall

_APPROX = "approx"
_EXAMPLE = "{approx: {to: 100, abs: 0.5}}"


@dataclass(frozen=True, slots=True)
class Approx:
    """A number within ``max(abs, rel × |to|)`` of another."""

    to: Decimal
    abs: Decimal
    rel: Decimal

    def holds(self, value: object) -> bool:
        """Whether the value is, or spells, such a number."""
        number = number_of(value)
        return number is not None and abs(number - self.to) <= self.within

    @property
    def within(self) -> Decimal:
        """The largest difference."""
        return max(self.abs, self.rel * abs(self.to))

    def __str__(self) -> str:
        return f"{self.to} ± {self.within.normalize():f}"


@dataclass(frozen=True, slots=True)
class Matcher:
    """What one argument must be."""

    condition: Condition
    approx: Approx | None = None

    def fits(self, value: object) -> Truth:
        """Whether the value fits. It was read, so one that is absent or of another type does not.

        Unknown is only what is ``MISSING`` and text too long for a pattern.
        """
        if value is MISSING:
            return None
        near = self.approx is None or self.approx.holds(value)
        return all_of((near, *(_holds(test, value) for test in self.condition.tests)))

    @property
    def plain(self) -> object:
        """The one value wanted, where Python's equality within its type is enough to accept; else ``MISSING``."""
        match self.condition.tests:
            case (Test("eq", wanted),) if self.approx is None and (type(wanted) is int or _is_text(wanted)):
                return wanted
        return MISSING

    def __str__(self) -> str:
        return " and ".join(str(part) for part in (self.approx, *self.condition.tests) if part is not None)


def _is_text(value: object) -> bool:
    """Whether nothing but text is in it, so that Python's equality is ours."""
    if isinstance(value, list):
        return all(map(_is_text, value))
    return isinstance(value, str)


def _holds(test: Test, value: object) -> Truth:
    truth = test.holds(value)
    return False if truth is None and not (test.operator == "matches" and isinstance(value, str)) else truth


def parse_matcher(data: object) -> Matcher:
    """A matcher from a bare value (equality) or a mapping of operators.

    Raises:
        ValueError: an operator is unknown or what it compares against has the wrong type.
    """
    if not isinstance(data, Mapping) or _APPROX not in data:
        return Matcher(parse_condition(data))
    rest = {operator: wanted for operator, wanted in data.items() if operator != _APPROX}
    return Matcher(parse_condition(rest) if rest else Condition(()), _parse_approx(data[_APPROX]))


def _parse_approx(data: object) -> Approx:
    if not isinstance(data, Mapping) or not {"to"} < set(data) <= {"to", "abs", "rel"}:
        raise ValueError(f"approx takes to, and abs or rel or both, as in {_EXAMPLE}, not {data!r}")
    numbers = {str(key): number_of(value) for key, value in data.items()}
    wrong = [key for key, number in numbers.items() if number is None or (key != "to" and number < 0)]
    if wrong:
        kind = "a number" if wrong[0] == "to" else "a number, 0 or more"
        raise ValueError(f"approx: {wrong[0]} takes {kind}, as in {_EXAMPLE}, not {data[wrong[0]]!r}")
    given = {key: number for key, number in numbers.items() if number is not None}
    return Approx(given["to"], given.get("abs", Decimal(0)), given.get("rel", Decimal(0)))


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the arguments of a call must be, by path below ``args``; with ``only``, and no others."""

    matchers: tuple[tuple[str, Matcher], ...] = ()
    only: bool = False
    plain: dict[str, object] | None = field(init=False, compare=False)
    """The values wanted, where each is wanted as it is: looked at first, because it is quick."""

    def __post_init__(self) -> None:
        wanted = {parse_path(path): matcher.plain for path, matcher in self.matchers}
        simple = all(len(path) == 1 and value is not MISSING for path, value in wanted.items())
        plain = {path[0]: value for path, value in wanted.items()} if simple else None
        object.__setattr__(self, "plain", plain)

    def fit(self, call: ToolCall) -> Truth:
        """Whether a call has them; unknown where its arguments were not recorded."""
        if not self.matchers and not self.only:
            return True
        given = call.arguments
        if given is None:
            return None
        if self.plain is not None and (not self.only or len(given) == len(self.plain)):
            for name, wanted in self.plain.items():
                value = given.get(name)
                if type(value) is not type(wanted) or value != wanted:
                    break
            else:
                return True
        return all_of(truth for _, truth, _ in self._told(given))

    def faults(self, call: ToolCall) -> list[tuple[str, str]]:
        """The path of each argument that does not fit, and what is wrong with it."""
        return [(path, what) for path, truth, what in self._told(call.arguments or {}) if truth is False]

    def _told(self, arguments: Mapping[str, object]) -> Iterable[tuple[str, Truth, str]]:
        named = INTENT.drop_keys
        for path, matcher in self.matchers:
            parts = parse_path(path)
            named |= {parts[0]}
            value = look_up(arguments, parts)
            truth = matcher.fits(value)
            shown = "absent" if value is ABSENT else show(value)
            yield path, truth, "" if truth else f"{path} is {shown}, not {matcher}"
        if self.only:
            for name in sorted(set(arguments) - named):
                yield name, arguments[name] is None, f"{name} is not asked for"

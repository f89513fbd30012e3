"""What an agent had been told before it spoke or acted, and whether a claim can come from there.

A number may be worked out instead of read: rounded, the sum, difference or product of two that were told, the sum of
a column, a share, how many there are of something, or a sum of numbers in the same text. Where it could have been, it
is no invention.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from decimal import Decimal

import orjson

from redfirst.evaluators.claims import LONG_NUMBER, Claim, Day, days_in, numbers_in
from redfirst.evaluators.paths import opened

MOST_NUMBERS = 2_000
"""Numbers that others may be worked out of; of more than these any could be."""
CENTS = 2
_DEEPEST = 60


@dataclass(slots=True)
class Known:
    """Texts and values that were told."""

    texts: list[str] = field(default_factory=list)
    """Case folded."""
    values: list[object] = field(default_factory=list)
    _numbers: set[Decimal] | None = None
    _days: set[Day] | None = None

    def tell(self, *told: object) -> None:
        """More that is known: texts, or values as JSON has them."""
        for one in told:
            self.texts.append(text_of(one))
            if not isinstance(value := opened(one), str):
                self.values.append(value)
        self._numbers = self._days = None

    def unfounded(self, stated: Sequence[Claim]) -> list[Claim]:
        """The claims that cannot come from what is known."""
        rest = [claim for claim in stated if not self._stands(claim.text.lstrip("$").casefold())]
        numbers = [claim.value for claim in stated if isinstance(claim.value, Decimal)]
        own = set(numbers)
        return [claim for claim in rest if not self._founded(claim, numbers, own)]

    def _stands(self, text: str) -> bool:
        """Whether the text stands somewhere as a whole."""
        return any(stands_in(text, within) for within in self.texts)

    def _founded(self, claim: Claim, stated: Sequence[Decimal], own: AbstractSet[Decimal]) -> bool:
        value = claim.value
        if isinstance(value, tuple):
            return self._names_day(value)
        if isinstance(value, Decimal):
            return (
                self._gives(value, claim.percent, own - {value})
                or _adds_up(value, stated)
                or self._ends_with(claim.text)
            )
        return self._stands(value)

    def _ends_with(self, text: str) -> bool:
        """Whether it is the end of something longer, as of the number of a card."""
        return (
            len(text) == 4
            and text.isdigit()
            and any(f"{text}{end}" in told for told in self.texts for end in '" ,.')
        )

    def _names_day(self, day: Day) -> bool:
        if self._days is None:
            self._days = {one for text in self.texts for one in days_in(text)}
        year, month, number = day
        return any(
            ((m, d) == (month, number) and None in (y, year)) or (y, m, d) == day for y, m, d in self._days
        )

    def _gives(self, value: Decimal, percent: bool, own: AbstractSet[Decimal]) -> bool:
        """Whether the number was told, rounded or as a share, or follows from one that was and one of its own text."""
        if self._numbers is None:
            self._numbers = {one for text in self.texts for one in numbers_in(text)}
            self._numbers |= {one for told in self.values for one in _summed_up(told)}
        numbers = self._numbers
        if value in numbers or len(numbers) > MOST_NUMBERS:
            return True
        if percent and any(n in numbers for n in (value / 100, 1 - value / 100, 100 - value)):
            return True
        places = Decimal(1).scaleb(-_decimals(value))
        if any(abs(one - value) < places and one.quantize(places) == value for one in numbers):
            return True
        return any(_follows(value, one, other) for one in own for other in (*numbers, *own))


def _follows(value: Decimal, one: Decimal, other: Decimal) -> bool:
    """Whether it is the sum, the difference, the product or the percentage of two."""
    return value in (one + other, abs(one - other), one * other) or (
        _decimals(value) <= CENTS and value == (one * other / 100).quantize(Decimal("0.01"))
    )


def _decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0


def text_of(value: object) -> str:
    """What a text or a JSON value says, case folded, to be searched with ``stands_in``."""
    value = opened(value)
    return (value if isinstance(value, str) else _text(value)).casefold()


def stands_in(text: str, within: str) -> bool:
    """Whether the text, case folded, stands within the other as a whole."""
    if text in within and _whole(text, within):
        return True
    return text.isdigit() and len(text) >= LONG_NUMBER and text in "".join(filter(str.isdigit, within))


def _whole(text: str, within: str) -> bool:
    """Whether the text stands within the other with neither a letter nor a digit beside it."""
    place = within.find(text)
    while place >= 0:
        end = place + len(text)
        before = within[place - 1] if place else " "
        after = within[end] if end < len(within) else " "
        if not (before.isalnum() or after.isalnum()) and not _goes_on(text, within, place, end):
            return True
        place = within.find(text, place + 1)
    return False


def _goes_on(text: str, within: str, place: int, end: int) -> bool:
    """Whether it is a part of a longer number, as 12 is of 12.50 and 50 of 12.50."""
    return (
        text[-1].isdigit() and within[end : end + 1] in (".", ",") and within[end + 1 : end + 2].isdigit()
    ) or (
        text[0].isdigit()
        and within[place - 1 : place] in (".", ",")
        and within[max(0, place - 2) : place - 1].isdigit()
    )


def _adds_up(value: Decimal, own: Sequence[Decimal]) -> bool:
    """Whether it is the sum of two or more neighbours among the other numbers of its text."""
    others = [one for one in own if one != value]
    for begin in range(len(others)):
        total = others[begin]
        for one in others[begin + 1 : begin + 20]:
            total += one
            if total == value:
                return True
    return False


def _text(value: object) -> str:
    try:
        said = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):  # an integer beyond 64 bits, half a surrogate pair
        said = json.dumps(value, default=str, ensure_ascii=False)
    return said.replace("\\n", " ").replace("\\t", " ")


def _summed_up(value: object) -> Iterator[Decimal]:
    """How many there are in every list or mapping, and the sum of every column of it."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting:
        one, depth = waiting.pop()
        items = (
            list(one.values()) if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else []
        )
        yield Decimal(len(items))
        columns: dict[tuple[str, ...], list[Decimal]] = defaultdict(list)
        for item in items:
            for path, number in _leaves(item):
                columns[path].append(number)
        yield from (sum(column, Decimal(0)) for column in columns.values() if len(column) > 1)
        if depth < _DEEPEST:
            waiting.extend((item, depth + 1) for item in items if isinstance(item, Mapping | list | tuple))


def _leaves(value: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Decimal]]:
    """The numbers in a row by where they stand, two levels deep."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if abs(value) < 10**15:
            yield path, Decimal(str(value))
    elif isinstance(value, Mapping) and len(path) < 2:
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))


def tellable(values: Iterable[object]) -> Iterator[object]:
    """Those of the values that say something."""
    return (value for value in values if value is not None and value != "" and value != {})

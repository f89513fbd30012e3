"""Stretches of a run that repeat, shown once with their number and the marks of all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from redfirst.collector_processor.showing.columns import LEAST, Line, Segment, row
from redfirst.collector_processor.showing.witnesses import add_mark

_LONGEST_ROUND = 8
_FEWEST_ROUNDS = 3


@dataclass(slots=True)
class Block:
    """The lines of one step; two steps with equal ``alike`` differ in nothing but their numbers."""

    lines: list[Line] = field(default_factory=list)
    alike: list[object] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    marks: list[Segment] = field(default_factory=list)
    outline: list[object] = field(default_factory=list)
    """The tools it called, without arguments and answers."""
    plain: bool = True
    """Whether it did nothing but call tools that answered: nothing failed, changed or is pointed at."""

    def put(
        self, label: str, body: str, *tags: Segment, number: str = "", style: str = "", least: int = LEAST
    ) -> None:
        """Add a line; its number and the place of its turn are no part of what makes two steps alike."""
        self.lines += row(label, number + body, *tags, style=style, least=least)
        self.alike.append(
            (re.sub(r"\d+$", "", label), body, [re.sub(r"#\d+", "#", text) for text, _ in tags])
        )
        for tag in tags:
            if tag[0].startswith("◀"):
                add_mark(self.marks, tag)
                self.plain = False


def folded(blocks: Sequence[Block], long: bool) -> Iterator[list[Line]]:
    """Rounds of up to eight steps that come three times or more in a row are shown once and counted. In a long
    run plain steps that call the same tools are such rounds too, whatever their arguments."""
    kinds = _numbered([b.outline if long and b.plain and b.calls else b.alike for b in blocks])
    at = 0
    while at < len(blocks):
        found = [
            (p, n) for p in range(1, _LONGEST_ROUND + 1) if (n := _rounds(kinds, at, p)) >= _FEWEST_ROUNDS
        ]
        period, rounds = max(found, key=lambda one: (one[0] * one[1], -one[0]), default=(1, 1))
        for block in blocks[at : at + period]:
            yield block.lines
        if rounds > 1:
            yield _fold(blocks[at : at + period * rounds], period)
        at += period * rounds


def _numbered(items: Iterable[list[object]]) -> list[int]:
    """A number for each, the same for equal ones."""
    known: dict[str, list[tuple[list[object], int]]] = defaultdict(list)
    out: list[int] = []
    for place, item in enumerate(items):
        near = known[repr(item[:1])]  # the parts that follow may be large, and are only compared
        number = next((number for other, number in near if other == item), place)
        if number == place:
            near.append((item, place))
        out.append(number)
    return out


def _rounds(kinds: Sequence[int], at: int, period: int) -> int:
    end = at
    while end + period < len(kinds) and kinds[end] == kinds[end + period]:
        end += 1
    return (end - at) // period + 1


def _fold(blocks: Sequence[Block], period: int) -> list[Line]:
    """What stands for every round but the first, with the marks of all of them."""
    first, rest = blocks[:period], blocks[period:]
    same = all(block.alike == first[place % period].alike for place, block in enumerate(rest))
    calls = list(chain.from_iterable(block.calls for block in rest))
    marks: list[Segment] = []
    for mark in chain.from_iterable(block.marks for block in rest):
        add_mark(marks, mark)
    times = len(rest) // period
    if same:
        told = (
            f"the same {times} times more" if period == 1 else f"the same {period} steps {times} times more"
        )
    else:
        told = f"{times} more {'like it' if period == 1 else 'rounds like these'}, all ok, with other values"
    return row("", f"⋮ {told}{f' (#{calls[0]} to #{calls[-1]})' if calls else ''}", *marks, style="bold")

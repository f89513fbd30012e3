"""Tables that read the same in a terminal of 80 columns and in a pull request."""

from __future__ import annotations

import html
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from redfirst.collector_processor.terminal import WIDTH, clean, fit

_GAP = 2
_MARKDOWN = re.compile(r"([\\`*_\[\]|#~!])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under a header; the first column is text on the left, the others stand on the right unless named."""

    title: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    notes: Sequence[str] = field(default=())
    left: frozenset[int] = frozenset({0})
    """Columns of text."""


def as_text(tables: Iterable[Table]) -> list[str]:
    """The tables as lines of at most 80 columns."""
    lines: list[str] = []
    for table in tables:
        if lines:
            lines.append("")
        if table.title:
            lines += textwrap.wrap(clean(table.title), WIDTH)
        lines += _rows(table)
        for note in table.notes:
            lines += textwrap.wrap(clean(note), WIDTH, initial_indent="  ", subsequent_indent="  ")
    return lines


def as_markdown(tables: Iterable[Table]) -> list[str]:
    """The tables as lines of Markdown (GitHub's); nothing in a value is taken for mark-up."""
    lines: list[str] = []
    for table in tables:
        if lines:
            lines.append("")
        if table.title:
            lines += [f"**{plain(table.title)}**", ""]
        if table.rows:
            columns = len(table.rows[0])
            lines.append(_line(table.header or [""] * columns))
            lines.append(_line(["---" if place in table.left else "---:" for place in range(columns)]))
            lines += [_line(row) for row in map(_escaped, table.rows)]
        if table.notes:
            lines += ["", *(f"{plain(note)}  " for note in table.notes)]
    return lines


def plain(text: str) -> str:
    """Text that Markdown and HTML show as it stands."""
    return _MARKDOWN.sub(r"\\\1", html.escape(clean(text), quote=False))


def _escaped(row: Sequence[str]) -> list[str]:
    return [plain(cell) for cell in row]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rows(table: Table) -> list[str]:
    if not table.rows:
        return []
    cells = [list(map(clean, row)) for row in ([table.header, *table.rows] if table.header else table.rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(cells[0]))]
    over = 2 + sum(widths) + _GAP * (len(widths) - 1) - WIDTH
    if over > 0:  # the first column gives way: names are long, numbers are not
        widths[0] = max(8, widths[0] - over)
    return [fit("  " + _aligned(row, widths, table.left), WIDTH).rstrip() for row in cells]


def _aligned(row: Sequence[str], widths: Sequence[int], left: frozenset[int]) -> str:
    shown = [
        fit(cell, width).ljust(width) if place in left else fit(cell, width).rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return (" " * _GAP).join(shown)

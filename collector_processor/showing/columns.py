"""Text in columns: cut, wrapped and put in rows that are never wider than the screen; no character of it moves the
cursor."""

from __future__ import annotations

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from redfirst.collector_processor.storing.store import Label
from redfirst.collector_processor.terminal import WIDTH, clean
from redfirst.evaluators.paths import ABSENT
from redfirst.evaluators.trajectory import MISSING

Segment = tuple[str, str]
"""Text and its style; the empty style is plain."""
Line = tuple[Segment, ...]

GUTTER = 9
"""Columns of the label on the left."""
ROOM = WIDTH - GUTTER
LEAST = 40
"""Columns a text keeps beside its tags; tags that leave fewer go to the next line."""
_PLAIN = re.compile(r"(?!(?:true|false|null|None|[-+.\d][\d.eE+-]*)$)[^\s\"'=,:{}\[\]]+")


def columns(text: str) -> int:
    """The columns a terminal gives the text: two to a wide character."""
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text if c > "\u10ff")


def cut(text: str, width: int) -> str:
    """The text on one line in at most so many columns, with a mark where it was cut."""
    text = clean(text[: 4 * width + 4])
    if columns(text) <= width:
        return text
    used = list(accumulate(map(columns, text), initial=1))  # the mark takes one
    return text[: max(0, bisect_right(used, width) - 1)].rstrip() + "…"


def wrapped(text: str, width: int, *, most: int = 40) -> list[str]:
    """The text on at most so many lines, with a mark where it was cut."""
    head = text[: 4 * width * most]
    lines, line = [], ""
    for word in clean(head).split():
        joined = f"{line} {word}" if line else word
        if columns(joined) <= width:
            line = joined
            continue
        lines += [line] if line else []
        line = cut(word, width)
    lines.append(line)
    if len(lines) <= most and len(head) == len(text):
        return lines
    last = lines[:most][-1]
    return [*lines[: most - 1], last if last.endswith("…") else f"{cut(last, width - 2)} …"]


def brief(value: object, room: int) -> str:
    """A value in at most so many columns; a mapping as ``key=value``, text bare where that is unambiguous."""
    pieces, used = [], 0
    for piece in _pieces(value, room, 0):
        pieces.append(piece)
        used += len(piece)
        if used > room:
            break
    return cut("".join(pieces), room)


def _pieces(value: object, room: int, depth: int) -> Iterator[str]:
    if value is ABSENT or value is MISSING:
        yield "absent" if value is ABSENT else "unknown"
    elif isinstance(value, str):
        head = value[: room + 1]
        yield head if _PLAIN.fullmatch(head) else json.dumps(head, ensure_ascii=False)
    elif isinstance(value, Mapping) and value and depth == 0:
        for place, (key, item) in enumerate(value.items()):
            yield f"{' ' if place else ''}{str(key)[:room]}="
            yield from _pieces(item, room, 1)
    elif isinstance(value, Mapping | list | tuple) and value and depth > 4:
        yield "…"
    elif isinstance(value, Mapping):
        for place, (key, item) in enumerate(value.items()):
            yield f"{', ' if place else '{'}{str(key)[:room]}: "
            yield from _pieces(item, room, depth + 1)
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield ", " if place else "["
            yield from _pieces(item, room, depth + 1)
        yield "]" if value else "[]"
    else:
        yield json.dumps(value) if value is None or isinstance(value, bool) else str(value)[: room + 1]


def row(
    label: str, body: str, *tags: Segment, style: str = "", label_style: str = "dim", least: int = LEAST
) -> list[Line]:
    """A label, a text and tags at the right edge. The text is cut to fit, but for tags not below ``least``."""
    left = min(least, columns(cut(body, ROOM)))
    lines: list[list[Segment]] = [[]]
    used = left
    for text, of in tags:
        text = cut(text, ROOM - 2)
        if used + columns(text) + 2 > ROOM and (used > left or len(lines) == 1):
            lines.append([])
            used = 0
        lines[-1].append((f"  {text}", of))
        used += columns(text) + 2
    out: list[Line] = []
    for right in lines:
        free = ROOM - sum(columns(text) for text, _ in right)
        shown = cut(body, free) if not out else ""
        gap = " " * (free - columns(shown)) if right else ""
        out.append(
            (((label if not out else "").ljust(GUTTER), label_style), (shown, style), (gap, ""), *right)
        )
    return out


def listed(names: Sequence[str], room: int) -> str:
    """As many names as fit, and how many more there are."""
    for shown in range(len(names), 0, -1):
        text = ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if shown < len(names) else "")
        if columns(text) <= room:
            return text
    return f"{len(names)} checks" if names else ""


def labelled(labels: Sequence[Label]) -> str:
    """What people said of a run: ``right``, ``repeats wrong``, with the note where there is one alone."""
    said = [f"{label.check} {'right' if label.right else 'wrong'}".lstrip() for label in labels]
    note = f": {labels[0].note}" if len(labels) == 1 and labels[0].note else ""
    return ", ".join(said) + note


def paragraph(
    label: str, text: str, *, style: str = "", label_style: str = "dim", most: int = 40
) -> list[Line]:
    """A label and a text of several lines beside it."""
    first, *rest = wrapped(text, ROOM, most=most)
    return [
        ((label.ljust(GUTTER), label_style), (first, style)),
        *(((" " * GUTTER, ""), (line, style)) for line in rest),
    ]

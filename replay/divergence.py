"""Where two executions of the same thing part, and what most likely parted them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from redfirst.evaluators.canonical import canonical_text
from redfirst.replay.runner import Execution

Json = Any

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}|(?<![0-9])1[0-9]{14}(?![0-9])")
"""An address as ``repr`` writes it, or as ``id`` gives it on a 64-bit machine."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event in which two executions differ, in words."""

    said: str


def same_events(first: Execution, second: Execution) -> bool:
    """Whether two executions did the same and ended the same way."""
    return first.events == second.events and first.stop is second.stop


def first_divergence(first: Execution, second: Execution, causes: Sequence[str] = ()) -> Divergence | None:
    """The first differing event; ``None`` when there is none and both ended the same way.

    ``causes`` are the sources that were seen to part them; without any, the likely ones are named.
    """
    for number, (one, other) in enumerate(zip_longest(first.events, second.events), 1):
        if one != other:
            source = _shown(causes) or _named_by_value(one, other, first, second) or _source(first, second)
            return Divergence(f"two runs part at event {number}: {_difference(one, other)}.{source}")
    if first.stop is not second.stop:
        return Divergence(
            f"one run ended {_end(first)} and the other {_end(second)}, after equal events."
            f"{_shown(causes) or _source(first, second)}"
        )
    return None


def _difference(one: str | None, other: str | None) -> str:
    left, right = json.loads(one or "null"), json.loads(other or "null")
    if left is None or right is None:
        return f"{_named(left or right)} happened in one of them only"
    if (left["kind"], left.get("name")) != (right["kind"], right.get("name")):
        return f"{_named(left)} against {_named(right)}"
    for path, was, now in _leaves(left, right):
        return f"{_named(left)} {path} is {was} in one and {now} in the other"
    return f"{_named(left)} differs"


def _named_by_value(one: str | None, other: str | None, first: Execution, second: Execution) -> str | None:
    """What the differing values are, where they are known: each run's own folder or process, an address."""
    left, right = one or "", other or ""
    for mine, theirs in zip(first.places.items(), second.places.items(), strict=False):
        if _holds(left, mine[0]) and _holds(right, theirs[0]):
            return f" Not frozen, and in both: {mine[1]}."
    if _ADDRESS.sub("", left) == _ADDRESS.sub("", right):
        return " Not frozen, and in both: the address of an object (its default repr, or id())."
    return None


def _holds(line: str, value: str) -> bool:
    return re.search(rf"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])", line) is not None


def _named(event: Mapping[str, Json]) -> str:
    return {
        "tool": event.get("name"),
        "model": "a model request",
        "end": "the answer",
        "user": "a turn of the user's",
    }.get(event["kind"]) or "a call"


def _leaves(left: Json, right: Json, at: str = "") -> list[tuple[str, str, str]]:
    if isinstance(left, dict) and isinstance(right, dict):
        return [
            found
            for key in sorted({*left, *right})
            for found in _leaves(left.get(key), right.get(key), f"{at}.{key}" if at else key)
        ]
    if canonical_text(left) == canonical_text(right):
        return []
    return [(at, canonical_text(left)[:120], canonical_text(right)[:120])]


def _shown(causes: Sequence[str]) -> str:
    if not causes:
        return ""
    return f" Not frozen, and seen to part them when it alone was changed: {', '.join(causes)}."


def _source(first: Execution, second: Execution) -> str:
    used = sorted({*first.unfrozen, *second.unfrozen})
    if used:
        return f" Not frozen, and used: {', '.join(used)}."
    return (
        " No unfrozen clock, random number or process was seen: look at the order of sets, at hash() and id(), "
        "at the scheduling of threads and tasks, and at files."
    )


def _end(execution: Execution) -> str:
    return execution.stop.value if execution.stop is not None else "by itself"

"""Where two executions of the same thing part, and what most likely parted them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from redfirst.evaluators.canonical import canonical_text
from redfirst.replay.runner import Execution

Json = Any


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first event in which two executions differ, in words."""

    said: str


def first_divergence(first: Execution, second: Execution) -> Divergence | None:
    """The first differing event; ``None`` when there is none and both ended the same way."""
    for number, (one, other) in enumerate(zip_longest(first.events, second.events), 1):
        if one != other:
            return Divergence(
                f"two runs part at event {number}: {_difference(one, other)}.{_source(first, second)}"
            )
    if first.stop is not second.stop:
        return Divergence(
            f"one run ended {_end(first)} and the other {_end(second)}, after equal events.{_source(first, second)}"
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


def _named(event: Mapping[str, Json]) -> str:
    return {"tool": event.get("name"), "model": "a model request", "end": "the answer"}.get(
        event["kind"]
    ) or "a call"


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


def _source(first: Execution, second: Execution) -> str:
    used = sorted({*first.unfrozen, *second.unfrozen})
    if used:
        return f" Not frozen, and used: {', '.join(used)}."
    return " No unfrozen clock, random number or process was seen: look at the order of sets and at the environment."


def _end(execution: Execution) -> str:
    return execution.stop.value if execution.stop is not None else "by itself"

"""JSON pointers (RFC 6901) into a state, and the difference of two states as pointers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.evaluators.canonical import same

Json = Any


def parse(pointer: str) -> list[str]:
    """The steps of a pointer."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def join(steps: list[str]) -> str:
    """The pointer of these steps."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def assign(state: dict[str, Json], pointer: str, value: Json) -> None:
    """Put a value at a pointer, making the mappings on the way."""
    *path, last = parse(pointer)
    here = state
    for step in path:
        below = here.get(step)
        if not isinstance(below, dict):
            below = here[step] = {}
        here = below
    here[last] = value


def remove(state: dict[str, Json], pointer: str) -> None:
    """Take away what is at a pointer; nothing there is no fault."""
    *path, last = parse(pointer)
    here: Json = state
    for step in path:
        here = here.get(step) if isinstance(here, dict) else None
    if isinstance(here, dict):
        here.pop(last, None)


def difference(before: Json, after: Json) -> tuple[dict[str, Json], list[str]]:
    """What must be set and unset to make one state the other; lists are values as a whole."""
    put: dict[str, Json] = {}
    gone: list[str] = []
    _walk(before, after, [], put, gone)
    return put, gone


def _walk(before: Json, after: Json, at: list[str], put: dict[str, Json], gone: list[str]) -> None:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            if key not in after:
                gone.append(join([*at, key]))
            elif key not in before:
                put[join([*at, key])] = after[key]
            else:
                _walk(before[key], after[key], [*at, key], put, gone)
    elif not same(before, after):
        put[join(at)] = after

"""Do live tools still answer in the shape that was recorded: the paths of an answer and the types there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from redfirst.evaluators import CallStatus, Trajectory
from redfirst.evaluators.canonical import same
from redfirst.replay.scenario import ToolPart

Json = Any


def moved_answers(tools: Mapping[str, ToolPart], run: Trajectory) -> tuple[str, ...]:
    """What is gone, new or of another type in the answers of a run, against the recorded answers to the same calls.

    Values may differ, as they do in a live world; null says nothing of a type. A call that was not recorded is
    not compared.
    """
    found: dict[str, None] = {}
    for call in run.tool_calls:
        part = tools.get(call.name)
        if part is None or call.status is not CallStatus.OK or call.arguments is None:
            continue
        asked = call.arguments
        recorded = [
            one.returns
            for one in part.responses
            if one.error is None and not one.failed and same(one.when, dict(asked))
        ]
        if recorded:
            found.update(
                dict.fromkeys(f"{call.name}: {said}" for said in _differences(recorded, call.result))
            )
    return tuple(found)


def _differences(recorded: Iterable[Json], live: Json) -> Iterator[str]:
    before: dict[str, str] = {}
    for value in recorded:
        before |= dict(_shape(value))
    now = dict(_shape(live))
    for path in sorted({*before, *now}):
        was, is_now = before.get(path), now.get(path)
        if is_now is None:
            yield f"{path or 'the answer'} is gone"
        elif was is None:
            yield f"{path or 'the answer'} is new"
        elif was != is_now and "null" not in (was, is_now):
            yield f"{path or 'the answer'} was {was} and is {is_now}"


def _shape(value: Json, at: str = "") -> Iterator[tuple[str, str]]:
    """Every path with its type; the items of a list share one."""
    if isinstance(value, Mapping):
        yield at, "an object"
        for key, item in value.items():
            yield from _shape(item, f"{at}.{key}" if at else str(key))
    elif isinstance(value, list | tuple):
        yield at, "a list"
        for item in value:
            yield from _shape(item, f"{at}[]")
    else:
        yield at, _TYPES.get(type(value), "text")


_TYPES = {bool: "true or false", int: "a number", float: "a number", type(None): "null"}

"""Dotted paths: ``args.order_id``, ``result.items.0.price``, ``result_of.get_order.customer_id``.

A key that contains a dot, a star or a tilde is written with ``~1``, ``~2`` and ``~0`` in their place (the
idea of RFC 6901), so that every key can be named and a path is never ambiguous.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from enum import Enum

from redfirst.evaluators.trajectory import MISSING, ToolCall


class Absent(Enum):
    """The type of ``ABSENT``: the place was read and there is nothing there."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT

_FIELDS = ("name", "status", "error", "agent", "effect")
_MAPPINGS = ("args", "result")
RESULT_OF = "result_of"
RESULTS_OF = "results_of"
STATE = "state"
TIME = "time"
_MOMENTS = ("clock", "date", "weekday")


@functools.lru_cache(maxsize=4096)
def parse_path(text: str) -> tuple[str, ...]:
    """The keys of a dotted path."""
    return tuple(
        part.replace("~2", "*").replace("~1", ".").replace("~0", "~") if "~" in part else part
        for part in text.split(".")
    )


def show_path(parts: Sequence[str]) -> str:
    """The dotted path of these keys; ``parse_path`` gives them back."""
    return ".".join(part.replace("~", "~0").replace(".", "~1").replace("*", "~2") for part in parts)


def call_path(text: str) -> tuple[str, ...]:
    """The keys of a path into a call.

    Raises:
        ValueError: the path does not begin with something a call has.
    """
    parts = parse_path(text)
    if "" in parts:
        raise ValueError(f"path {text!r} has an empty part")
    if parts[0] in _MAPPINGS or (parts[0] in _FIELDS and len(parts) == 1):
        return parts
    if parts[0] in (RESULT_OF, RESULTS_OF):
        if len(parts) < 3:
            raise ValueError(f"path {text!r} needs a tool and a key, as in {parts[0]}.get_order.customer_id")
        return parts
    if parts[0] == STATE and len(parts) > 1:
        return parts
    if parts[0] == TIME and parts[1:] in [(name,) for name in _MOMENTS]:
        return parts
    known = ", ".join(
        [
            *(f"{name}.KEY" for name in _MAPPINGS),
            "result_of.TOOL.KEY",
            "results_of.TOOL.KEY",
            "state.KEY",
            *(f"time.{name}" for name in _MOMENTS),
            *_FIELDS,
        ]
    )
    raise ValueError(f"path {text!r} does not begin with one of {known}")


def look_up(value: object, parts: Sequence[str]) -> object:
    """The value at the keys; ``ABSENT`` when it is certainly not there, ``MISSING`` when that cannot be said.

    Lists are entered by index. Text is not entered, because a result that was cut looks like text too.
    """
    for part in parts:
        if isinstance(value, Mapping):
            value = value.get(part, ABSENT)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            inside = part.isascii() and part.isdigit() and len(part) < 10 and int(part) < len(value)
            value = value[int(part)] if inside else ABSENT
        elif value is None or value is ABSENT:
            return ABSENT
        else:
            return MISSING
    return value


def look_into_call(call: ToolCall, parts: Sequence[str]) -> object:
    """The value of a call at a path of ``call_path`` that begins with something of the call itself.

    A result that is the JSON text of an object or a list is entered as that object or list.
    """
    root, rest = parts[0], parts[1:]
    if root == "args":
        return MISSING if call.arguments is None else look_up(call.arguments, rest)
    if root == "result":
        return look_up(opened(call.result) if rest else call.result, rest)
    value: object = getattr(call, root)
    return MISSING if value is None and root != "error" else value


def opened(value: object) -> object:
    """The object or list that a text is the JSON of; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            parsed: object = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return parsed
    return value

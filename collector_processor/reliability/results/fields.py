"""Values of a record, taken out with their type or refused with the place they stand at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.evaluators.errors import UnreadableInput

Json = Any
MOST = 2**53 - 1
"""The largest whole number that every reader of JSON takes as written (RFC 8259, section 6); sums of more overflow."""


def mapping(value: Json, place: str) -> Mapping[str, Json]:
    """A JSON object.

    Raises:
        UnreadableInput: it is something else.
    """
    if not isinstance(value, Mapping):
        raise UnreadableInput(f"{place}: a JSON object is expected, not {_said(value)}.")
    return value


def whole(record: Mapping[str, Json], key: str, place: str) -> int | None:
    """A whole number from 0 to ``MOST``, or None when the key is absent or null.

    Raises:
        UnreadableInput: it is something else.
    """
    number = amount(record, key, place)
    if number is None:
        return None
    if number != int(number):
        raise UnreadableInput(f"{place}: {key} is {_said(record[key])}; a whole number is expected.")
    return int(number)


def amount(record: Mapping[str, Json], key: str, place: str) -> float | None:
    """A number from 0 to ``MOST``, or None when the key is absent or null.

    Raises:
        UnreadableInput: it is something else.
    """
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST:
        raise UnreadableInput(
            f"{place}: {key} is {_said(value)}; a number from 0 to 2^53 - 1, or null, is expected."
        )
    return float(value)


def truth(record: Mapping[str, Json], key: str, place: str) -> bool | None:
    """true, false or null; absent is null.

    Raises:
        UnreadableInput: it is something else.
    """
    value = record.get(key)
    if value is not None and not isinstance(value, bool):
        raise UnreadableInput(f"{place}: {key} is {_said(value)}; true, false or null is expected.")
    return value


def name(record: Mapping[str, Json], key: str, place: str) -> str | None:
    """A text, or a whole number as text; None when the key is absent or null.

    Raises:
        UnreadableInput: it is something else.
    """
    value = record.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise UnreadableInput(f"{place}: {key} is {_said(value)}; a text or a whole number is expected.")
    return str(value)


def needed(value: Any, key: str, place: str) -> Any:
    """The value that must be there.

    Raises:
        UnreadableInput: it is not.
    """
    if value is None:
        raise UnreadableInput(f"{place}: {key} is missing.")
    return value


def _said(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"

"""Single values of OTLP/JSON, and what is said of one that is of another type."""

from __future__ import annotations

from redfirst.evaluators.errors import UnreadableInput

_SHOWN = 60


def double(value: object, where: str) -> float:
    """A number, which may be written as text.

    Raises:
        UnreadableInput: it is none.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError as problem:
            raise wrong(where, "a number", value) from problem
    raise wrong(where, "a number", value)


def wrong(where: str, wanted: str, found: object) -> UnreadableInput:
    """The error that names the place, what was expected there and what was found."""
    return UnreadableInput(f"{where}: expected {wanted}, found {shown(found)}.")


def shown(value: object) -> str:
    """The type and the beginning of a value."""
    text = repr(value)
    return f"{type(value).__name__} {text[:_SHOWN]}{'…' if len(text) > _SHOWN else ''}"

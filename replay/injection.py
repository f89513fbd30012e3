"""One fault at one tool, once, in a run that is otherwise answered from its recording."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from redfirst.evaluators.canonical import same

Json = Any


class FaultKind(StrEnum):
    """What goes wrong at the first call of a tool that it can go wrong at."""

    ERROR = "error"
    """The tool raises an error of its own."""
    TIMEOUT = "timeout"
    """No answer comes in time, and nothing was changed."""
    STATUS_500 = "500"
    """The far end fails, and nothing was changed."""
    EMPTY = "empty"
    """The answer has the recorded one's shape and nothing in it."""
    STALE = "stale"
    """The answer is the one that was recorded for the same call before something changed it."""

    @property
    def raised(self) -> bool:
        """Whether the call raises it; otherwise its answer is altered."""
        return self in _RAISED

    @property
    def message(self) -> str:
        """The words of what is raised; empty where an answer is altered."""
        return _RAISED[self][1] if self.raised else ""


class ToolFailed(Exception):
    """An injected error of a tool's own."""


class Injection:
    """A fault that is put in once. Not thread-safe: its environment calls it under a lock."""

    def __init__(self, tool: str, kind: FaultKind) -> None:
        self.tool = tool
        self.kind = kind
        self.met = False
        """Whether the run came to a call that it could be put in at."""

    def failure(self, name: str) -> Exception | None:
        """The exception that this call is to raise in place of its answer."""
        if self.met or name != self.tool or not self.kind.raised:
            return None
        self.met = True
        error, message = _RAISED[self.kind]
        return error(message)

    def altered(self, name: str, returns: Json, earliest: Json) -> Json:
        """The answer that this call is to give, from the recorded one and the first recorded for the same call."""
        if self.met or name != self.tool or self.kind.raised:
            return returns
        changed = emptied(returns) if self.kind is FaultKind.EMPTY else earliest
        self.met = not same(changed, returns)
        return changed


_RAISED: Mapping[FaultKind, tuple[type[Exception], str]] = {
    FaultKind.ERROR: (ToolFailed, "the operation could not be completed"),
    FaultKind.TIMEOUT: (TimeoutError, "timed out"),
    FaultKind.STATUS_500: (RuntimeError, "HTTP status 500: Internal Server Error"),
}


def emptied(value: Json) -> Json:
    """The empty value of the same shape: nothing found."""
    if isinstance(value, dict):
        return {}
    if isinstance(value, list):
        return []
    return "" if isinstance(value, str) else None

"""Our faults stay ours: counted, logged once, and raised only where a test asks for it."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections import Counter
from types import TracebackType

_log = logging.getLogger("redfirst.instrumentation")
_lock = threading.Lock()  # guards _faults: wrapped functions run in any thread
_faults: Counter[str] = Counter()

raise_faults = os.environ.get("REDFIRST_RAISE_FAULTS") == "1"
"""True in tests: a fault of ours is raised into the host instead of being counted."""


class guarded:  # noqa: N801 - reads as a statement: with guarded("open a span")
    """Run our own lines; an ``Exception`` in them never reaches the host."""

    __slots__ = ("_doing",)

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if error is None or not isinstance(error, Exception) or raise_faults:
            return False
        swallow(self._doing, error)
        return True


def swallow(doing: str, error: Exception) -> None:
    """Take a fault of ours: what ``guarded`` does, for the lines of every call, where its three calls count."""
    if raise_faults:
        raise error
    if count(doing) == 1:
        # a host's own log handler may raise, and that must not reach its caller through us
        with contextlib.suppress(Exception):
            _log.warning("redfirst could not %s; the call itself is unaffected", doing, exc_info=error)


def count(doing: str) -> int:
    """Count a step of ours that failed; how often it has by now."""
    with _lock:
        _faults[doing] += 1
        return _faults[doing]


def faults() -> dict[str, int]:
    """How often each of our own steps failed in this process."""
    with _lock:
        return dict(_faults)


def forget() -> None:
    """Begin counting afresh (tests)."""
    with _lock:
        _faults.clear()

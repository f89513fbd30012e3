"""Three-valued logic: ``True``, ``False`` and ``None`` for unknown (S. C. Kleene, strong logic, 1938)."""

from __future__ import annotations

from collections.abc import Iterable

Truth = bool | None


def all_of(truths: Iterable[Truth]) -> Truth:
    """False if any is false, else unknown if any is unknown, else true."""
    answer: Truth = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            answer = None
    return answer


def any_of(truths: Iterable[Truth]) -> Truth:
    """True if any is true, else unknown if any is unknown, else false."""
    answer: Truth = False
    for truth in truths:
        if truth is True:
            return True
        if truth is None:
            answer = None
    return answer


def negated(truth: Truth) -> Truth:
    """The opposite; unknown stays unknown."""
    return None if truth is None else not truth

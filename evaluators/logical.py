"""Logical calls: attempts that differ only because the wire failed are one call.

An attempt retries an earlier one when it has the same agent, tool and intent, began after it ended, and
the earlier one ended in ``infra_error``. Trying a write again may do it twice, so a write is a retry only
when the tool is idempotent or both attempts carry the same idempotency key.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

from redfirst.evaluators.canonical import INTENT, canonical_text, digest, same
from redfirst.evaluators.trajectory import MISSING, CallStatus, Effect, ToolCall, precedes

_SHORT = 80


@dataclass(frozen=True, eq=False)
class LogicalCall:
    """One call as the agent meant it: the attempts of it, first to last."""

    attempts: tuple[ToolCall, ...]
    intent: str | None
    """The arguments as canonical text without volatile keys and nulls; ``None`` when not recorded."""

    @property
    def first(self) -> ToolCall:
        """The attempt that began it."""
        return self.attempts[0]

    @property
    def last(self) -> ToolCall:
        """The attempt whose answer the agent went on with."""
        return self.attempts[-1]

    @property
    def unread(self) -> bool:
        """Whether what it answered was not recorded."""
        return self.last.result is MISSING and self.last.error is None

    @functools.cached_property
    def answer(self) -> str | None:
        """What it answered, as canonical text; ``None`` when that was not recorded."""
        if self.last.result is not MISSING:
            return "=" + canonical_text(self.last.result)
        return f"!{self.last.error}" if self.last.error is not None else None


def logical_calls(calls: Iterable[ToolCall], *, undeclared_is_retry: bool = True) -> list[LogicalCall]:
    """The calls that ran, with retries joined to what they retry.

    A tool that declares neither effect nor idempotence may be a write; ``undeclared_is_retry`` says
    how such attempts are read.
    """
    found: list[list[ToolCall]] = []
    intents: list[str | None] = []
    latest: dict[tuple[str | None, str, str], int] = {}
    for call in calls:
        if not call.ran:
            continue
        intent = None if call.arguments is None else canonical_text(call.arguments, INTENT)
        if intent is not None:
            key = (call.agent, call.name, intent)
            position = latest.get(key)
            if position is not None and _retries(found[position][-1], call, undeclared_is_retry):
                found[position].append(call)
                continue
            latest[key] = len(found)
        found.append([call])
        intents.append(intent)
    return [LogicalCall(tuple(attempts), intent) for attempts, intent in zip(found, intents, strict=True)]


def perhaps_retries(faults: Iterable[ToolCall], later: ToolCall) -> bool:
    """Whether the attempt may retry one of these, which ended in a fault: the arguments that would say so were not read."""
    return any(
        (fault.arguments is None or later.arguments is None)
        and (fault.agent, fault.name) == (later.agent, later.name)
        and _retries(fault, later, undeclared_is_retry=True)
        for fault in faults
    )


def in_time(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls by start, or by turn where starts are unknown.

    Calls that began together stand by content, so that the order they are listed in decides nothing.
    """
    listed = list(calls)
    timed = all(call.start_ns for call in listed)
    turned = all(call.turn is not None for call in listed)

    def began(call: ToolCall) -> tuple[int, int]:
        turn = -1 if call.turn is None else call.turn
        return (call.start_ns, turn) if timed else (turn, call.start_ns) if turned else (call.index, 0)

    times = list(map(began, listed))
    if all(map(operator.lt, times, itertools.islice(times, 1, None))):
        return listed
    ordered: list[ToolCall] = []
    for _, together in itertools.groupby(sorted(listed, key=began), key=began):
        group = list(together)
        ordered.extend(group if len(group) == 1 else sorted(group, key=_content))
    return ordered


def _content(call: ToolCall) -> str:
    facts = (call.effect, call.idempotent, call.poll, call.error, call.span_id)
    return canonical_text([call.name, call.arguments, call.agent, call.status, call.result, *map(str, facts)])


def short_arguments(call: ToolCall) -> str:
    """The arguments as they stand in a subject: the same in every run, and short."""
    text = canonical_text(call.arguments, INTENT)
    if len(text) <= _SHORT:
        return text
    return f"{text[: _SHORT - 20]}… {digest(call.arguments, INTENT)[:12]}"


def _retries(earlier: ToolCall, later: ToolCall, undeclared_is_retry: bool) -> bool:
    if earlier.status is not CallStatus.INFRA_ERROR or not precedes(earlier, later, order="executed"):
        return False
    if later.idempotent or later.effect is Effect.READ or _same_key(earlier, later):
        return True
    return undeclared_is_retry and later.effect is None and later.idempotent is None


def _same_key(earlier: ToolCall, later: ToolCall) -> bool:
    before, after = ((call.arguments or {}).get("idempotency_key") for call in (earlier, later))
    return before is not None and same(before, after)

"""Going round and standing still: cycles of calls, and answers that stay the same though the questions change.

The definitions stand in ``repeats``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from redfirst.evaluators.canonical import VOLATILE_KEYS, canonical_text
from redfirst.evaluators.logical import LogicalCall
from redfirst.evaluators.trajectory import MISSING, Effect, ToolCall, precedes

NO_PROGRESS_FROM = 3
NO_PROGRESS_FROM_SHORT = 5
SHORT_ANSWER = 64
LONGEST_PERIOD = 8
FEWEST_ROUNDS = 3
CURSOR_KEYS = frozenset(
    {"page", "cursor", "offset", "after", "start", "skip", "page_token", "next_token", "from"}
)
"""Arguments that say where a listing goes on."""


def cycles(calls: Sequence[LogicalCall], *, unread: bool = False) -> Iterator[tuple[int, str]]:
    """The calls after the first round of every cycle, with what is wrong.

    With ``unread`` an answer that was not recorded is taken for equal to any other.
    """
    if len({(call.first.name, call.intent) for call in calls}) == len(calls):
        return
    order = _order(calls)
    ordered = [calls[place] for place in order]
    for period in range(2, LONGEST_PERIOD + 1):
        length = 0
        for end in range(period, len(ordered) + 1):
            if end < len(ordered) and _alike(ordered[end], ordered[end - period], unread):
                length += 1
                continue
            block = {_content(call) for call in ordered[end - period : end]}
            if (length + period) // period >= FEWEST_ROUNDS and len(block) > 1:
                why = f"went round in a cycle of {period} calls with the same answers"
                yield from ((order[place], why) for place in range(end - length, end))
            length = 0


def _order(calls: Sequence[LogicalCall]) -> list[int]:
    """Places by time, the calls of one turn by content, so that their order within it decides nothing."""
    ordered: list[int] = []
    for turn, group in groupby(range(len(calls)), key=lambda place: calls[place].first.turn):
        together = list(group)
        if turn is not None and len(together) > 1:
            together.sort(key=lambda place: _content(calls[place]))
        ordered.extend(together)
    return ordered


def _content(call: LogicalCall) -> tuple[str, str, str]:
    return call.first.name, call.intent or "", call.answer or ""


def _alike(call: LogicalCall, other: LogicalCall, unread: bool) -> bool:
    """Whether two calls can stand at one place of two rounds; one that polls or was not read cannot."""
    return (
        call.intent is not None
        and (call.first.name, call.intent) == (other.first.name, other.intent)
        and not call.first.poll
        and not other.first.poll
        and _answered_alike(call.answer, other.answer, unread)
    )


def _answered_alike(answer: str | None, other: str | None, unread: bool) -> bool:
    return unread if answer is None or other is None else answer == other


def no_progress(calls: Sequence[LogicalCall], *, unread: bool = False) -> Iterator[tuple[int, str]]:
    """The calls that complete or prolong a standstill, with what is wrong.

    With ``unread`` an answer that was not recorded is taken for the one that the standstill needs.
    """
    asked: set[str | None] = set()
    recent: set[str | None] = set()
    """What was asked since an answer was last read."""
    known: LogicalCall | None = None
    for position, call in enumerate(calls):
        if position and not _follows(calls[position - 1], call, unread):
            asked, recent, known = set(), set(), None
        elif known is not None and not call.unread and call.answer != known.answer:
            asked, known = set(recent), None
        asked.add(call.intent)
        recent = recent | {call.intent} if call.unread else set()
        known = known if call.unread else call
        if len(asked) >= NO_PROGRESS_FROM and len(asked) >= _patience(known):
            yield position, "was called with other arguments and gave the same answer each time"


def _patience(known: LogicalCall | None) -> int:
    """How many equal answers in a row are no chance."""
    chance = known is not None and not _is_empty(known) and len(known.answer or "") < SHORT_ANSWER
    return NO_PROGRESS_FROM_SHORT if chance else NO_PROGRESS_FROM


def _is_empty(call: LogicalCall) -> bool:
    """Whether the answer holds no value at all: nothing but nulls, empty texts and empty containers."""
    return call.last.result is not MISSING and not _holds_value(call.last.result)


def _holds_value(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_value, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_value, value))
    return value is not None and value != ""


def _follows(before: LogicalCall, call: LogicalCall, unread: bool) -> bool:
    """Whether a call can prolong a standstill that the call before it belongs to."""
    effect = call.first.effect
    return (
        (before.first.name, before.first.agent) == (call.first.name, call.first.agent)
        and not call.first.poll
        and before.intent is not None
        and call.intent is not None
        and (effect is Effect.READ or (effect is None and _both_empty(before, call, unread)))
        and precedes(before.last, call.first)
        and _answered_alike(before.answer, call.answer, unread)
        and not _pages(before.last, call.first)
    )


def _both_empty(before: LogicalCall, call: LogicalCall, unread: bool) -> bool:
    return all(_is_empty(one) or (unread and one.unread) for one in (before, call))


def _pages(before: ToolCall, call: ToolCall) -> bool:
    ignored = CURSOR_KEYS | VOLATILE_KEYS
    old, new = (
        canonical_text({key: value for key, value in (one.arguments or {}).items() if key not in ignored})
        for one in (before, call)
    )
    return old == new and canonical_text(before.arguments) != canonical_text(call.arguments)

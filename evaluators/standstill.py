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


def cycles(calls: Sequence[LogicalCall]) -> Iterator[tuple[int, str]]:
    """The calls after the first round of every cycle, with what is wrong."""
    if len({(call.first.name, call.intent) for call in calls}) == len(calls):
        return
    order = _order(calls)
    tokens = [_token(calls[place], place) for place in order]
    for period in range(2, LONGEST_PERIOD + 1):
        length = 0
        for end in range(period, len(tokens) + 1):
            if end < len(tokens) and tokens[end] == tokens[end - period]:
                length += 1
                continue
            if (length + period) // period >= FEWEST_ROUNDS and len(set(tokens[end - period : end])) > 1:
                why = f"went round in a cycle of {period} calls with the same answers"
                yield from ((order[place], why) for place in range(end - length, end))
            length = 0


def _order(calls: Sequence[LogicalCall]) -> list[int]:
    """Places by time, the calls of one turn by content, so that their order within it decides nothing."""
    ordered: list[int] = []
    for turn, group in groupby(range(len(calls)), key=lambda place: calls[place].first.turn):
        together = list(group)
        if turn is not None and len(together) > 1:
            together.sort(key=lambda place: _token(calls[place], place))
        ordered.extend(together)
    return ordered


def _token(call: LogicalCall, place: int) -> str:
    """What must be equal round by round; a call that cannot be compared, or polls, equals nothing."""
    if call.first.poll or call.intent is None or call.answer is None:
        return f"#{place}"
    return f"{call.first.name} {call.intent} {call.answer}"


def no_progress(calls: Sequence[LogicalCall]) -> Iterator[tuple[int, str]]:
    """The calls that complete or prolong a standstill, with what is wrong."""
    asked: set[str | None] = set()
    for position, call in enumerate(calls):
        if position and not _stands_still(calls[position - 1], call):
            asked = set()
        asked.add(call.intent)
        if len(asked) >= _patience(call):
            yield position, "was called with other arguments and gave the same answer each time"


def _patience(call: LogicalCall) -> int:
    """How many equal answers in a row are no chance."""
    chance = not _is_empty(call) and len(call.answer or "") < SHORT_ANSWER
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


def _stands_still(before: LogicalCall, call: LogicalCall) -> bool:
    effect = call.first.effect
    return (
        (before.first.name, before.first.agent) == (call.first.name, call.first.agent)
        and not call.first.poll
        and before.intent is not None
        and call.intent is not None
        and (effect is Effect.READ or (effect is None and _is_empty(call)))
        and call.answer is not None
        and call.answer == before.answer
        and precedes(before.last, call.first)
        and not _pages(before.last, call.first)
    )


def _pages(before: ToolCall, call: ToolCall) -> bool:
    ignored = CURSOR_KEYS | VOLATILE_KEYS
    old, new = (
        canonical_text({key: value for key, value in (one.arguments or {}).items() if key not in ignored})
        for one in (before, call)
    )
    return old == new and canonical_text(before.arguments) != canonical_text(call.arguments)

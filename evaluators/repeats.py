"""Calls that bring nothing new: exact repeats, no progress, cycles.

Definitions, over *logical* calls (a retry after an infrastructure fault is part of the call it retries):

- exact repeat: same agent, tool and intent as an earlier call, with nothing changed in between. Something
  may have changed when a write ran in between, or when a tool of undeclared effect ran in between and the
  answer differs. The first new try after a tool error is no repeat, the second is. A write with the
  intent of an earlier write is always a repeat. Equal calls of one model turn are repeats of each other.
- no progress: the third and every further call in a row of one tool whose answers are equal though the
  arguments differ, each decided after the answer before it. An answer that says something in a few
  characters (``{"in_stock": true}``) is equal by chance too, so it takes five of them. Asked of declared
  reads; of undeclared tools only when the answer is empty, because ``{"ok": true}`` is what good writes
  answer. Paging (arguments differ in the cursor alone) is progress.
- cycle: a block of 2 to 8 calls with equal intents and equal answers, three times or more in a row; every
  call after the first block counts.

Tools declared with ``poll`` are never repeats. Calls that were denied or never ran are not calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from redfirst.evaluators.canonical import VOLATILE_KEYS, canonical_text
from redfirst.evaluators.logical import LogicalCall, logical_calls, short_arguments
from redfirst.evaluators.trajectory import MISSING, CallStatus, Effect, Stop, ToolCall, Trajectory, precedes
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1
NO_PROGRESS_FROM = 3
NO_PROGRESS_FROM_SHORT = 5
SHORT_ANSWER = 64
LONGEST_PERIOD = 8
FEWEST_ROUNDS = 3
CURSOR_KEYS = frozenset(
    {"page", "cursor", "offset", "after", "start", "skip", "page_token", "next_token", "from"}
)

_CAPS = frozenset({Stop.STEP_CAP, Stop.TOKEN_CAP, Stop.TIME_CAP, Stop.LOOP_CUT})


def repeats(run: Trajectory) -> Verdict:
    """Whether any logical call repeats an earlier one; ``of`` is (calls that repeat nothing, calls)."""
    calls = logical_calls(_ran(run))
    if not calls:
        return not_applicable("no tool was called")
    counted = _exact(calls)
    for position, why in (*_cycles(calls), *_no_progress(calls)):
        counted.setdefault(position, why)
    if not counted:
        unread = _unreadable(calls)
        if unread:
            return inconclusive(
                f"the arguments of {unread} were not recorded, so calls of it cannot be compared"
            )
        return passed(f"{len(calls)} call(s), none repeated", of=(len(calls), len(calls)))
    findings = tuple(_findings(calls, counted))
    return failed(
        "; ".join(finding.because for finding in findings[:3]) + ("; …" if len(findings) > 3 else ""),
        findings=findings,
        of=(len(calls) - len(counted), len(calls)),
    )


def _ran(run: Trajectory) -> list[ToolCall]:
    """The calls that ran. What was asked for in the turn that hit a cap, and got no answer, did not."""
    cut = run.termination.reason in _CAPS
    last_turn = max((call.turn for call in run.tool_calls if call.turn is not None), default=None)
    return [
        call
        for call in run.tool_calls
        if call.ran
        and not (
            cut
            and call.turn == last_turn
            and call.status is CallStatus.UNKNOWN
            and call.result is MISSING
            and call.error is None
        )
    ]


def _exact(calls: Sequence[LogicalCall]) -> dict[int, str]:
    counted: dict[int, str] = {}
    seen: dict[tuple[str, str], list[int]] = defaultdict(list)
    for position, call in enumerate(calls):
        if call.intent is None:
            continue
        earlier = seen[call.first.name, call.intent]
        if earlier and not call.first.poll:
            why = _why_repeated(calls, earlier, position)
            if why:
                counted[position] = why
        earlier.append(position)
    return counted


def _why_repeated(calls: Sequence[LogicalCall], earlier: Sequence[int], position: int) -> str | None:
    call = calls[position]
    if call.first.effect is Effect.WRITE:
        return "was written again"
    own = [place for place in earlier if calls[place].first.agent == call.first.agent]
    if not own:
        return None
    before = calls[own[-1]]
    if before.last.turn is not None and before.last.turn == call.first.turn:
        return "was called again in the same turn"
    if _may_have_changed(calls, own[-1], position):
        return None
    if before.last.status is CallStatus.TOOL_ERROR:
        tried = len(own) > 1 and calls[own[-2]].last.status is CallStatus.TOOL_ERROR
        return "was tried again unchanged after the same error" if tried else None
    if _answer(before) != _answer(call):
        return "was called again (declare the tool with poll if waiting for a change is its use)"
    return "was called again with nothing changed in between"


def _may_have_changed(calls: Sequence[LogicalCall], before: int, after: int) -> bool:
    """Whether something ran between or beside the two that may have changed the answer."""
    others = list(range(before + 1, after))
    place = before - 1
    while place >= 0 and not precedes(calls[place].last, calls[before].first):
        others.append(place)
        place -= 1
    place = after + 1
    while place < len(calls) and not precedes(calls[after].last, calls[place].first):
        others.append(place)
        place += 1
    effects = {
        calls[other].first.effect for other in others if calls[other].last.status is not CallStatus.TOOL_ERROR
    }
    if Effect.WRITE in effects:
        return True
    old, new = _answer(calls[before]), _answer(calls[after])
    return None in effects and (old is None or old != new)


def _answer(call: LogicalCall) -> str | None:
    """The answer as text; ``None`` when it was not recorded."""
    if call.last.result is not MISSING:
        return "=" + canonical_text(call.last.result)
    return f"!{call.last.error}" if call.last.error is not None else None


def _cycles(calls: Sequence[LogicalCall]) -> Iterator[tuple[int, str]]:
    order = sorted(range(len(calls)), key=lambda place: _place_in_turn(calls, place))
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


def _place_in_turn(calls: Sequence[LogicalCall], place: int) -> tuple[int, str]:
    """Sorts the calls of one turn by content, so that their order within it decides nothing."""
    turn = calls[place].first.turn
    start = place
    while turn is not None and start > 0 and calls[start - 1].first.turn == turn:
        start -= 1
    return start, _token(calls[place], place)


def _token(call: LogicalCall, place: int) -> str:
    """What must be equal round by round; a call that cannot be compared, or polls, equals nothing."""
    answer = _answer(call)
    if call.intent is None or answer is None or call.first.poll:
        return f"#{place}"
    return f"{call.first.name} {call.intent} {answer}"


def _no_progress(calls: Sequence[LogicalCall]) -> Iterator[tuple[int, str]]:
    streak: list[int] = []
    for position, call in enumerate(calls):
        if streak and not _stands_still(calls[streak[-1]], call):
            streak = []
        streak.append(position)
        if len({calls[place].intent for place in streak}) >= _patience(call):
            yield position, "was called with other arguments and gave the same answer each time"


def _patience(call: LogicalCall) -> int:
    """How many equal answers in a row are no chance."""
    chance = not _is_empty(call) and len(_answer(call) or "") < SHORT_ANSWER
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
    effect, answer = call.first.effect, _answer(call)
    return (
        (before.first.name, before.first.agent) == (call.first.name, call.first.agent)
        and not call.first.poll
        and None not in (before.intent, call.intent, answer)
        and answer == _answer(before)
        and (effect is Effect.READ or (effect is None and _is_empty(call)))
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


def _unreadable(calls: Sequence[LogicalCall]) -> str | None:
    """The first tool with several calls of which one has no recorded arguments."""
    names: dict[str, list[LogicalCall]] = defaultdict(list)
    for call in calls:
        names[call.first.name].append(call)
    return next(
        (
            name
            for name, group in names.items()
            if len(group) > 1 and not group[0].first.poll and any(call.intent is None for call in group)
        ),
        None,
    )


def _findings(calls: Sequence[LogicalCall], counted: dict[int, str]) -> Iterator[Finding]:
    groups: dict[str, list[int]] = defaultdict(list)
    for position in sorted(counted):
        first = calls[position].first
        groups[f"{first.name}|{short_arguments(first)}"].append(position)
    for subject, positions in groups.items():
        tool, _, arguments = subject.partition("|")
        times = f" ({len(positions)} times)" if len(positions) > 1 else ""
        yield Finding(
            subject=subject,
            because=f"{tool} {arguments} {counted[positions[0]]}{times}",
            evidence=tuple(
                Evidence(
                    span_id=calls[position].first.span_id,
                    pointer=f"/tool_calls/{calls[position].first.index}",
                    note=counted[position],
                )
                for position in positions
            ),
        )

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
from collections.abc import Iterator, Sequence
from itertools import accumulate

from redfirst.evaluators.logical import LogicalCall, in_time, logical_calls, short_arguments
from redfirst.evaluators.standstill import cycles, no_progress
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

_CAPS = frozenset({Stop.STEP_CAP, Stop.TOKEN_CAP, Stop.TIME_CAP, Stop.LOOP_CUT})


def repeats(run: Trajectory) -> Verdict:
    """Whether any logical call repeats an earlier one; ``of`` is (calls that repeat nothing, calls)."""
    calls = logical_calls(_ran(run))
    if not calls:
        return not_applicable("no tool was called")
    counted = _exact(calls)
    for position, why in (*cycles(calls), *no_progress(calls)):
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
        for call in in_time(run.tool_calls)
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
    written: set[tuple[str, str]] = set()
    last_two: dict[tuple[str | None, str, str], tuple[int | None, int]] = {}
    changers = _Changers(calls)
    for position, call in enumerate(calls):
        if call.intent is None:
            continue
        name, agent = call.first.name, call.first.agent
        before, last = last_two.get((agent, name, call.intent), (None, None))
        why = None
        if call.first.poll:
            pass
        elif call.first.effect is Effect.WRITE and (name, call.intent) in written:
            why = "was written again"
        elif call.first.effect is not Effect.WRITE and last is not None:
            why = _why_repeated(calls, before, last, position, changers)
        if why:
            counted[position] = why
        written.add((name, call.intent))
        last_two[agent, name, call.intent] = (last, position)
    return counted


def _why_repeated(
    calls: Sequence[LogicalCall], before: int | None, last: int, position: int, changers: _Changers
) -> str | None:
    """Why a call that its agent made before, last at ``last``, is a repeat; ``None`` when it is none."""
    call, earlier = calls[position], calls[last]
    if earlier.last.turn is not None and earlier.last.turn == call.first.turn:
        return "was called again in the same turn"
    if changers.may_have_changed(last, position):
        return None
    if earlier.last.status is CallStatus.TOOL_ERROR:
        tried = before is not None and calls[before].last.status is CallStatus.TOOL_ERROR
        return "was tried again unchanged after failing twice" if tried else None
    if earlier.answer != call.answer:
        return "was called again (declare the tool with poll if waiting for a change is its use)"
    if call.answer is None:
        return "was called again with nothing changed in between"
    return "was called again and answered the same"


class _Changers:
    """Which calls may have changed what others answer: writes surely, calls of undeclared effect perhaps."""

    def __init__(self, calls: Sequence[LogicalCall]) -> None:
        self._calls = calls
        self._writes = list(accumulate((_changes(call, Effect.WRITE) for call in calls), initial=0))
        self._undeclared = list(accumulate((_changes(call, None) for call in calls), initial=0))

    def may_have_changed(self, before: int, after: int) -> bool:
        """Whether something ran between or beside the two that may have changed the answer."""
        calls = self._calls
        first, last = before, after
        while first > 0 and not precedes(calls[first - 1].last, calls[before].first):
            first -= 1
        while last + 1 < len(calls) and not precedes(calls[after].last, calls[last + 1].first):
            last += 1
        if self._between(self._writes, first, last, before, after):
            return True
        old, new = calls[before].answer, calls[after].answer
        return bool(self._between(self._undeclared, first, last, before, after)) and (
            old is None or old != new
        )

    def _between(self, sums: Sequence[int], first: int, last: int, before: int, after: int) -> int:
        """How many in first…last, the two themselves left out."""
        own = sum(sums[place + 1] - sums[place] for place in (before, after))
        return sums[last + 1] - sums[first] - own


def _changes(call: LogicalCall, effect: Effect | None) -> int:
    return call.first.effect is effect and call.last.status is not CallStatus.TOOL_ERROR


def _unreadable(calls: Sequence[LogicalCall]) -> str | None:
    """The first tool with several calls of which one has no recorded arguments."""
    names: dict[str, list[LogicalCall]] = defaultdict(list)
    for call in calls:
        names[call.first.name].append(call)
    return next(
        (
            name
            for name, group in names.items()
            if len(group) > 1
            and not any(call.first.poll for call in group)
            and any(call.intent is None for call in group)
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

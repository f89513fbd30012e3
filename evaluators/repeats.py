"""Calls that bring nothing new: exact repeats, no progress, cycles.

Definitions, over *logical* calls (a retry after an infrastructure fault is part of the call it retries):

- exact repeat: same agent, tool and intent as an earlier call, with nothing changed in between. Something
  may have changed when a write ran in between, or when a tool of undeclared or ``control`` effect ran in
  between and the answer differs. The first new try after a tool error is no repeat, the second is. A write
  with the intent of an earlier write is always a repeat, also where the earlier one ended in an
  infrastructure fault and neither idempotence nor a common key makes it a retry: it may have taken effect.
  Equal calls of one model turn are repeats of each other.
- no progress: the third and every further call in a row of one tool whose answers are equal though the
  arguments differ, each decided after the answer before it. An answer that says something in a few
  characters (``{"in_stock": true}``) is equal by chance too, so it takes five of them. Asked of declared
  reads; of undeclared tools only when the answer is empty, because ``{"ok": true}`` is what good writes
  answer. Paging (arguments differ in the cursor alone) is progress.
- cycle: a block of 2 to 8 calls with equal intents and equal answers, three times or more in a row; every
  call after the first block counts.

Tools declared with ``poll`` are never repeats. Calls that were denied or never ran are not calls. Where
one of these hangs on what was not recorded (arguments, an answer, whether a call ran), the call is open:
it counts neither as a repeat nor as a call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate

from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.later import Later
from redfirst.evaluators.logical import LogicalCall, in_time, logical_calls, short_arguments
from redfirst.evaluators.rule_kinds.conclude import and_untold
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_names, without_absence
from redfirst.evaluators.rule_kinds.order import before as came_before
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

VERSION = 2

_CAPS = frozenset({Stop.STEP_CAP, Stop.TOKEN_CAP, Stop.TIME_CAP, Stop.LOOP_CUT})
_AGAIN = "again after a failure whose effect is unknown"


def repeats(run: Trajectory) -> Verdict:
    """Whether any logical call repeats an earlier one; ``of`` is (calls that repeat nothing, calls judged)."""
    calls = logical_calls(in_time(run.tool_calls))
    lack = lacks_calls(run) or (lacks_names(run) if len(calls) > 1 else None)
    return without_absence(_seen(calls, _cut_off(run)), lack)


def _seen(calls: Sequence[LogicalCall], cut_off: int | None) -> Verdict:
    """The verdict on the calls that are there."""
    if not calls:
        return not_applicable("no tool was called")
    counted, unclear = _exact(calls, cut_off)
    for position, why in (*cycles(calls), *no_progress(calls)):
        counted.setdefault(position, why)
    if any(call.unread for call in calls):
        unread = (*cycles(calls, unread=True), *no_progress(calls, unread=True))
        unclear |= {position: "not every answer was recorded" for position, _ in unread}
    unclear |= _unreadable(calls)
    unclear = {position: why for position, why in unclear.items() if position not in counted}
    judged = len(calls) - len(unclear)
    if counted:
        findings = tuple(_findings(calls, counted))
        return failed(
            "; ".join(finding.because for finding in findings[:3])
            + ("; …" if len(findings) > 3 else "")
            + and_untold(len(unclear)),
            findings=findings,
            of=(judged - len(counted), judged),
        )
    if unclear:
        position = min(unclear)
        name = calls[position].first.name
        return inconclusive(
            f"whether {name} was called again for nothing cannot be told: {unclear[position]}"
        )
    return passed(f"{judged} call(s), none repeated", of=(judged, judged))


def _cut_off(run: Trajectory) -> int | None:
    """The turn that a cap cut off: what it asked for without an answer may not have run."""
    turns = [call.turn for call in run.tool_calls if call.turn is not None]
    return max(turns, default=None) if run.termination.reason in _CAPS else None


def _exact(calls: Sequence[LogicalCall], cut_off: int | None) -> tuple[dict[int, str], dict[int, str]]:
    """The exact repeats with what is wrong, and the calls that may be one with what is not known."""
    counted: dict[int, str] = {}
    unclear: dict[int, str] = {}
    written: dict[tuple[str, str], int] = {}
    last_two: dict[tuple[str | None, str, str], tuple[int | None, int]] = {}
    changers = Later(partial(_Changers, calls))
    for position, call in enumerate(calls):
        if call.intent is None or call.first.poll:
            continue
        name = call.first.name
        before, last = last_two.get((call.first.agent, name, call.intent), (None, None))
        why, doubt = None, None
        if call.first.effect is Effect.WRITE:
            last = written.get((name, call.intent))
            if last is not None:
                lost = calls[last].last.status is CallStatus.INFRA_ERROR
                why = f"was written {_AGAIN}" if lost else "was written again"
        elif last is not None:
            why, doubt = _why_repeated(calls, before, last, position, changers)
        suspects = [] if last is None else [calls[last].last]
        if cut_off is not None and call.last.turn == cut_off:
            suspects.append(call.last)
        if why and any(map(_may_not_have_run, suspects)):
            doubt = "nothing says whether it ran"
        if doubt:
            unclear[position] = doubt
        elif why:
            counted[position] = why
        written[name, call.intent] = position
        last_two[call.first.agent, name, call.intent] = (last, position)
    return counted, unclear


def _may_not_have_run(call: ToolCall) -> bool:
    """Whether nothing is known of it but that it was asked for."""
    return call.status is CallStatus.UNKNOWN and call.result is MISSING and call.error is None


def _why_repeated(
    calls: Sequence[LogicalCall], before: int | None, last: int, position: int, changers: Later[_Changers]
) -> tuple[str | None, str | None]:
    """Why a call that its agent made before, last at ``last``, is a repeat, and what leaves that open."""
    call, earlier = calls[position], calls[last]
    if earlier.last.turn is not None and earlier.last.turn == call.first.turn:
        return "was called again in the same turn", None
    changed = changers.get().changed(last, position)
    if changed is True:
        return None, None
    doubt = "what changed in between was not recorded" if changed is None else None
    if earlier.last.status is CallStatus.INFRA_ERROR:
        writes = call.first.effect is None and call.first.idempotent is False
        return (f"was called {_AGAIN}" if writes else None), None
    if earlier.last.status is CallStatus.TOOL_ERROR:
        tried = None if before is None else calls[before].last.status
        if tried is CallStatus.UNKNOWN:
            return None, "nothing says how the try before the last ended"
        return (
            ("was tried again unchanged after failing twice", doubt)
            if tried is CallStatus.TOOL_ERROR
            else (None, None)
        )
    if call.unread or earlier.unread:
        return "was called again with nothing changed in between", doubt
    if earlier.answer != call.answer:
        return "was called again (declare the tool with poll if waiting for a change is its use)", doubt
    return "was called again and answered the same", doubt


class _Changers:
    """Which calls may have changed what others answer: writes surely, others that are no reads perhaps."""

    def __init__(self, calls: Sequence[LogicalCall]) -> None:
        self._calls = calls
        self._writes, self._maybe_writes, self._others, self._maybe_others = (
            list(accumulate((_changes(call, effects) is truth for call in calls), initial=0))
            for effects in (frozenset({Effect.WRITE}), frozenset({Effect.CONTROL, None}))
            for truth in (True, None)
        )

    def changed(self, before: int, after: int) -> Truth:
        """Whether something ran between or beside the two that changed the answer."""
        calls = self._calls
        first, last = before, after
        ordered = came_before(calls[before].last, calls[after].first, "decided") is not None
        while first > 0 and not precedes(calls[first - 1].last, calls[before].first):
            first -= 1
            ordered = ordered and came_before(calls[first].last, calls[before].first, "decided") is False
        while last + 1 < len(calls) and not precedes(calls[after].last, calls[last + 1].first):
            last += 1
            ordered = ordered and came_before(calls[after].last, calls[last].first, "decided") is False
        write, maybe_write, other, maybe_other = (
            sums[last + 1] - sums[first] - sum(sums[own + 1] - sums[own] for own in (before, after)) > 0
            for sums in (self._writes, self._maybe_writes, self._others, self._maybe_others)
        )
        old, new = calls[before].answer, calls[after].answer
        unread = old is None or new is None
        differ = old != new and not unread
        if ordered and (write or (other and differ)):
            return True
        hidden = (other or maybe_other) and (unread or differ)
        return None if write or maybe_write or hidden else False


def _changes(call: LogicalCall, effects: frozenset[Effect | None]) -> Truth:
    """Whether it is of such an effect and took it; a call that ended in a tool error did not."""
    if call.first.effect not in effects or call.last.status is CallStatus.TOOL_ERROR:
        return False
    return None if call.last.status is CallStatus.UNKNOWN else True


def _unreadable(calls: Sequence[LogicalCall]) -> dict[int, str]:
    """The calls that may repeat an earlier call of their tool, one of the two having no recorded arguments."""
    unclear: dict[int, str] = {}
    if all(call.intent is not None for call in calls):
        return unclear
    called: set[str] = set()
    unread: set[str] = set()
    for position, call in enumerate(calls):
        name = call.first.name
        if call.first.poll:
            continue
        if name in unread or (call.intent is None and name in called):
            unclear[position] = (
                f"the arguments of {name} were not recorded, so calls of it cannot be compared"
            )
        called.add(name)
        if call.intent is None:
            unread.add(name)
    return unclear


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

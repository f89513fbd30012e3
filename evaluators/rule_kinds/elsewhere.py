"""Values that do not stand in the judged call: earlier results, the state before it, the hour it was made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from redfirst.evaluators.canonical import INTENT, equal
from redfirst.evaluators.kleene import Truth, all_of
from redfirst.evaluators.paths import ABSENT, look_up, opened, parse_path
from redfirst.evaluators.rule_kinds.happenings import among
from redfirst.evaluators.rule_kinds.lacking import incomplete, lacks_calls, lacks_names, missing_fact
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.trajectory import MISSING, CallStatus, ToolCall, Trajectory

EACH = "*"
"""In a path of ``results_of``: every item of a list, every value of a mapping."""


def latest_result(tool: str, parts: tuple[str, ...], call: ToolCall, run: Trajectory, order: str) -> object:
    """What the latest earlier success of the tool answered.

    Only calls count whose arguments agree with the judged call's wherever both have one of that name; those
    of the earlier conversation do. Where it cannot be told which was the latest, or whether one of them
    succeeded, the value is missing. So it is where calls may be missing, of which one may have been later.
    """
    if lacks_calls(run) or lacks_names(run):
        return MISSING
    certain: list[ToolCall] = []
    possible: list[ToolCall] = []
    for other in among((tool,), run, earlier=True):
        fits = all_of((_succeeded(other), before(other, call, order), _agrees(other, call)))
        if fits is True:
            certain.append(other)
        if fits is not False:
            possible.append(other)
    latest = [one for one in possible if not any(before(one, newer, "executed") for newer in certain)]
    values = [look_up(opened(one.result), parts) for one in latest if one in certain]
    if (
        len(values) < len(latest)
        or not values
        or any(not _surely_equal(values[0], other) for other in values[1:])
    ):
        return MISSING
    return values[0]


def all_results(tool: str, path: Sequence[str], call: ToolCall, run: Trajectory, order: str) -> list[object]:
    """Everything at a path of the results of the tool's earlier successes, as one list.

    What cannot be read, or may have been answered by a call that is not there, stands in it as ``MISSING``:
    it may be any value.
    """
    found: list[object] = []
    for other in among((tool,), run, earlier=True):
        truth = all_of((_succeeded(other), before(other, call, order)))
        if truth is False:
            continue
        values = list(_values(opened(other.result), path))
        found += [value if truth else MISSING for value in values if value is not ABSENT]
    if lacks_calls(run) or lacks_names(run):
        found.append(MISSING)
    return found


def state_before(keys: Sequence[str], call: ToolCall, run: Trajectory) -> object:
    """The value in the last state that was reported before the call began."""
    if incomplete(run) or missing_fact(run, "states") or not call.start_ns:
        return MISSING
    known = [snapshot for snapshot in run.states if snapshot.time_ns <= call.start_ns]
    return look_up(known[-1].state, keys) if known else MISSING


def moment(what: str, call: ToolCall) -> object:
    """The hour (``clock``, HH:MM), day (``date``) or day of the week (``weekday``, Monday is 1) it began, in UTC."""
    if not call.start_ns:
        return MISSING
    began = datetime.fromtimestamp(call.start_ns // 10**9, UTC)
    if what == "weekday":
        return began.isoweekday()
    return began.strftime("%H:%M") if what == "clock" else began.date().isoformat()


def _values(value: object, path: Sequence[str]) -> Iterator[object]:
    for place, part in enumerate(path):
        if part != EACH:
            value = look_up(value, parse_path(part))
            continue
        if isinstance(value, Mapping):
            value = list(value.values())
        if isinstance(value, list | tuple):
            for item in value:
                yield from _values(item, path[place + 1 :])
        else:
            yield ABSENT if value is ABSENT or value is None else MISSING
        return
    if isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def _succeeded(call: ToolCall) -> Truth:
    return True if call.status is CallStatus.OK else None if call.status is CallStatus.UNKNOWN else False


def _agrees(other: ToolCall, call: ToolCall) -> Truth:
    if other.arguments is None or call.arguments is None:
        return None
    shared = (set(other.arguments) & set(call.arguments)) - INTENT.drop_keys
    return all_of(equal(other.arguments[name], call.arguments[name]) for name in shared)


def _surely_equal(left: object, right: object) -> bool:
    """Equality that also holds between values that are not there."""
    return left is right or equal(left, right) is True

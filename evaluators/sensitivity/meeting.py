"""A call that meets conditions: with other arguments, or with other answers to what was read for it."""

from __future__ import annotations

from dataclasses import replace

from redfirst.evaluators.conditions import Where
from redfirst.evaluators.paths import RESULT_OF, call_path
from redfirst.evaluators.rule_kinds.elsewhere import latest_result
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.sensitivity import editing
from redfirst.evaluators.sensitivity.places import looking, value_at
from redfirst.evaluators.sensitivity.values import meeting, placed
from redfirst.evaluators.trajectory import MISSING, CallStatus, ToolCall, Trajectory


def made_true(where: Where, call: ToolCall, run: Trajectory) -> Trajectory | None:
    """The run in which the call meets every condition; ``None`` where a value for one was not found."""
    new, at = run, call
    for path, condition in where.conditions:
        wanted = meeting(condition, value_at(path, at, new), looking(at, new))
        if wanted is MISSING:
            return None
        new = _with_value(new, at, path, wanted)
        at = new.tool_calls[call.index]
    return new


def _with_value(run: Trajectory, call: ToolCall, path: str, value: object) -> Trajectory:
    parts = call_path(path)
    if parts[0] in ("args", "result"):
        return editing.with_call(run, call, editing.with_value(call, parts, lambda _: value))
    if parts[0] == RESULT_OF:
        read = [
            one
            for one in run.calls_to(parts[1])
            if one.status is CallStatus.OK and before(one, call, "decided") is True and _keyed(one, call)
        ]
        if read and latest_result(parts[1], (), call, run, "decided") is not MISSING:
            places = {one.index for one in read}
            return editing.changed(
                run,
                lambda one: (
                    replace(one, result=placed(one.result, parts[2:], value)) if one.index in places else one
                ),
            )
    return run


def _keyed(one: ToolCall, call: ToolCall) -> bool:
    """Whether their arguments agree wherever both have one of that name."""
    here, there = one.arguments or {}, call.arguments or {}
    return all(here[name] == there[name] for name in set(here) & set(there))

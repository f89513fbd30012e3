"""Whether the agent got over the errors of its tools."""

from __future__ import annotations

from redfirst.evaluators.kleene import Truth, any_of
from redfirst.evaluators.rule_kinds.conclude import and_untold, at
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_names
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict, failed, inconclusive, not_applicable, passed

VERSION = 1


def recovery(run: Trajectory) -> Verdict:
    """Tool errors that a later success of the same tool followed ÷ tool errors whose sequel is known.

    An error of the infrastructure is none of the tool's, and what did not run had none. Where calls may be
    missing a success may be among them, so only a run whose errors were all followed by one passes.
    """
    errors = [call for call in run.tool_calls if call.status is CallStatus.TOOL_ERROR]
    lack = lacks_calls(run) or lacks_names(run)
    lack = lack or _unended(run)
    if not errors:
        return (
            inconclusive(f"{lack}; in what is there: no tool error")
            if lack
            else not_applicable("no tool error")
        )
    truths = [_followed(call, run) for call in errors]
    good, lost = (
        truths.count(True),
        [call for call, truth in zip(errors, truths, strict=True) if truth is False],
    )
    if lack and good < len(errors):
        return inconclusive(
            f"{lack}; {good} of {len(errors)} tool error(s) are seen to be followed by a success"
        )
    if lack:
        return inconclusive(f"{lack}; in what is there: {good} tool error(s), each followed by a success")
    if lost:
        names = ", ".join(sorted({call.name for call in lost}))
        because = f"{len(lost)} of {len(errors)} tool error(s) had no later success of the tool: {names}"
        return failed(
            because + and_untold(truths.count(None)),
            findings=[
                _finding(name, [call for call in lost if call.name == name]) for name in names.split(", ")
            ],
            of=(good, good + len(lost)),
        )
    if None in truths:
        return inconclusive(
            f"what followed {truths.count(None)} of {len(errors)} tool error(s) was not recorded"
        )
    return passed(f"{good} tool error(s), each followed by a success of the tool", of=(good, good))


def _unended(run: Trajectory) -> str | None:
    """Why there may be more errors."""
    unknown = sum(call.status is CallStatus.UNKNOWN for call in run.tool_calls)
    return f"the trace does not say how {unknown} call(s) ended" if unknown else None


def _followed(error: ToolCall, run: Trajectory) -> Truth:
    return any_of(_corrects(error, call) for call in run.tool_calls if call.name == error.name)


def _corrects(error: ToolCall, call: ToolCall) -> Truth:
    if call.status not in (CallStatus.OK, CallStatus.UNKNOWN):
        return False
    came = before(error, call, "decided")
    return came if call.status is CallStatus.OK or came is False else None


def _finding(name: str, calls: list[ToolCall]) -> Finding:
    because = f"{name} ended in an error and did not succeed afterwards"
    return Finding(
        subject=name,
        because=because,
        evidence=tuple(at(call, (call.error or "").strip().partition("\n")[0][:200]) for call in calls),
    )

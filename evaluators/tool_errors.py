"""How many of the calls that ran ended in an error."""

from __future__ import annotations

from redfirst.evaluators.rule_kinds.conclude import and_untold
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, without_absence
from redfirst.evaluators.trajectory import CallStatus, Trajectory
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

_ERRORS = (CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR)


def tool_errors(run: Trajectory) -> Verdict:
    """Whether every call that ran succeeded; ``of`` is (calls that were ok, calls that ran and whose end is known)."""
    return without_absence(_seen(run), lacks_calls(run))


def _seen(run: Trajectory) -> Verdict:
    """The verdict on the calls that are there."""
    ran = [call for call in run.tool_calls if call.ran]
    if not ran:
        return not_applicable("no tool was called")
    bad = [call for call in ran if call.status in _ERRORS]
    unknown = sum(call.status is CallStatus.UNKNOWN for call in ran)
    if not bad and unknown:
        return inconclusive(f"the trace does not say how {unknown} of {len(ran)} call(s) ended")
    known = len(ran) - unknown
    of = (known - len(bad), known)
    if not bad:
        return passed(f"{len(ran)} call(s), each ok", of=of)
    findings = [
        Finding(
            subject=f"{name}|{status.value}",
            because=f"{name} ended with {status.value} in {len(calls)} of its calls",
            evidence=tuple(
                Evidence(
                    span_id=call.span_id, pointer=f"/tool_calls/{call.index}", note=_first_line(call.error)
                )
                for call in calls
            ),
        )
        for name, status in sorted({(call.name, call.status) for call in bad})
        if (calls := [call for call in bad if (call.name, call.status) == (name, status)])
    ]
    names = ", ".join(sorted({call.name for call in bad}))
    because = f"{len(bad)} of {known} call(s) ended in an error: {names}{and_untold(unknown)}"
    return failed(because, findings=findings, of=of)


def _first_line(error: str | None) -> str:
    return (error or "").strip().partition("\n")[0][:200]

"""Whether the run ended by itself, as an agent should."""

from __future__ import annotations

from redfirst.evaluators.trajectory import Stop, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, failed, inconclusive, passed

VERSION = 1

_GOOD = {
    Stop.COMPLETED: "the run ended with an answer",
    Stop.HANDOFF: "the run ended with a handoff",
    Stop.REFUSED: "the run ended with a refusal",
}
_BAD = {
    Stop.STEP_CAP: "the run was stopped at its step cap",
    Stop.TOKEN_CAP: "the run was stopped at its token cap",
    Stop.TIME_CAP: "the run was stopped at its time cap",
    Stop.LOOP_CUT: "the run was cut because it went in a loop",
    Stop.ERROR: "the run ended with an error",
    Stop.ABANDONED: "the run stopped without an end",
}
_UNJUDGED = {
    Stop.INFRA: "infrastructure ended the run, which says nothing of the agent",
    Stop.PARKED: "the run is parked and has not ended",
    Stop.UNKNOWN: "the trace does not say why the run ended",
}


def termination(run: Trajectory) -> Verdict:
    """Completed, handed off or refused passes; a cap, a loop, an error or no end at all fails."""
    end = run.termination
    detail = f": {end.because}" if end.because else ""
    if end.reason in _GOOD:
        return passed(_GOOD[end.reason])
    if end.reason in _UNJUDGED:
        return inconclusive(f"{_UNJUDGED[end.reason]}{detail}")
    because = _BAD[end.reason] + (f" of {end.cap}" if end.cap is not None else "") + detail
    where = Evidence(span_id=end.span_id or run.root_span_id, pointer="/termination", note=end.because)
    return failed(because, findings=[Finding(subject=end.reason.value, because=because, evidence=(where,))])

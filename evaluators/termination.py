"""Whether the run ended by itself, as an agent should."""

from __future__ import annotations

from redfirst.evaluators.rule_kinds.lacking import incomplete
from redfirst.evaluators.trajectory import Stop, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, failed, inconclusive, passed

VERSION = 2

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


_BY_ABSENCE = frozenset({Stop.HANDOFF, Stop.ABANDONED})
"""Read from what did not follow."""


def termination(run: Trajectory) -> Verdict:
    """Completed, handed off or refused passes; a cap, a loop, an error or no end at all fails.

    Of an incomplete run only its root says how it ended: what another span says of an end is read from
    the lack of anything after it.
    """
    end = run.termination
    detail = f": {end.because}" if end.because else ""
    lack = incomplete(run)
    if lack and not end.waited and (end.span_id != run.root_span_id or end.reason in _BY_ABSENCE):
        return inconclusive(f"{lack}, and its root does not say how the run ended{detail}")
    if end.reason in _GOOD:
        return passed(_GOOD[end.reason])
    if end.reason in _UNJUDGED:
        return inconclusive(f"{_UNJUDGED[end.reason]}{detail}")
    because = _BAD[end.reason] + (f" of {end.cap}" if end.cap is not None else "") + detail
    where = Evidence(span_id=end.span_id or run.root_span_id, pointer="/termination", note=end.because)
    return failed(because, findings=[Finding(subject=end.reason.value, because=because, evidence=(where,))])

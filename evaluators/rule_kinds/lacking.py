"""What a run may lack, so that nothing is concluded from its absence: ``None`` where nothing is missing."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from redfirst.evaluators.trajectory import CallStatus, Completeness, Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict, inconclusive

_NOT_RUN = frozenset({CallStatus.DENIED, CallStatus.NOT_EXECUTED})


def incomplete(run: Trajectory) -> str | None:
    """Why spans may be missing."""
    return "the trace is incomplete" if run.completeness is Completeness.INCOMPLETE else None


def missing_fact(run: Trajectory, name: str) -> str | None:
    """Why a fact is missing: the one of that name, or any part of it (``states`` for ``states[2]``)."""
    return next(
        (
            f"{gap.fact} is missing ({gap.because})"
            for gap in run.coverage.missing
            if gap.fact == name or gap.fact.startswith(f"{name}[")
        ),
        None,
    )


def lacks_calls(run: Trajectory) -> str | None:
    """Why calls that ran may be missing."""
    gap = next((gap for gap in run.coverage.missing if gap.fact == "tool_calls"), None)
    return incomplete(run) or (f"tool calls were not recorded ({gap.because})" if gap else None)


def lacks_names(run: Trajectory) -> str | None:
    """Why some call may be one of any tool."""
    for gap in run.coverage.missing:
        if gap.fact.startswith("tool_calls[") and gap.fact.endswith(".name"):
            return f"the name of a call is missing ({gap.because})"
    return None


def lacks_such_calls(run: Trajectory, statuses: AbstractSet[CallStatus]) -> str | None:
    """Why calls of some tools, of these statuses, may be missing. What did not run stands in messages alone."""
    why = lacks_calls(run) or lacks_names(run)
    return why if why or not statuses & _NOT_RUN else missing_fact(run, "model_calls")


def without_absence(verdict: Verdict, lack: str | None) -> Verdict:
    """The verdict where a lack is known: a failure by what is there stays, everything else is open."""
    if lack is None or verdict.outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE):
        return verdict
    return inconclusive(f"{lack}; in what is there: {verdict.because}")

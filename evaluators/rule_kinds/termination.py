"""How a run must end: for a reason that is allowed, with an answer, with no call left open."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.paths import ABSENT
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.lacking import incomplete, missing_fact
from redfirst.evaluators.trajectory import MISSING, CallStatus, Stop, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 1

_UNTOLD = frozenset({Stop.UNKNOWN, Stop.PARKED, Stop.INFRA})
"""Ends that say nothing of the agent, unless the rule names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The run ends as one of ``ends``; with ``answer``, its answer fits; with ``no_pending``, no call is open.

    A call is open when the last model turn asked for it and it did not run. ``of`` is (demands met, demands
    that could be judged).
    """

    ends: frozenset[Stop]
    answer: Condition | None = None
    no_pending: bool = False
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the evidence is what said how it ended, the answer, or the open call."""
        tally = Tally(self.missing, incomplete(run))
        for truth, finding in self._demands(run):
            if truth is True:
                tally.good += 1
            elif truth is False:
                tally.violations.append(finding)
            else:
                tally.unknown.append(finding)
        return tally.verdict(
            nothing="nothing is demanded", good=f"the run ended as {run.termination.reason.value}"
        )

    def _demands(self, run: Trajectory) -> Iterator[tuple[Truth, Finding]]:
        end = run.termination
        lack = incomplete(run)
        ended: Truth = end.reason in self.ends
        if not ended and (end.reason in _UNTOLD or lack):
            ended = None
        allowed = ", ".join(sorted(reason.value for reason in self.ends))
        detail = f": {end.because}" if end.because else ""
        where = Evidence(span_id=end.span_id or run.root_span_id, pointer="/termination", note=end.because)
        yield (
            ended,
            Finding(
                subject=end.reason.value,
                because=f"the run ended as {end.reason.value}{detail}; allowed: {allowed}",
                evidence=(where,),
            ),
        )
        if self.answer is not None:
            value: object = run.answer
            if value is None:
                value = MISSING if lack or missing_fact(run, "answer") else ABSENT
            truth = self.answer.holds(value)
            if value is ABSENT and truth is None:
                truth = False
            yield (
                truth,
                Finding(
                    subject="answer",
                    because=f"the answer must be {self.answer}" + ("" if run.answer else "; there is none"),
                    evidence=(Evidence(span_id=run.root_span_id, pointer="/answer"),),
                ),
            )
        if self.no_pending:
            yield from self._pending(run)

    def _pending(self, run: Trajectory) -> Iterator[tuple[Truth, Finding]]:
        last = max((turn.index for turn in run.model_calls), default=None)
        turns = [call.turn for call in run.tool_calls if call.turn is not None]
        last = max(turns, default=None) if last is None else last
        open_now = [
            call
            for call in run.tool_calls
            if call.turn == last
            and last is not None
            and call.status in (CallStatus.NOT_EXECUTED, CallStatus.UNKNOWN)
        ]
        sure = [call for call in open_now if call.status is CallStatus.NOT_EXECUTED]
        lack = missing_fact(run, "model_calls") or missing_fact(run, "tool_calls")
        truth: Truth = False if sure else None if open_now or lack else True
        names = ", ".join(sorted({call.name for call in sure or open_now}))
        because = f"the run ended while {names or 'a call'} was asked for and had not run"
        where = at((sure or open_now)[0]) if open_now else Evidence(span_id=run.root_span_id)
        yield (
            truth,
            Finding(
                subject=f"pending|{names}",
                because=because + ("" if truth is False else f"; {lack or 'whether it ran cannot be told'}"),
                evidence=(where,),
            ),
        )

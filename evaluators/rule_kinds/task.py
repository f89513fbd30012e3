"""Which runs a task speaks of."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.rule_kinds.lacking import incomplete, without_absence
from redfirst.evaluators.trajectory import MISSING, Trajectory
from redfirst.evaluators.verdict import Verdict, inconclusive, not_applicable


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """Conditions on the request and on the name of an agent that took part."""

    request: Condition | None = None
    agent: Condition | None = None

    def holds(self, run: Trajectory) -> Truth:
        """Whether the task speaks of this run."""
        truths: list[Truth] = []
        if self.request is not None:
            truths.append(self.request.holds(MISSING if run.request is None else run.request))
        if self.agent is not None:
            truths.append(any_of(self.agent.holds(name) for name in run.agents) if run.agents else None)
        return all_of(truths)

    def refusal(self, run: Trajectory) -> Verdict | None:
        """The verdict of a task's check on a run that is not, or not surely, of its task."""
        truth = self.holds(run)
        if truth is False:
            return without_absence(not_applicable("the run is not of this task"), incomplete(run))
        if truth is None:
            return inconclusive(f"whether the run is of this task cannot be told: {self._unread(run)}")
        return None

    def _unread(self, run: Trajectory) -> str:
        if self.request is not None and run.request is None:
            return "the request was not recorded"
        if self.agent is not None and not run.agents:
            return "no agent's name was recorded"
        return "the request or an agent's name is too long for the pattern, or no text of the kind that is asked for"

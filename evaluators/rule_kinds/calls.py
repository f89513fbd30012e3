"""Which calls a rule speaks of, and what stands at a path of one: three-valued."""

from __future__ import annotations

from dataclasses import dataclass, field

from redfirst.evaluators.conditions import Where
from redfirst.evaluators.kleene import Truth, all_of
from redfirst.evaluators.paths import RESULT_OF, RESULTS_OF, STATE, TIME, call_path, look_into_call
from redfirst.evaluators.rule_kinds import happenings
from redfirst.evaluators.rule_kinds.elsewhere import all_results, latest_result, moment, state_before
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory

EVERY_STATUS = frozenset(CallStatus)
RAN = EVERY_STATUS - {CallStatus.NOT_EXECUTED, CallStatus.DENIED}
"""A limit counts every call that was at least tried: a transfer that failed on the way may have arrived."""
SUCCEEDED = frozenset({CallStatus.OK})
"""A need is met by success alone."""
TOOK_EFFECT = frozenset({CallStatus.OK, CallStatus.INFRA_ERROR})
"""What ends the validity of something: a logout that was lost on the way may have happened."""


@dataclass(frozen=True, slots=True)
class CallPattern:
    """The calls to some tools, with a status and conditions."""

    tools: tuple[str, ...]
    statuses: frozenset[CallStatus]
    where: Where = field(default_factory=Where)

    def among(self, run: Trajectory, *, earlier: bool = False) -> list[ToolCall]:
        """What has one of the names; with ``earlier``, also in the earlier conversation."""
        return happenings.among(self.tools, run, earlier=earlier)

    def lack(self, run: Trajectory) -> str | None:
        """Why a call of this kind may be missing."""
        return happenings.lack_of(self.tools, self.statuses, run)

    def matches(self, call: ToolCall, run: Trajectory, order: str = "decided") -> Truth:
        """Whether this is such a call."""
        if call.name not in self.tools:
            return False
        return all_of((self.status_fits(call), self.where.holds(lambda path: look(path, call, run, order))))

    def status_fits(self, call: ToolCall) -> Truth:
        """Whether the call ended as asked; unknown when nothing says how it ended."""
        if call.status in self.statuses:
            return True
        return None if call.status is CallStatus.UNKNOWN else False

    def __str__(self) -> str:
        return " or ".join(self.tools)


def look(path: str, call: ToolCall, run: Trajectory, order: str) -> object:
    """The value at a path of a call, or elsewhere in the run where the path begins so."""
    parts = call_path(path)
    match parts[0]:
        case root if root == RESULT_OF:
            return latest_result(parts[1], parts[2:], call, run, order)
        case root if root == RESULTS_OF:
            return all_results(parts[1], path.split(".")[2:], call, run, order)
        case root if root == STATE:
            return state_before(parts[1:], call, run)
        case root if root == TIME:
            return moment(parts[1], call)
    return look_into_call(call, parts)

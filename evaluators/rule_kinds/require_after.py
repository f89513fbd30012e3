"""A call is followed by another: every ``open_ticket`` by ``close_ticket`` or a handoff."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.assignment import assign
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Key, Same, describe
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.rule_kinds.validity import Validity
from redfirst.evaluators.trajectory import Stop, ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 1

_OPEN = {Stop.PARKED: "the run is parked and has not ended", Stop.INFRA: "infrastructure ended the run"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequireAfter:
    """Every ``call`` comes before a ``needs`` of the same values; with ``once``, before one of its own.

    Of a run that is parked, or that infrastructure ended, nobody knows what would have followed. ``of`` is
    (calls that were followed, calls that could be judged).
    """

    call: CallPattern
    needs: CallPattern
    same: Same
    once: bool = False
    validity: Validity
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; what completes the violation is the event that came too soon, else the run's end."""
        lack = self.needs.lack(run) or _OPEN.get(run.termination.reason)
        tally = Tally(self.missing, self.call.lack(run) or lack or self.validity.lack(run))
        triggers = [
            (call, applies)
            for call in in_time(self.call.among(run))
            if (applies := self.call.matches(call, run, self.order)) is not False
        ]
        answers = in_time(self.needs.among(run))
        table = [[self._follows(one, call, run) for one in answers] for call, _ in triggers]
        for (call, applies), met in zip(triggers, self._met(table, triggers), strict=True):
            if met is True:
                tally.good += 1
            elif met is False and applies is True and not lack:
                tally.violations.append(self._finding(call, run, ""))
            else:
                tally.unknown.append(self._finding(call, run, f"; {lack}" if lack else "; it cannot be told"))
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{tally.good} call(s) of {self.call}, each followed by {self.needs}",
        )

    def _follows(self, answer: ToolCall, call: ToolCall, run: Trajectory) -> Truth:
        if answer is call:
            return False
        first = all_of(
            (
                before(call, answer, self.order),
                self.needs.matches(answer, run, self.order),
                self.same.ties(answer, call, self.same.of_call(call, run), run),
            )
        )
        if first is False:
            return False
        return all_of((first, self.validity.holds(call, answer, run, self.order)))

    def _met(
        self, table: Sequence[Sequence[Truth]], triggers: Sequence[tuple[ToolCall, Truth]]
    ) -> list[Truth]:
        """For each call whether it is followed; with ``once`` an answer serves one call only."""
        if not self.once:
            return [any_of(row) for row in table]
        certainly = assign([[place for place, truth in enumerate(row) if truth is True] for row in table])
        possibly = assign(
            [
                [place for place, truth in enumerate(row) if truth is not False] if applies is True else []
                for row, (_, applies) in zip(table, triggers, strict=True)
            ]
        )
        return [
            True if task in certainly else None if task in possibly or applies is None else False
            for task, (_, applies) in enumerate(triggers)
        ]

    def _finding(self, call: ToolCall, run: Trajectory, end: str) -> Finding:
        key: Key = self.same.of_call(call, run)
        enders = in_time(one for one, truth in self.validity.enders(call, run, self.order) if truth)
        own = " of its own" if self.once else ""
        last = (
            at(enders[0], f"{enders[0].name} came before it was followed")
            if enders
            else Evidence(span_id=run.root_span_id, pointer="/tool_calls", note="the run ended without it")
        )
        return Finding(
            subject=self.same.subject(call.name, key),
            because=f"{describe(call)} was not followed by {self.needs}{own}"
            f"{self.same.of_the_same(key)}{self.validity}{end}",
            evidence=(last, at(call)),
        )

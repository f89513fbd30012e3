"""A tool may be called so many times in a row: three searches, then something else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.logical import LogicalCall, in_time, logical_calls, perhaps_retries
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.keys import Same, equal_keys
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_names
from redfirst.evaluators.rule_kinds.order import before
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory
from redfirst.evaluators.verdict import Finding, Verdict

VERSION = 2


@dataclass(frozen=True, slots=True)
class _Attempted:
    """A logical call and whether it is one that the rule counts."""

    call: ToolCall
    fits: Truth


_Group = list[_Attempted]
"""Calls of which none surely came before another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxConsecutive:
    """At most ``limit`` logical calls in a row of one agent; with ``same``, in a row and with the same values.

    Any other call of that agent that ran ends the row. Calls of which neither came first may have been
    made in any order, so a row goes surely on only through calls that all belong to it. A row among the
    spans of an incomplete trace may have been broken by a call that is not there, and an attempt after a fault
    may have been a retry where arguments were not read. ``of`` is (calls within
    the limit, calls that could be judged), without those that follow a call over the limit in its row.
    """

    call: CallPattern
    limit: int
    same: Same
    attempts: bool = False
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the first call over the limit."""
        tally = Tally(self.missing, self.call.lack(run))
        broken = lacks_calls(run) is not None or lacks_names(run) is not None
        for agent in dict.fromkeys(call.agent for call in run.tool_calls):
            groups = self._together([call for call in run.tool_calls if call.agent == agent], run)
            for place, group in enumerate(groups):
                self._judge(groups[:place], group, run, tally, broken=broken)
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{self.call} was called at most {self.limit} time(s) in a row",
        )

    def _judge(
        self, before_it: Sequence[_Group], group: _Group, run: Trajectory, tally: Tally, *, broken: bool
    ) -> None:
        matching = [one.call for one in group if one.fits is not False]
        sure, perhaps = (
            max(
                (self._row(before_it, group, call, run, surely=surely) for call in matching),
                key=len,
                default=[],
            )
            for surely in (True, False)
        )
        if len(perhaps) <= self.limit:
            tally.good += len(matching)
        elif len(sure) - len(matching) > self.limit:
            return  # it was told when the limit was passed
        elif len(sure) > self.limit and not broken:
            tally.violations.append(self._finding(sure, run, ""))
        else:
            untold = "; whether they stood in a row cannot be told"
            tally.unknown.append(self._finding(perhaps, run, untold))

    def _row(
        self, before_it: Sequence[_Group], group: _Group, call: ToolCall, run: Trajectory, *, surely: bool
    ) -> list[ToolCall]:
        """The longest row that ends in the group with calls like this one, no longer than need be to tell."""
        key = self.same.of_call(call, run)
        row: list[ToolCall] = []
        for past in (group, *reversed(before_it)):
            truths = [all_of((one.fits, equal_keys(self.same.of_other(one.call, run), key))) for one in past]
            wanted = [
                one.call
                for one, truth in zip(past, truths, strict=True)
                if truth is True or (truth is None and not surely)
            ]
            whole = len(wanted) == len(past)
            if surely and not whole:
                return row or [call]
            row = wanted + row
            if not whole or len(row) > self.limit + len(group):
                break
        return row

    def _together(self, calls: Sequence[ToolCall], run: Trajectory) -> list[_Group]:
        """The calls in order, those beside each other that neither surely came before."""
        groups: list[_Group] = []
        last: list[ToolCall] = []
        faults = [call for call in calls if call.status is CallStatus.INFRA_ERROR]
        for one in self._logical(calls):
            fits = any_of(self.call.matches(attempt, run, self.order) for attempt in one.attempts)
            if not self.attempts and perhaps_retries(faults, one.first):
                fits = all_of((fits, None))
            if not groups or all(before(other, one.first, self.order) for other in last):
                groups.append([])
                last = []
            groups[-1].append(_Attempted(one.first, fits))
            last.append(one.last)
        return groups

    def _logical(self, calls: Sequence[ToolCall]) -> Iterator[LogicalCall]:
        listed = in_time(calls)
        if self.attempts:
            yield from (LogicalCall((call,), None) for call in listed)
        else:
            yield from logical_calls(listed)

    def _finding(self, calls: Sequence[ToolCall], run: Trajectory, end: str) -> Finding:
        key = self.same.of_call(calls[-1], run)
        over = at(calls[self.limit], f"call {self.limit + 1} in a row")
        return Finding(
            subject=self.same.subject(",".join(self.call.tools), key),
            because=f"{self.call} was called {len(calls)} times in a row{self.same.for_each(key)};"
            f" at most {self.limit} allowed{end}",
            evidence=(over, at(calls[0])),
        )

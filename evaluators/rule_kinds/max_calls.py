"""A tool may be called so many times, in all or for each value: one refund per order."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import OnMissing, Tally, at
from redfirst.evaluators.rule_kinds.counting import counted
from redfirst.evaluators.rule_kinds.keys import Key, Same
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 3


@dataclass(slots=True)
class _Count:
    """The calls of one key: surely counted, and perhaps."""

    key: Key
    sure: list[ToolCall]
    perhaps: list[ToolCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxCalls:
    """At most ``limit`` logical calls, for each value of ``same`` where it is given.

    What counts, and what counts only perhaps, ``counting`` says: over the limit with the latter is unknown.
    ``of`` is (keys within the limit, keys that could be judged).
    """

    call: CallPattern
    limit: int
    same: Same
    attempts: bool = False
    order: str = "decided"
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the completing event is the first call over the limit."""
        lack = self.call.lack(run)
        tally = Tally(self.missing, lack)
        for count in self._counts(run):
            if len(count.sure) > self.limit:
                tally.violations.append(self._over(count, in_time(count.sure), ""))
            elif len(count.sure) + len(count.perhaps) > self.limit:
                calls = in_time([*count.sure, *count.perhaps])
                tally.unknown.append(self._over(count, calls, "; whether each of them counts cannot be told"))
            elif lack:
                seen = in_time([*count.sure, *count.perhaps])
                tally.unknown.append(self._finding(count, seen, f"; {lack}", at(seen[-1])))
            else:
                tally.good += 1
        return tally.verdict(
            nothing=f"no call of {self.call} that this rule speaks of",
            good=f"{self.call} stayed within {self.limit} call(s)"
            + (" for each key" if self.same.pairs else ""),
        )

    def _counts(self, run: Trajectory) -> list[_Count]:
        counts: dict[str, _Count] = {}
        unbound: list[ToolCall] = []
        for call, truth in counted(self.call, run, order=self.order, attempts=self.attempts):
            key = self.same.of_call(call, run)
            group = self.same.group(call, key)
            if group is None:
                unbound.append(call)
                continue
            count = counts.setdefault(group, _Count(key, [], []))
            (count.sure if truth else count.perhaps).append(call)
        if unbound and not counts:
            nowhere = self.same.of_call(unbound[0], run)
            return [_Count(nowhere, [], unbound)]
        for count in counts.values():
            count.perhaps.extend(unbound)
        return list(counts.values())

    def _over(self, count: _Count, calls: list[ToolCall], end: str) -> Finding:
        over = at(calls[self.limit], f"call {self.limit + 1} of {len(calls)}")
        return self._finding(count, calls, end, over, *(at(call) for call in calls[: self.limit][-1:]))

    def _finding(self, count: _Count, calls: list[ToolCall], end: str, *evidence: Evidence) -> Finding:
        return Finding(
            subject=self.same.subject(",".join(self.call.tools), count.key),
            because=f"{self.call} was called {len(calls)} times{self.same.for_each(count.key)};"
            f" at most {self.limit} allowed{end}",
            evidence=evidence,
        )

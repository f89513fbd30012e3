"""Required calls: how many of those a task needs were made, and succeeded."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.assignment import assign
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import and_untold, at
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_such_calls, without_absence
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.trajectory import ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, failed, inconclusive, passed

VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Tool recall = required calls matched ÷ required calls that could be judged, by the largest matching.

    One call meets one requirement, so a call that is required twice must be made twice. Where calls may
    be missing from the run, a missing call is inconclusive.
    """

    required: tuple[CallPattern, ...]
    when: When

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; a missing call points at the root and at the call that came closest."""
        refusal = self.when.refusal(run)
        if refusal is not None:
            return refusal
        calls = in_time(run.tool_calls)
        table = [[pattern.matches(call, run) for call in calls] for pattern in self.required]
        certainly = assign([[place for place, truth in enumerate(row) if truth is True] for row in table])
        met, total = len(certainly), len(self.required)
        if met == total:
            every = passed(f"each of the {total} required call(s) was made", of=(met, total))
            return without_absence(every, lacks_calls(run))
        # Whoever is certainly served comes first: an assignment leaves out the last that can be left out.
        order = sorted(range(total), key=lambda index: index not in certainly)
        served = assign(
            [[place for place, truth in enumerate(table[index]) if truth is not False] for index in order]
        )
        lost = sorted(index for rank, index in enumerate(order) if rank not in served)
        lack = lacks_such_calls(run, frozenset().union(*(self.required[index].statuses for index in lost)))
        if not lost or lack:
            open_ones = ", ".join(
                str(self.required[index]) for index in range(total) if index not in certainly
            )
            why = lack or "what was recorded does not tell"
            return inconclusive(f"whether {open_ones} was called as required cannot be told: {why}")
        findings = [self._finding(index, calls, table[index], run) for index in lost]
        because = "; ".join(finding.because for finding in findings)
        return failed(
            because + and_untold(total - met - len(lost)), findings=findings, of=(met, met + len(lost))
        )

    def _finding(self, index: int, calls: list[ToolCall], row: list[Truth], run: Trajectory) -> Finding:
        pattern = self.required[index]
        near = [call for call in calls if call.name in pattern.tools]
        with_what = f" with {pattern.where}" if pattern.where.conditions else ""
        evidence = [
            Evidence(span_id=run.root_span_id, pointer="/tool_calls", note=f"no such call of {pattern}")
        ]
        if near:
            last = near[-1]
            used = row[calls.index(last)] is True
            why = (
                "meets another requirement"
                if used
                else f"ended with {last.status.value}"
                if pattern.status_fits(last) is not True
                else "does not meet the conditions"
            )
            evidence.append(at(last, f"this call of {last.name} {why}"))
        return Finding(
            subject=",".join(pattern.tools),
            because=f"the required call of {pattern}{with_what} was not made"
            + (f" ({evidence[-1].note})" if near else ""),
            evidence=tuple(evidence),
        )

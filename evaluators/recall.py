"""Required calls: how many of those a task needs were made, and succeeded."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.assignment import assign
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import CallPattern
from redfirst.evaluators.rule_kinds.conclude import at
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.trajectory import Completeness, ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict, failed, inconclusive, passed

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Tool recall = required calls matched ÷ required calls, by the largest matching there is.

    One call meets one requirement, so a call that is required twice must be made twice. A missing call
    of an incomplete run is inconclusive: it may be among the missing spans.
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
        possibly = assign([[place for place, truth in enumerate(row) if truth is not False] for row in table])
        met, total = len(certainly), len(self.required)
        if met == total:
            return passed(f"each of the {total} required call(s) was made", of=(met, total))
        lost = [index for index in range(total) if index not in possibly]
        if not lost or run.completeness is Completeness.INCOMPLETE:
            open_ones = ", ".join(
                str(self.required[index]) for index in range(total) if index not in certainly
            )
            why = "the trace is incomplete" if lost else "what was recorded does not tell"
            return inconclusive(f"whether {open_ones} was called as required cannot be told: {why}")
        findings = [self._finding(index, calls, table[index], run) for index in lost]
        return failed("; ".join(finding.because for finding in findings), findings=findings, of=(met, total))

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

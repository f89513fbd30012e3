"""From what was found call by call to a verdict: a violation beats an unknown, an unknown beats a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from redfirst.evaluators.trajectory import ToolCall
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

OnMissing = Literal["failed", "ignore"] | None
"""What a rule makes of a call it cannot judge: ``None`` leaves the verdict inconclusive."""


@dataclass(slots=True)
class Tally:
    """What a rule found, call by call."""

    missing: OnMissing = None
    good: int = 0
    violations: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)

    def verdict(self, *, nothing: str, good: str) -> Verdict:
        """The rule's verdict; ``of`` is (calls in order, calls judged)."""
        findings, unknown = list(self.violations), list(self.unknown)
        if self.missing == "failed":
            findings, unknown = findings + unknown, []
        elif self.missing == "ignore":
            unknown = []
        judged = self.good + len(findings) + len(unknown)
        if findings:
            return failed(_sentence(findings), findings=findings, of=(self.good, judged))
        if unknown:
            return inconclusive(_sentence(unknown))
        if not judged:
            return not_applicable(nothing if not self.unknown else f"{nothing} that could be judged")
        return passed(good, of=(self.good, judged))


def at(call: ToolCall, note: str = "") -> Evidence:
    """The place of a call."""
    return Evidence(span_id=call.span_id, pointer=f"/tool_calls/{call.index}", note=note)


def _sentence(findings: Sequence[Finding]) -> str:
    reasons = list(dict.fromkeys(finding.because for finding in findings))
    return "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")

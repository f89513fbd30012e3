"""From what was found call by call to a verdict: a violation beats an unknown, an unknown beats a pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from redfirst.evaluators.rule_kinds.happenings import Happening
from redfirst.evaluators.rule_kinds.lacking import without_absence
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
    lack: str | None = None
    """Why calls the rule speaks of may be missing; then nothing passes, and ``missing: failed`` accuses nobody."""
    good: int = 0
    violations: list[Finding] = field(default_factory=list)
    unknown: list[Finding] = field(default_factory=list)

    def verdict(self, *, nothing: str, good: str) -> Verdict:
        """The rule's verdict; ``of`` is (calls in order, calls that could be judged)."""
        findings, unknown = list(self.violations), list(self.unknown)
        if self.missing == "failed" and self.lack is None:
            findings, unknown = findings + unknown, []
        judged = self.good + len(findings)
        if findings:
            because = sentence(findings) + and_untold(len(unknown))
            return failed(because, findings=findings, of=(self.good, judged))
        if unknown and self.missing != "ignore":
            told = sentence(unknown)
            return inconclusive(told if self.lack is None or self.lack in told else f"{self.lack}; {told}")
        if not judged:
            untouched = not_applicable(f"{nothing} that could be judged" if unknown else nothing)
            return without_absence(untouched, self.lack)
        right = passed(good + and_untold(len(unknown)), of=(self.good, judged))
        return without_absence(right, self.lack)


def at(call: ToolCall, note: str = "") -> Evidence:
    """The place of a call."""
    pointer = call.pointer if isinstance(call, Happening) else f"/tool_calls/{call.index}"
    return Evidence(span_id=call.span_id, pointer=pointer, note=note)


def and_untold(count: int) -> str:
    """How many could not be judged, for the end of a sentence; nothing where there is none."""
    return f"; {count} more could not be told" if count else ""


def sentence(findings: Sequence[Finding]) -> str:
    """The reasons of the findings, three of them told and the rest counted."""
    reasons = list(dict.fromkeys(finding.because for finding in findings))
    return "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")

"""The states before and after, as one rule: what must stand there, what may change, what changes together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.rule_kinds.conclude import OnMissing
from redfirst.evaluators.rule_kinds.lacking import incomplete, missing_fact
from redfirst.evaluators.state import StateCollateral, StateRequired
from redfirst.evaluators.state_diff import Allowed, changes
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import (
    Evidence,
    Finding,
    Outcome,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Places of the state that change together or not at all. ``of`` is (1, 1) when they do."""

    patterns: tuple[tuple[str, ...], ...]

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; the evidence is the last snapshot."""
        lack = incomplete(run) or missing_fact(run, "states")
        if lack or len(run.states) < 2:
            return inconclusive(lack or "the run reported its state fewer than two times")
        found = list(changes(run.states[0].state, run.states[-1].state))
        changed = [
            any(Allowed(segments=pattern).allows(change, ()) for change in found) for pattern in self.patterns
        ]
        names = [".".join(pattern) for pattern in self.patterns]
        if all(changed) or not any(changed):
            how = "changed" if any(changed) else "stayed"
            return passed(f"{' and '.join(names)} {how}", of=(1, 1))
        did = [name for name, one in zip(names, changed, strict=True) if one]
        not_ = [name for name, one in zip(names, changed, strict=True) if not one]
        because = f"{' and '.join(did)} changed and {' and '.join(not_)} did not; they change together"
        where = Evidence(span_id=run.states[-1].span_id, pointer=f"/states/{len(run.states) - 1}/state")
        return failed(
            because,
            findings=[Finding(subject="|".join(names), because=because, evidence=(where,))],
            of=(0, 1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateDiff:
    """All parts hold. A failure of one beats an unknown of another; ``of`` is the sum over the parts."""

    parts: tuple[StateRequired | StateCollateral | Together, ...]
    missing: OnMissing = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run by every part."""
        verdicts = [part(run) for part in self.parts]
        findings = [finding for verdict in verdicts for finding in verdict.findings]
        judged = [verdict for verdict in verdicts if verdict.denominator]
        of = (sum(one.numerator or 0 for one in judged), sum(one.denominator or 0 for one in judged))
        if findings:
            return failed(_said(verdicts, Outcome.FAILED), findings=findings, of=of)
        unknown = [one for one in verdicts if one.outcome is Outcome.INCONCLUSIVE]
        if unknown and self.missing == "failed" and incomplete(run) is None:
            because = _said(verdicts, Outcome.INCONCLUSIVE)
            where = Evidence(span_id=run.root_span_id, pointer="/states", note=because)
            return failed(because, findings=[Finding(subject="states", because=because, evidence=(where,))])
        right = [one for one in verdicts if one.outcome is Outcome.PASSED]
        if unknown and (self.missing != "ignore" or incomplete(run) is not None):
            return inconclusive(_said(verdicts, Outcome.INCONCLUSIVE))
        if not right:
            return not_applicable(_said(verdicts, verdicts[0].outcome))
        return passed(_said(verdicts, Outcome.PASSED), of=of if of[1] else None)


def _said(verdicts: Sequence[Verdict], outcome: Outcome) -> str:
    return "; ".join(dict.fromkeys(one.because for one in verdicts if one.outcome is outcome))

"""Does the agent recover: one fault, once, at each tool that a green run of it called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from redfirst.evaluators import Outcome as VerdictOutcome
from redfirst.replay.asked import Asked
from redfirst.replay.injection import FaultKind
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.running import Outcome


class Recovery(StrEnum):
    """What became of a run with one fault in it."""

    RECOVERS = "recovers"
    """Every run that met the fault is green all the same."""
    RED = "RED"
    """A check failed."""
    BREAKS_OFF = "breaks off"
    """The agent let the fault end the run."""
    NO_VERDICT = "no verdict"
    """As when a recorded model is asked what it was never asked."""
    NOT_MET = "–"
    """There was no call that the fault could be put in at."""

    @property
    def outcome(self) -> RunOutcome | None:
        """What it counts as; ``None`` where nothing was put in."""
        return {
            Recovery.RECOVERS: RunOutcome.GREEN,
            Recovery.RED: RunOutcome.RED,
            Recovery.BREAKS_OFF: RunOutcome.RED,
            Recovery.NO_VERDICT: RunOutcome.NO_VERDICT,
        }.get(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """One tool and one fault."""

    tool: str
    kind: FaultKind
    outcome: Outcome

    @property
    def recovery(self) -> Recovery:
        """The worst of its runs."""
        met = [
            result
            for result in self.outcome.results
            if result.execution.injected and not self._asked_again(result)
        ]
        if not met and any(result.execution.injected for result in self.outcome.results):
            return Recovery.RECOVERS
        if not met:
            lost = self.outcome.count(RunOutcome.NO_VERDICT)
            return Recovery.NO_VERDICT if lost else Recovery.NOT_MET
        if any(result.outcome is RunOutcome.RED and not result.crashed for result in met):
            return Recovery.RED
        if any(result.crashed or result.infra for result in met):
            return Recovery.BREAKS_OFF
        if any(result.outcome is RunOutcome.NO_VERDICT for result in met):
            return Recovery.NO_VERDICT
        return Recovery.RECOVERS

    def _asked_again(self, result: Result) -> bool:
        """Whether nothing failed but that the call was made again: that is how one recovers from a bad answer."""
        verdicts = (*result.targets, *result.guards)
        return bool(result.failed) and all(
            verdict.check == "repeats"
            and all(finding.subject.startswith(f"{self.tool}|") for finding in verdict.findings)
            for verdict in verdicts
            if verdict.outcome in (VerdictOutcome.FAILED, VerdictOutcome.INCONCLUSIVE)
        )


def injections(path: Path, baseline: Outcome, kinds: Sequence[FaultKind]) -> list[tuple[Path, Asked]]:
    """What is to be run for a scenario: nothing where it is not green without any fault."""
    if baseline.outcome is not RunOutcome.GREEN:
        return []
    called = dict.fromkeys(
        call.name
        for result in baseline.results
        if result.run is not None
        for call in result.run.tool_calls
        if call.ran
    )
    return [(path, replace(baseline.asked, inject=(tool, kind))) for tool in called for kind in kinds]

"""Does the agent recover: one fault, once, at each tool that a green run of it called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from redfirst.evaluators import CallStatus, Trajectory
from redfirst.evaluators import Outcome as VerdictOutcome
from redfirst.evaluators.canonical import canonical_text, same
from redfirst.evaluators.recovery import recovery
from redfirst.replay.asked import Asked
from redfirst.replay.injection import FaultKind
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.running import Outcome
from redfirst.replay.stop import StopKind

_ANSWER = 120
"""Characters of an answer that are shown."""
_ASKED_OTHERWISE = "Not on tape: model call"
_ERRORS = (CallStatus.TOOL_ERROR, CallStatus.INFRA_ERROR)


class Recovery(StrEnum):
    """What became of a run with one fault in it."""

    RECOVERS = "recovers"
    """Every run that met the fault is green, and what the fault kept from it was asked for again and came."""
    TELLS = "tells"
    """Green, and what failed never came; the answer hands the fault's own words on to the user."""
    FAILS = "fails"
    """A check failed."""
    BREAKS_OFF = "breaks off"
    """The agent let the fault end the run."""
    UNNOTICED = "unnoticed"
    """Green, and the tool that failed never succeeded afterwards: it went on as if nothing had been."""
    NO_VERDICT = "no verdict"
    """As when a recorded model is asked what it was never asked."""
    UNCLEAR = "unclear"
    """Green, and nothing decides whether the fault was got over."""
    NOT_MET = "–"
    """There was no call that the fault could be put in at."""

    @property
    def outcome(self) -> RunOutcome | None:
        """What it counts as; ``None`` where nothing was put in."""
        return {
            Recovery.RECOVERS: RunOutcome.GREEN,
            Recovery.TELLS: RunOutcome.GREEN,
            Recovery.FAILS: RunOutcome.RED,
            Recovery.BREAKS_OFF: RunOutcome.RED,
            Recovery.UNNOTICED: RunOutcome.RED,
            Recovery.NO_VERDICT: RunOutcome.NO_VERDICT,
            Recovery.UNCLEAR: RunOutcome.NO_VERDICT,
        }.get(self)


_WORST_FIRST = (
    Recovery.FAILS,
    Recovery.BREAKS_OFF,
    Recovery.UNNOTICED,
    Recovery.NO_VERDICT,
    Recovery.UNCLEAR,
    Recovery.TELLS,
    Recovery.RECOVERS,
)


class Reading(NamedTuple):
    """What became of a run with a fault in it, and why that is said."""

    recovery: Recovery
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """One tool and one fault."""

    tool: str
    kind: FaultKind
    outcome: Outcome

    @property
    def recovery(self) -> Recovery:
        """The worst of its runs."""
        return self.reading.recovery

    @property
    def reading(self) -> Reading:
        """The worst of its runs, the first of those."""
        read = [self._read(result) for result in self.outcome.results if result.execution.injected]
        if read:
            return min(read, key=lambda one: _WORST_FIRST.index(one.recovery))
        lost = self.outcome.count(RunOutcome.NO_VERDICT)
        return Reading(Recovery.NO_VERDICT if lost else Recovery.NOT_MET, self.outcome.said)

    def _read(self, result: Result) -> Reading:
        if result.crashed or result.infra:
            return Reading(Recovery.BREAKS_OFF, result.because)
        if self._asked_again(result) or result.outcome is RunOutcome.GREEN:
            return self._got_over(result)
        if result.outcome is RunOutcome.RED:
            return Reading(Recovery.FAILS, result.because)
        if result.stop is StopKind.OFF_TAPE and result.because.startswith(_ASKED_OTHERWISE):
            return Reading(Recovery.NO_VERDICT, "the recorded model was never told of this; see --mode tools")
        return Reading(Recovery.NO_VERDICT, result.because)

    def _got_over(self, result: Result) -> Reading:
        """Of a run that no check failed: whether what the fault kept from it came later."""
        run = result.run
        if run is None:
            return Reading(Recovery.UNCLEAR, "the run left no trace to judge")
        return _after_error(run, self.tool, self.kind) if self.kind.raised else self._refetched(run)

    def _refetched(self, run: Trajectory) -> Reading:
        """An altered answer is no error: that the same call was made again and answered otherwise decides alone."""
        answers: dict[str, list[Any]] = {}
        for call in run.tool_calls:
            if call.name == self.tool and call.status is CallStatus.OK and call.arguments is not None:
                answers.setdefault(canonical_text(call.arguments), []).append(call.result)
        if any(not same(given, one[0]) for one in answers.values() for given in one[1:]):
            return Reading(Recovery.RECOVERS, f"{self.tool} was called again and answered as recorded")
        said = f"green, and nothing decides whether the {self.kind.value} answer of {self.tool} was noticed"
        return Reading(Recovery.UNCLEAR, said + _answered(run))

    def _asked_again(self, result: Result) -> bool:
        """Whether nothing failed but that the call was made again: that is how one recovers from a bad answer."""
        verdicts = (*result.targets, *result.guards)
        return bool(result.failed) and all(
            verdict.check == "repeats"
            and all(finding.subject.startswith(f"{self.tool}|") for finding in verdict.findings)
            for verdict in verdicts
            if verdict.outcome in (VerdictOutcome.FAILED, VerdictOutcome.INCONCLUSIVE)
        )


def _after_error(run: Trajectory, tool: str, kind: FaultKind) -> Reading:
    """What the check ``recovery`` says of the first call of a tool that failed, and of no other error.

    The fault is put in by the harness: to the check it is the tool's, a time-out or a status 500 as well.
    """
    calls = [call for call in run.tool_calls if call.name == tool and call.ran]
    first = next((call for call in calls if call.status in _ERRORS), None)
    if first is None:
        return Reading(Recovery.UNCLEAR, f"green, and the trace shows no failed call of {tool}")
    rest = (call for call in calls if call.status not in _ERRORS)
    verdict = recovery(replace(run, tool_calls=(replace(first, status=CallStatus.TOOL_ERROR), *rest)))
    if verdict.outcome is VerdictOutcome.FAILED and kind.message.casefold() in (run.answer or "").casefold():
        return Reading(Recovery.TELLS, f"{verdict.findings[0].because}, and the answer says so")
    if verdict.outcome is VerdictOutcome.FAILED:
        return Reading(Recovery.UNNOTICED, f"green although {verdict.findings[0].because}{_answered(run)}")
    passed = verdict.outcome is VerdictOutcome.PASSED
    return Reading(Recovery.RECOVERS if passed else Recovery.UNCLEAR, f"recovery: {verdict.because}")


def _answered(run: Trajectory) -> str:
    """The agent's last words, for whoever is to judge whether they are honest: no check reads them."""
    words = " ".join((run.answer or "").split())
    if not words:
        return ""
    return f"; it answered: {words[:_ANSWER]}{'…' if len(words) > _ANSWER else ''}"


def not_put_in(baseline: Outcome) -> str | None:
    """Why no fault is put in at a scenario; ``None`` where some are."""
    if baseline.outcome is not RunOutcome.GREEN:
        return "not green without a fault"
    return None if _called(baseline) else "no tool was called"


def injections(path: Path, baseline: Outcome, kinds: Sequence[FaultKind]) -> list[tuple[Path, Asked]]:
    """What is to be run for a scenario: nothing where it is not green without any fault."""
    if not_put_in(baseline) is not None:
        return []
    return [
        (path, replace(baseline.asked, inject=(tool, kind))) for tool in _called(baseline) for kind in kinds
    ]


def _called(baseline: Outcome) -> list[str]:
    found = dict.fromkeys(
        call.name
        for result in baseline.results
        if result.run is not None
        for call in result.run.tool_calls
        if call.ran
    )
    return list(found)

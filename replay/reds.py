"""S4 and S5: the agent fails for the reason it failed in production, on the tape or with its model live."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redfirst.evaluators.statistics.proportions import clopper_pearson_lower, wilson
from redfirst.replay.causes import parted
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.playing import EVERYTHING, INCIDENT, job, play
from redfirst.replay.process import together
from redfirst.replay.proving import Proving, Refused, subjects, twice
from redfirst.replay.report import Refusal
from redfirst.replay.runner import Job
from redfirst.replay.scenario import Folder
from redfirst.replay.stop import StopKind

_MOST_WITHOUT_VERDICT = 0.2
"""Share of live runs that may end without a verdict before the live step says nothing."""
_SOURCES_SHOWN = 4
"""Unfrozen sources that a report names; the proof holds all."""


def recorded_red(proving: Proving) -> str:
    """Twice on the incident's own recordings, with equal events."""
    one = job(proving.folder, proving.agent, proving.project, turns=proving.folder.model, sources=INCIDENT)
    first, second = twice(proving.folder, one)
    proving.runs += [first, second]
    for result in (first, second):
        if result.stop is StopKind.GRADER_READ:  # whatever else parts the two, it is no run of the agent
            raise Refused(Refusal.GRADER_READ, result.because)
    divergence = parted(proving.folder, one, first, second)
    if divergence is not None:
        raise Refused(Refusal.NONDETERMINISTIC, divergence.said)
    for result in (first, second):
        _must_fail(proving, result)
    proving.red = first
    execution = first.execution
    live = len(execution.live_decisions)
    return (
        f"red twice for the same reason, equal events; {execution.tape_decisions} decisions by the tape, "
        f"{live} live{': ' + '; '.join(execution.live_decisions[:3]) if live else ''}{_used(first, second)}; "
        f"{execution.closed}"
    )


def _used(*results: Result) -> str:
    """What the runs used that is not frozen: they agree, and a reader should know on what."""
    used = sorted({source for result in results for source in result.execution.unfrozen})
    more = f" and {len(used) - _SOURCES_SHOWN} more" if len(used) > _SOURCES_SHOWN else ""
    return f"; used and not frozen: {', '.join(used[:_SOURCES_SHOWN])}{more}" if used else ""


def live_red(proving: Proving, runs: int | None) -> str:
    """Often enough with its model live; ``runs`` instead of the scenario's number."""
    settings = proving.folder.scenario.proof.live
    asked = runs or settings.runs
    jobs = [
        job(proving.folder, proving.agent, proving.project, turns=None, sources=EVERYTHING, draw=n)
        for n in range(asked)
    ]
    results = _all(proving.folder, jobs)
    proving.runs += results
    valid = [r for r in results if r.outcome is not RunOutcome.NO_VERDICT]
    if len(valid) < len(results) * (1 - _MOST_WITHOUT_VERDICT):
        lost = next(r for r in results if r.outcome is RunOutcome.NO_VERDICT)
        raise Refused(
            Refusal(lost.stop.value) if lost.stop is not None else Refusal.INCONCLUSIVE,
            f"{len(results) - len(valid)} of {len(results)} live runs gave no verdict; the first: {lost.because}",
        )
    red = [r for r in valid if r.fails_as(proving.signature)]
    seen = f"{len(red)} of {len(valid)} live runs failed this way"
    if not red:
        others = sorted({v.check for r in valid for v in r.failed})
        reason = Refusal.OTHER_REASON if others else Refusal.DID_NOT_FAIL
        raise Refused(reason, f"{seen}{'; others failed ' + ', '.join(others) if others else ''}")
    low = clopper_pearson_lower(len(red), len(valid))
    interval = wilson(len(red), len(valid))
    if low < settings.at_least:
        raise Refused(
            Refusal.TOO_RARE,
            f"{seen}; the one-sided 95 % lower bound is {low:.2f}, and {settings.at_least:.2f} is asked",
        )
    proving.red = red[0]
    return f"{seen}, Wilson 95 % [{interval.low:.2f}, {interval.high:.2f}], lower bound {low:.2f} ≥ {settings.at_least:.2f}"


def _all(folder: Folder, jobs: Sequence[Job]) -> list[Result]:
    return together([partial(play, folder, one, hash_seed=seed) for seed, one in enumerate(jobs)])


def _must_fail(proving: Proving, result: Result) -> None:
    if result.stop is not None:
        raise Refused(Refusal(result.stop.value), result.because)
    if result.outcome is RunOutcome.GREEN:
        raise Refused(Refusal.DID_NOT_FAIL, f"{proving.agent} passed: {result.because}")
    if result.fails_as(proving.signature):
        return
    if result.outcome is RunOutcome.NO_VERDICT:
        raise Refused(Refusal.INCONCLUSIVE, result.because)
    raise Refused(
        Refusal.OTHER_REASON,
        f"production failed {subjects(proving.signature)}; this run failed {result.because}",
    )

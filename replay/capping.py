"""Slow or stuck: the same scenario under several step caps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from redfirst.evaluators import Stop
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.running import Outcome


class CapReading(StrEnum):
    """What several caps show."""

    FAILS = "fails at every cap"
    """No run under any of them is green, and not because of the cap: some end by themselves under the highest."""
    FITS = "fits"
    """No run was stopped at any of them."""
    SLOW = "slow"
    """Some were stopped at a lower cap, none at the highest: it comes to an end when it may."""
    STUCK = "stuck"
    """Every run was stopped at the highest as well: more steps do not help."""
    MIXED = "mixed"
    """Some were stopped at the highest and some were not."""
    UNCLEAR = "unclear"
    """Under one of them no run has a verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderCap:
    """The runs under one cap."""

    cap: int
    valid: int
    green: int
    stopped: int
    """Ended at their cap, or cut as a loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """One scenario under all of them, the lowest first."""

    scenario: str
    under: tuple[UnderCap, ...]
    because: str = ""
    """Why the first run under the highest cap that was not stopped there is RED; empty where none is."""

    @classmethod
    def of(cls, outcomes: Mapping[int, Outcome]) -> Caps:
        """From the outcomes by cap."""
        first = next(iter(outcomes.values()))
        return cls(
            scenario=first.folder.scenario.id,
            under=tuple(_under(cap, outcomes[cap]) for cap in sorted(outcomes)),
            because=next(
                (
                    result.because
                    for result in outcomes[max(outcomes)].results
                    if result.outcome is RunOutcome.RED and not _stopped(result)
                ),
                "",
            ),
        )

    @property
    def reading(self) -> CapReading:
        """Slow, stuck, or neither."""
        if any(one.valid == 0 for one in self.under):
            return CapReading.UNCLEAR
        highest = self.under[-1]
        if highest.stopped < highest.valid and not any(one.green for one in self.under):
            return CapReading.FAILS
        if highest.stopped == 0:
            return CapReading.SLOW if any(one.stopped for one in self.under) else CapReading.FITS
        return CapReading.STUCK if highest.stopped == highest.valid else CapReading.MIXED


def _stopped(result: Result) -> bool:
    return result.run is not None and result.run.termination.reason in (Stop.STEP_CAP, Stop.LOOP_CUT)


def _under(cap: int, outcome: Outcome) -> UnderCap:
    stopped = sum(
        result.outcome is not RunOutcome.NO_VERDICT and _stopped(result) for result in outcome.results
    )
    return UnderCap(cap=cap, valid=outcome.valid, green=outcome.count(RunOutcome.GREEN), stopped=stopped)

"""The outcomes of many scenarios as one: what counts, what does not, and the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.replay.outcome import RunOutcome
from redfirst.replay.running import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What was run."""

    outcomes: Sequence[Outcome]
    with_drafts: bool = False
    """Whether scenarios that are not proven count as well."""

    def counts(self, one: Outcome) -> bool:
        """Whether the outcome of a scenario decides anything."""
        return one.gates or (self.with_drafts and one.upkeep.quarantine is None)

    @property
    def counted(self) -> tuple[Outcome, ...]:
        """Those that decide."""
        return tuple(one for one in self.outcomes if self.counts(one))

    @property
    def drafts(self) -> int:
        """How many are not proven."""
        return sum(not one.standing.gates for one in self.outcomes)

    @property
    def void(self) -> int:
        """How many of those were proven once, as something else than they are now."""
        return sum(one.standing.void for one in self.outcomes)

    @property
    def quarantined(self) -> int:
        """How many are in quarantine."""
        return sum(one.upkeep.quarantine is not None for one in self.outcomes)

    @property
    def overdue(self) -> int:
        """How many stayed in quarantine for too long."""
        return sum(one.upkeep.overdue is not None for one in self.outcomes)

    @property
    def expired(self) -> int:
        """How many are past the day their recorded answers were to be confirmed."""
        return sum(one.upkeep.expired is not None for one in self.outcomes)

    @property
    def stale(self) -> int:
        """How many ``drift`` has marked."""
        return sum(bool(one.upkeep.stale) for one in self.outcomes)

    @property
    def lost(self) -> int:
        """Runs that infrastructure ended and that were made again."""
        return sum(one.lost for one in self.outcomes)

    @property
    def exit_code(self) -> int:
        """1 when any that counts is RED, met moved answers, or its quarantine ran out; 3 when any has no verdict or none
        counts; else 0.
        """
        kinds = {one.outcome for one in self.counted}
        if RunOutcome.RED in kinds or self.overdue or any(one.moved for one in self.counted):
            return 1
        return 3 if RunOutcome.NO_VERDICT in kinds or not kinds else 0

    @property
    def tally(self) -> str:
        """The counts in a line: what does not count is told each time."""
        drafts = f"{self.drafts} draft{'' if self.drafts == 1 else 's'}"
        out = [
            ", ".join(
                f"{sum(one.outcome is kind for one in self.counted)} {kind.value}" for kind in RunOutcome
            ),
            f"{drafts}{'' if self.with_drafts else ' not counted'}"
            f"{f' ({self.void} void: changed since its proof)' if self.void else ''}",
            f"{self.quarantined} quarantined",
        ]
        out += [f"{self.overdue} with a quarantine that ran out"] * bool(self.overdue)
        out += [f"{self.expired} expired"] * bool(self.expired)
        out += [f"{self.stale} stale"] * bool(self.stale)
        out += [f"{self.lost} lost to infrastructure and made again"] * bool(self.lost)
        return "; ".join(out)

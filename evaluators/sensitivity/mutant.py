"""A run with one thing changed in it, and what is said beforehand of the checks that must notice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from redfirst.evaluators.check import Check
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict


class Expected(StrEnum):
    """What must become of a mutant. It is fixed by the operator, before anything is judged."""

    KILLED = "killed"
    """An intended check fails."""
    OPEN = "open"
    """Evidence was taken away: the intended check neither passes nor fails."""
    SURVIVES = "survives"
    """The change means nothing: no check fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A run with one fault, or with one difference that is none."""

    operator: str
    place: str
    """What was changed, in words."""
    run: Trajectory
    killers: frozenset[str] = frozenset()
    """The ids of the checks that are meant to notice; any of them will do."""
    expected: Expected = Expected.KILLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A run as it was recorded, and what each check says of it."""

    run: Trajectory
    checks: tuple[Check, ...]
    verdicts: tuple[Verdict, ...]

    def outcome(self, check: Check) -> Outcome:
        """What the check says."""
        return next(verdict.outcome for verdict in self.verdicts if verdict.check == check.id)

    def right(self, check: Check) -> bool:
        """Whether there was something to judge and it was right, so that breaking it can be seen."""
        return self.outcome(check) is Outcome.PASSED

    def unbroken(self, check: Check) -> bool:
        """Whether nothing is wrong and nothing is open."""
        return self.outcome(check) in (Outcome.PASSED, Outcome.NOT_APPLICABLE)

    def of_kind(self, *kinds: str) -> Iterable[Check]:
        """The checks of these kinds, without rules that share the name of a default check."""
        return (check for check in self.checks if check.spec.get("kind") in kinds)

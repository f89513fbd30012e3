"""Which check noticed which break, and which took a difference that means nothing for a fault.

A check *kills* a mutant when it fails, and did not fail before the change. Inconclusive is no kill. The
score is killed ÷ (killed + survived); equivalents, and mutants from which only evidence was taken away, are
of neither, by what their operators say before anything is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, combinations

from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.sensitivity.mutant import Expected, Mutant, Original
from redfirst.evaluators.sensitivity.operators import mutants, original
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict


class Fate(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    """An intended check failed."""
    BY_OTHERS = "by_others"
    """Only checks failed that were not meant to."""
    INCONCLUSIVE = "inconclusive"
    """No check failed, and an intended one could not tell."""
    SURVIVED = "survived"
    """Nothing noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One mutant and what the checks said of it."""

    run_id: str
    operator: str
    place: str
    expected: Expected
    intended: frozenset[str]
    killed_by: frozenset[str]
    fate: Fate
    as_expected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operator aimed at one check, over all runs."""

    operator: str
    aimed_at: str
    """The intended check, or several; empty for equivalents."""
    expected: Expected
    fates: Mapping[Fate, int]
    killed_by: Mapping[str, int]
    smallest: tuple[str, ...]
    """The fewest checks that together kill all that was killed."""

    @property
    def mutants(self) -> int:
        """How many there were."""
        return sum(self.fates.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """The whole measurement."""

    runs: int
    checks: tuple[str, ...]
    results: tuple[Result, ...]
    failed_before: tuple[tuple[str, Verdict], ...] = ()
    """What failed before anything was changed: run and verdict."""

    def of(self, expected: Expected) -> list[Result]:
        """The mutants of which that was expected."""
        return [one for one in self.results if one.expected is expected]

    @property
    def killed(self) -> int:
        """Breaks that some check noticed."""
        return sum(bool(one.killed_by) for one in self.of(Expected.KILLED))

    @property
    def survived(self) -> int:
        """Breaks that none did, among them those of which a check could not tell."""
        return len(self.of(Expected.KILLED)) - self.killed

    @property
    def score(self) -> float | None:
        """Killed ÷ (killed + survived); ``None`` without a break."""
        breaks = self.killed + self.survived
        return self.killed / breaks if breaks else None

    def kills(self) -> Counter[str]:
        """Breaks that each check killed."""
        return Counter(chain.from_iterable(one.killed_by for one in self.of(Expected.KILLED)))

    def unique_kills(self) -> Counter[str]:
        """Breaks that a check alone killed."""
        return Counter(
            next(iter(one.killed_by)) for one in self.of(Expected.KILLED) if len(one.killed_by) == 1
        )

    def aims(self) -> Counter[str]:
        """Breaks that were meant for each check."""
        return Counter(chain.from_iterable(one.intended for one in self.of(Expected.KILLED)))

    def rows(self) -> list[Row]:
        """The measurement by operator and intended check."""
        grouped: dict[tuple[Expected, str, str], list[Result]] = {}
        for one in self.results:
            aim = ", ".join(sorted(one.intended))
            grouped.setdefault((one.expected, one.operator, aim), []).append(one)
        return [_row(name, group) for name, group in sorted(grouped.items())]


def sensitivity(runs: Iterable[Trajectory], checks: Sequence[Check]) -> Sensitivity:
    """Plants every break in every run, and judges each by all checks."""
    results: list[Result] = []
    before: list[tuple[str, Verdict]] = []
    count = 0
    for run in runs:
        count += 1
        of = original(run, tuple(checks))
        before += [(run.run_id, verdict) for verdict in of.verdicts if verdict.outcome is Outcome.FAILED]
        results += [result_of(of, mutant) for mutant in mutants(of)]
    return Sensitivity(
        runs=count,
        checks=tuple(check.id for check in checks),
        results=tuple(results),
        failed_before=tuple(before),
    )


def result_of(of: Original, mutant: Mutant) -> Result:
    """What the checks say of a mutant, beside what they said of its original."""
    verdicts = judge(mutant.run, of.checks)
    failed = frozenset(new.check for old, new in zip(of.verdicts, verdicts, strict=True) if _newly(old, new))
    intended = [verdict for verdict in verdicts if verdict.check in mutant.killers]
    open_now = any(verdict.outcome is Outcome.INCONCLUSIVE for verdict in intended)
    if failed & mutant.killers or (failed and not mutant.killers):
        fate = Fate.KILLED
    elif failed:
        fate = Fate.BY_OTHERS
    else:
        fate = Fate.INCONCLUSIVE if open_now else Fate.SURVIVED
    match mutant.expected:
        case Expected.KILLED:
            right = fate is Fate.KILLED
        case Expected.OPEN:
            right = open_now
        case Expected.SURVIVES:
            right = all(map(_alike, of.verdicts, verdicts))
    return Result(
        run_id=of.run.run_id,
        operator=mutant.operator,
        place=mutant.place,
        expected=mutant.expected,
        intended=mutant.killers,
        killed_by=failed,
        fate=fate,
        as_expected=right,
    )


def _newly(old: Verdict, new: Verdict) -> bool:
    """Whether a check fails that did not: of a run that it failed already, it is asked nothing."""
    return new.outcome is Outcome.FAILED and old.outcome is not Outcome.FAILED


def _alike(old: Verdict, new: Verdict) -> bool:
    """Whether the same is said of the two; of a run that it failed already, a check is asked nothing."""
    return old.outcome is Outcome.FAILED or old.outcome is new.outcome


def _row(name: tuple[Expected, str, str], group: Sequence[Result]) -> Row:
    expected, operator, aim = name
    return Row(
        operator=operator,
        aimed_at=aim,
        expected=expected,
        fates=Counter(one.fate for one in group),
        killed_by=Counter(chain.from_iterable(one.killed_by for one in group)),
        smallest=_smallest(
            [one.killed_by for one in group if one.killed_by], set().union(*(one.intended for one in group))
        ),
    )


def _smallest(killers: Sequence[frozenset[str]], meant: set[str]) -> tuple[str, ...]:
    """The fewest checks of which each mutant that was killed has one; those that were meant to come first."""
    every = sorted(set().union(*killers), key=lambda name: (name not in meant, name))
    for size in range(len(every) + 1):
        for some in combinations(every, size):
            if all(one & set(some) for one in killers):
                return some
    return tuple(every)

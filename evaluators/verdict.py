"""What a check says of a run: three-valued, with its reason and its evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Outcome(StrEnum):
    """``failed`` has evidence; nothing missing is ever ``passed``; 0/0 is ``not_applicable``."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"
    NOT_APPLICABLE = "not_applicable"


class CheckClass(StrEnum):
    """The question a check answers, so that goal and trajectory are reported side by side."""

    GOAL = "goal"
    PROTECTION = "protection"
    BUDGET = "budget"
    JUDGE = "judge"
    TRAJECTORY = "trajectory"


class Severity(IntEnum):
    """A run is flagged when a check of severity ``FLAG`` or above failed."""

    INFO = 0
    NOTE = 1
    FLAG = 2
    PAGE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Where to look: a span, and a JSON pointer into the run where one value is meant."""

    span_id: str
    pointer: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One failure found by a check.

    ``subject`` names what failed in terms that repeat from run to run (a tool and its key values, a
    state path, a reason of termination); message texts, indices, times and ids of spans stay out of
    it, so that the same failure has the same subject in production and in replay.
    """

    subject: str
    because: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer of one check about one run."""

    outcome: Outcome
    because: str
    check: str = ""
    check_class: CheckClass = CheckClass.TRAJECTORY
    severity: Severity = Severity.FLAG
    score: float | None = None
    """0 to 1 where the check has a ratio, with ``numerator`` and ``denominator`` beside it."""
    numerator: int | None = None
    denominator: int | None = None
    findings: tuple[Finding, ...] = ()
    revision: str = ""
    """Hash of the check's meaning (rule text and evaluator version)."""
    unseen: bool = False
    """Whether there was nothing to judge only because the trace does not carry what the check looks at."""

    def __post_init__(self) -> None:
        if self.outcome is Outcome.FAILED and not any(finding.evidence for finding in self.findings):
            raise ValueError(f"check {self.check!r}: a failed verdict needs evidence")

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The evidence of every finding, each place once, in order."""
        return tuple(dict.fromkeys(item for finding in self.findings for item in finding.evidence))

    @property
    def blind(self) -> bool:
        """Whether the check could not see what it would need to fail."""
        return self.unseen or self.outcome is Outcome.INCONCLUSIVE

    @property
    def flags(self) -> bool:
        """Whether this verdict alone flags its run."""
        return self.outcome is Outcome.FAILED and self.severity >= Severity.FLAG

    def signature(self) -> frozenset[tuple[str, str, str]]:
        """The failure as (check, revision, subject): what production and replay must agree on."""
        return frozenset((self.check, self.revision, finding.subject) for finding in self.findings)


def passed(because: str, *, score: float | None = None, of: tuple[int, int] | None = None) -> Verdict:
    """There was something to judge and it was right. ``of`` is (numerator, denominator)."""
    return _verdict(Outcome.PASSED, because, score, of, ())


def failed(
    because: str,
    *,
    findings: Iterable[Finding],
    score: float | None = None,
    of: tuple[int, int] | None = None,
) -> Verdict:
    """Something was wrong, and each finding shows where.

    Raises:
        ValueError: no finding carries evidence.
    """
    return _verdict(Outcome.FAILED, because, score, of, tuple(findings))


def inconclusive(because: str) -> Verdict:
    """The evidence needed to judge is missing; neither a pass nor a fail."""
    return _verdict(Outcome.INCONCLUSIVE, because, None, None, ())


def not_applicable(because: str, *, unseen: bool = False) -> Verdict:
    """There was nothing to judge; ``unseen`` when that is so because the trace does not carry it."""
    return _verdict(Outcome.NOT_APPLICABLE, because, None, None, (), unseen=unseen)


def _verdict(
    outcome: Outcome,
    because: str,
    score: float | None,
    of: tuple[int, int] | None,
    findings: tuple[Finding, ...],
    *,
    unseen: bool = False,
) -> Verdict:
    numerator, denominator = of or (None, None)
    if score is None and denominator:
        score = (numerator or 0) / denominator
    return Verdict(
        outcome=outcome,
        because=because,
        score=score,
        numerator=numerator,
        denominator=denominator,
        findings=findings,
        unseen=unseen,
    )


def flagged(verdicts: Iterable[Verdict]) -> bool:
    """Whether a run with these verdicts is flagged."""
    return any(verdict.flags for verdict in verdicts)


def named(
    verdict: Verdict, *, check: str, check_class: CheckClass, severity: Severity, revision: str
) -> Verdict:
    """The verdict of a check function, signed with the check that made it."""
    # Written out: replace() takes about twice as long, and every check of every run ends here.
    return Verdict(
        outcome=verdict.outcome,
        because=verdict.because,
        check=check,
        check_class=check_class,
        severity=severity,
        score=verdict.score,
        numerator=verdict.numerator,
        denominator=verdict.denominator,
        findings=verdict.findings,
        revision=revision,
        unseen=verdict.unseen,
    )

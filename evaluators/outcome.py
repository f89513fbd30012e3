"""Whether a run of a task came to what was wanted: its answer, its last state, or what a function says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from redfirst.evaluators.canonical import equal, number_of
from redfirst.evaluators.claims import days_in, numbers_in
from redfirst.evaluators.known import stands_in
from redfirst.evaluators.patterns import Pattern
from redfirst.evaluators.python_check import PythonCheck
from redfirst.evaluators.rule_kinds.lacking import incomplete, missing_fact, without_absence
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.state import StateRequired
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Outcome, Verdict, failed, inconclusive, passed

VERSION = 1

Wanted = str | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the final answer must be. Texts are compared without regard to case and runs of white space; a number
    is met by any way to write it, a date by any way to write that day."""

    equals: Wanted | None = None
    contains: tuple[Wanted, ...] = ()
    matches: Pattern | None = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Whether it holds."""
        if run.answer is None:
            lack = missing_fact(run, "answer") or incomplete(run)
            return inconclusive(lack) if lack else self._failed(run, "the run gave no answer", "(none)")
        return self._judged(run, run.answer)

    def _judged(self, run: Trajectory, answer: str) -> Verdict:
        if self.equals is not None and not _equals(answer, self.equals):
            return self._failed(run, f"the answer is not {self.equals!r}", str(self.equals))
        lacking = [item for item in self.contains if not _contains(answer, item)]
        if lacking:
            told = ", ".join(repr(item) for item in lacking)
            return self._failed(run, f"the answer does not contain {told}", ",".join(map(str, lacking)))
        if self.matches is not None:
            truth = self.matches.found_in(answer)
            if truth is None:
                return inconclusive(f"the answer of {len(answer)} characters is too long for the pattern")
            if truth is False:
                return self._failed(
                    run, f"the answer does not match {self.matches.text!r}", self.matches.text
                )
        return passed("the answer is as wanted")

    def _failed(self, run: Trajectory, because: str, subject: str) -> Verdict:
        where = Evidence(span_id=run.root_span_id, pointer="/answer", note=because)
        return failed(
            because, findings=[Finding(subject=f"answer|{subject}", because=because, evidence=(where,))]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReached:
    """All that a task says of its outcome: parts that hold ÷ parts."""

    when: When
    answer: Answer | None = None
    state: StateRequired | None = None
    function: PythonCheck | None = None

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; a part that is wrong beats one that cannot be told, and that beats one that holds."""
        if (refusal := self.when.refusal(run)) is not None:
            return refusal
        verdicts = dict(self._parts(run))
        wrong = {name: one for name, one in verdicts.items() if one.outcome is Outcome.FAILED}
        good = [name for name, one in verdicts.items() if one.outcome is Outcome.PASSED]
        if wrong and (lack := incomplete(run)):
            return inconclusive(f"{lack}; in what is there: {_told(wrong)}")
        if wrong:
            findings = [finding for one in wrong.values() for finding in one.findings]
            return failed(_told(wrong), findings=findings, of=(len(good), len(good) + len(wrong)))
        if len(good) < len(verdicts):
            return inconclusive(_told({name: one for name, one in verdicts.items() if name not in good}))
        every = passed(_told(verdicts), of=(len(good), len(good)))
        return without_absence(every, incomplete(run))

    def _parts(self, run: Trajectory) -> Iterator[tuple[str, Verdict]]:
        if self.answer is not None:
            yield "answer", self.answer(run)
        if self.state is not None:
            yield "state", self.state(run)
        if self.function is not None:
            yield self.function.reference, self.function(run)


def _told(verdicts: dict[str, Verdict]) -> str:
    return "; ".join(
        f"{name}: {one.because}" if len(verdicts) > 1 else one.because for name, one in verdicts.items()
    )


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def _equals(answer: str, wanted: Wanted) -> bool:
    return equal(answer, wanted) is True or _folded(answer) == _folded(str(wanted))


def _contains(answer: str, wanted: Wanted) -> bool:
    if (number := number_of(wanted)) is not None and (
        number in numbers_in(answer) or not isinstance(wanted, str)
    ):
        return number in numbers_in(answer)
    text = str(wanted)
    days = days_in(text)
    if days and len(text) <= len("30th of September 2026"):
        return any(
            (month, day) == (m, d) and (None in (year, y) or year == y)
            for year, month, day in days
            for y, m, d in days_in(answer)
        )
    return stands_in(_folded(text), _folded(answer))

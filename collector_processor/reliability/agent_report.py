"""What the judged runs of one agent say of a period."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.reliability.estimates import Estimate, share_of_runs
from redfirst.collector_processor.reliability.judged import tokens_of
from redfirst.collector_processor.reliability.results.stored import trials_of
from redfirst.collector_processor.reliability.summary import Reliability, Used, summarise, used_of
from redfirst.collector_processor.storing.store import Label, StoredRun
from redfirst.evaluators.check import severity_named
from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome, Severity

Json = Any

RATIOS = ("precision", "recall")
"""Kinds of checks whose numerators and denominators are added up over runs."""
CAPS = frozenset({Stop.STEP_CAP.value, Stop.TOKEN_CAP.value, Stop.TIME_CAP.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Counted things over all of their kind, added up over runs; ``runs`` is how many say it."""

    numerator: int
    denominator: int
    runs: int

    @property
    def value(self) -> float | None:
        """``None`` for 0 of 0."""
        return self.numerator / self.denominator if self.denominator else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCounts:
    """How one check answered, and what people said of its flags."""

    outcomes: Mapping[str, int]
    labelled_right: int
    """Failures that a label on the check calls right, or one on the run as a whole, which speaks for the checks that
    flag the run and have no label of their own.
    """
    labelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """One agent over a period; a part is ``None`` where no run says it."""

    agent: str | None
    runs: int
    """Runs, those included that could not be judged."""
    unscored: int
    flagged: Estimate | None
    strict: Estimate | None
    goal: Estimate | None
    violations: Estimate | None
    """Of the runs that reached their goal, those that broke a rule."""
    ratios: Mapping[str, Ratio]
    """``precision`` and ``recall``, where such checks ran."""
    repeats: Ratio
    """Calls counted as repeats, of the calls that the check looked at."""
    errors: Ratio
    """Calls that ended in an error, of all tool calls."""
    calls: Mapping[str, Used]
    """``model_calls``, ``tool_calls`` and ``tokens`` of a run."""
    terminations: Mapping[str, int]
    capped: Mapping[str, int]
    """Runs that a cap ended, by the cap: ``step_cap 12``."""
    checks: Mapping[str, CheckCounts]
    summary: Reliability
    """The same runs by request: saturated requests, tokens per success."""


def report(runs: Sequence[StoredRun], labels: Iterable[Label], *, agent: str | None) -> AgentReport:
    """The report of an agent from the latest versions of its runs, with their records."""
    trials = list(trials_of(runs))
    records = [run.record for run in runs if run.record is not None]
    tasks = [one.task for one in trials]
    flags = [None if run.record is None else run.flagged for run in runs]
    broken = [bool(one.violations) if one.goal and one.violations is not None else None for one in trials]
    return AgentReport(
        agent=agent,
        runs=len(runs),
        unscored=len(runs) - len(records),
        flagged=_share(flags, tasks),
        strict=_share([one.strict for one in trials], tasks),
        goal=_share([one.goal for one in trials], tasks),
        violations=_share(broken, tasks),
        ratios=_ratios(records),
        repeats=_added(_verdicts(records, "repeats"), failures=True),
        errors=_errors(records),
        calls={
            name: used
            for name, count in _COUNTS.items()
            if (used := used_of(map(count, records))) is not None
        },
        terminations=Counter(record["termination"]["reason"] for record in records),
        capped=Counter(
            f"{record['termination']['reason']} {record['termination']['cap'] or '?'}"
            for record in records
            if record["termination"]["reason"] in CAPS
        ),
        checks=_checks(runs, labels),
        summary=summarise(trials),
    )


_COUNTS: Mapping[str, Callable[[Mapping[str, Json]], int | None]] = {
    "model_calls": lambda record: record["model_calls"],
    "tool_calls": lambda record: None if record["tool_calls"] is None else len(record["tool_calls"]),
    "tokens": tokens_of,
}


def _share(hits: Sequence[bool | None], tasks: Sequence[str]) -> Estimate | None:
    """The share over runs, each counting as often as it was asked for; runs with the same request are one cluster."""
    known = [(hit, task) for hit, task in zip(hits, tasks, strict=True) if hit is not None]
    if not known:
        return None
    said = [hit for hit, _ in known]
    return Estimate(
        value=sum(said) / len(said),
        interval=share_of_runs(said, [task for _, task in known]),
        passes=sum(said),
        of=len(said),
    )


def _ratios(records: Iterable[Mapping[str, Json]]) -> Mapping[str, Ratio]:
    kept = list(records)
    found = {kind: _added(_verdicts(kept, kind), failures=False) for kind in RATIOS}
    return {kind: ratio for kind, ratio in found.items() if ratio.runs}


def _verdicts(records: Iterable[Mapping[str, Json]], kind: str) -> list[Mapping[str, Json]]:
    """The verdicts of one kind of check; a check with a name of its own is called ``KIND:NAME``."""
    return [one for record in records for one in record["verdicts"] if one["check"].split(":")[0] == kind]


def _added(verdicts: Iterable[Mapping[str, Json]], *, failures: bool) -> Ratio:
    """What the verdicts counted as right, or as wrong, added up; those that counted nothing are left out."""
    counted = [(one["numerator"], one["denominator"]) for one in verdicts if one["denominator"] is not None]
    right, every = sum(one for one, _ in counted), sum(one for _, one in counted)
    return Ratio(numerator=every - right if failures else right, denominator=every, runs=len(counted))


def _errors(records: Iterable[Mapping[str, Json]]) -> Ratio:
    known = [
        (record["errors"], len(record["tool_calls"]))
        for record in records
        if record["tool_calls"] is not None
    ]
    return Ratio(
        numerator=sum(wrong for wrong, _ in known),
        denominator=sum(calls for _, calls in known),
        runs=len(known),
    )


def _checks(runs: Iterable[StoredRun], labels: Iterable[Label]) -> Mapping[str, CheckCounts]:
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    failed: set[tuple[str, str]] = set()
    flags: defaultdict[str, list[str]] = defaultdict(list)
    for run in runs:
        for one in () if run.record is None else run.record["verdicts"]:
            outcomes[one["check"]][one["outcome"]] += 1
            if one["outcome"] == Outcome.FAILED.value:
                failed.add((run.run_id, one["check"]))
                if severity_named(one["severity"]) >= Severity.FLAG:
                    flags[run.run_id].append(one["check"])
    given = {(label.run_id, label.check): label.right for label in labels}
    own = {key: right for key, right in given.items() if key in failed}
    whole = {
        (run_id, check): right
        for (run_id, named), right in given.items()
        if not named
        for check in flags[run_id]
    }
    said: defaultdict[str, list[bool]] = defaultdict(list)
    for (_, check), right in (whole | own).items():
        said[check].append(right)
    return {
        check: CheckCounts(outcomes=counts, labelled_right=sum(said[check]), labelled=len(said[check]))
        for check, counts in outcomes.items()
    }

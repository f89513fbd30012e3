"""One tested thing, as every summary tells it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.evaluators.canonical import digest
from redfirst.replay.account import account
from redfirst.replay.injecting import Injected, Recovery
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.running import Outcome
from redfirst.replay.scenario import SCENARIO_FILE
from redfirst.replay.suite import Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One check that failed."""

    check: str
    because: str
    subjects: tuple[str, ...]
    fingerprint: str
    """The same for the same failure of the same scenario, whenever it is run."""
    line: int
    """Where the check stands in ``scenario.yaml``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A scenario, or a scenario with a fault put in."""

    name: str
    agent: str
    file: Path
    outcome: RunOutcome
    because: str
    counted: bool
    set_aside: str = ""
    """Why it does not count."""
    notes: tuple[str, ...] = ()
    """Expiry and drift."""
    runs: tuple[int, int] = (0, 0)
    """Green ones, and those with a verdict."""
    failures: tuple[Failure, ...] = ()
    account: tuple[str, ...] = ()


def cases(suite: Suite, injected: Sequence[Injected] = ()) -> list[Case]:
    """Every scenario, then every fault that was put in."""
    found = [_case(one, one.outcome, suite.counts(one)) for one in suite.outcomes]
    for one in injected:
        kind = one.recovery.outcome
        if kind is not None:
            words = f" [{one.tool}: {one.kind.value}]"
            found.append(_faulted(_case(one.outcome, kind, suite.counts(one.outcome), words), one))
    return found


def _faulted(case: Case, one: Injected) -> Case:
    """The case with what became of the fault as its reason; where that is red and no check failed, as its failure."""
    broke = one.recovery is Recovery.BREAKS_OFF
    because = "the agent let the fault end the run" if broke else one.reading.because
    failures = case.failures
    if case.outcome is RunOutcome.RED and not failures:
        subjects = (one.tool,)
        failures = (
            Failure(
                check="recovery",
                because=because,
                subjects=subjects,
                fingerprint=_fingerprint(case.name, "recovery", subjects),
                line=1,
            ),
        )
    return replace(case, because=f"{one.recovery.value}: {because}", failures=failures)


def _fingerprint(name: str, check: str, subjects: Sequence[str]) -> str:
    return digest([name, check, list(subjects)])[:32]


def _case(one: Outcome, kind: RunOutcome, counted: bool, words: str = "") -> Case:
    worst, path = one.worst, one.folder.path / SCENARIO_FILE
    aside = ""
    if not counted:
        held = one.upkeep.quarantine
        aside = one.standing.because if held is None else f"quarantined until {held.until}: {held.reason}"
    red = kind is RunOutcome.RED
    return Case(
        name=f"{one.folder.scenario.id}{words}",
        agent=one.folder.scenario.agent,
        file=path,
        outcome=kind,
        because=one.said,
        counted=counted,
        set_aside=aside,
        notes=one.upkeep.notes,
        runs=(one.count(RunOutcome.GREEN), one.valid),
        failures=tuple(_failures(one, worst, words)) if red else (),
        account=tuple(account(worst)) if red else (),
    )


def _failures(one: Outcome, worst: Result, words: str) -> Iterator[Failure]:
    lines = _lines(one.folder.path / SCENARIO_FILE)
    for verdict in worst.failed:
        subjects = tuple(sorted({finding.subject for finding in verdict.findings}))
        yield Failure(
            check=verdict.check,
            because=verdict.because,
            subjects=subjects,
            fingerprint=_fingerprint(one.folder.scenario.id + words, verdict.check, subjects),
            line=lines.get(verdict.check, 1),
        )


def _lines(path: Path) -> dict[str, int]:
    """The line of each check with a name of its own; the file was read a moment ago."""
    try:
        document = strict_yaml.read(path.read_text("utf-8").removeprefix("\ufeff"), str(path))
    except (OSError, ConfigurationError):
        return {}  # changed meanwhile: the results stand, only their lines are not known
    data = document.data
    checks = data.get("checks", []) if isinstance(data, dict) else []
    out: dict[str, int] = {}
    for place, part in enumerate(checks):
        body = part.get("check") if isinstance(part, dict) else None
        if isinstance(body, dict):
            out[str(body.get("id", body.get("kind")))] = document.line_of(("checks", place))
    return out

"""The executed red proof: a scenario is a test only after the agent has been seen to fail it.

Steps, after docs/proof.md: S0 the scenario is sound; S1 the recorded trace fails the target checks;
S2 the harness can report a miss and a red; S3 a control is green, twice; S4 the agent fails with the
same signature on the incident's own recordings, twice and with equal events; S5, at level ``live``,
it does so with its model live, often enough; S6 the proof is written, bound to the scenario's bytes.
"""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redfirst.evaluators import ConfigurationError, Trajectory
from redfirst.evaluators.check import judge
from redfirst.evaluators.intervals import clopper_pearson_lower, wilson
from redfirst.evaluators.reading import read_runs
from redfirst.replay import recording
from redfirst.replay.controls import harness_control
from redfirst.replay.derive import repaired
from redfirst.replay.divergence import Divergence, first_divergence
from redfirst.replay.outcome import Result, RunOutcome, Signature
from redfirst.replay.playing import CONTROL, EVERYTHING, INCIDENT, Turns, job, play
from redfirst.replay.process import together
from redfirst.replay.project import Project
from redfirst.replay.report import Level, Refusal, Report, Step
from redfirst.replay.runner import Job
from redfirst.replay.scenario import CONTROL_FILE, PROOF_FILE, Folder, lines, load
from redfirst.replay.standing import SCHEMA, Standing, bind, standing

__all__ = ["Level", "Refusal", "Report", "Standing", "Step", "prove", "standing"]

Json = Any

MOST_WITHOUT_VERDICT = 0.2
"""Share of live runs that may end without a verdict before the live step says nothing."""
BY_AGENT = "agent "
"""How the name of a control begins that an agent was run for."""
SOURCES_SHOWN = 4
"""Unfrozen sources that a report names; the proof holds all."""


class _Refused(Exception):
    def __init__(self, refusal: Refusal, because: str) -> None:
        super().__init__(because)
        self.refusal = refusal


class _Proving:
    def __init__(self, folder: Folder, agent: str, project: Project, level: Level) -> None:
        self.folder = folder
        self.agent = agent
        self.project = project
        self.level = level
        self.steps: list[Step] = []
        self.runs: list[Result] = []
        self.signature: Signature = frozenset()
        self.control = ""
        self.red: Result | None = None

    def step(self, name: str, said: str) -> None:
        self.steps.append(Step(name=name, said=said, ok=True))

    def report(self, refused: _Refused | None = None) -> Report:
        return Report(
            scenario=self.folder.scenario.id, level=self.level, steps=tuple(self.steps), signature=self.signature,
            control=self.control, red=self.red, runs=tuple(self.runs),
            refusal=None if refused is None else refused.refusal, because="" if refused is None else str(refused),
        )  # fmt: skip


def prove(
    path: Path,
    project: Project,
    *,
    agent: str | None = None,
    level: Level = Level.RECORDED,
    control: str | None = None,
    runs: int | None = None,
    told: Callable[[Step], None] | None = None,
) -> Report:
    """Show that an agent fails a scenario for the reason it failed in production, and write the proof.

    Args:
        path: the scenario's folder.
        project: where agents are configured.
        agent: ``module:factory`` instead of the configured one.
        level: what is live.
        control: ``module:factory`` of an agent that passes, recorded with its model live.
        runs: number of live runs, instead of the scenario's.
        told: called with each step as it ends.

    Raises:
        ConfigurationError: the scenario, the agent's reference or the number of runs is wrong.
        CannotWrite: the proof cannot be put on disk.
    """
    if runs is not None and runs < 1:
        raise ConfigurationError(f"{runs} runs: give a number of at least 1.")
    folder = load(path)
    reference = project.agent(folder.scenario.agent, agent)
    proving = _Proving(folder, reference, project, level)
    stages: list[tuple[str, Callable[[_Proving], str]]] = [
        ("S0", _sound),
        ("S1", _production),
        ("S2", _harness),
        # the red before the control: an agent that cannot fail for the right reason is named as what it is
        *([("S4", _recorded_red)] if level is Level.RECORDED else [("S5", lambda p: _live_red(p, runs))]),
        ("S3", lambda p: _control(p, control)),
        ("S6", _write),
    ]
    for name, stage in stages:
        try:
            proving.step(name, stage(proving))
        except _Refused as refused:
            proving.steps.append(Step(name=name, said=str(refused), ok=False))
            if told is not None:
                told(proving.steps[-1])
            return proving.report(refused)
        if told is not None:
            told(proving.steps[-1])
    return proving.report()


# -- the steps


def _sound(proving: _Proving) -> str:
    scenario = proving.folder.scenario
    responses = sum(len(part.responses) for part in scenario.tools.values())
    return f"{len(scenario.checks)} checks, {responses} tool answers, {len(proving.folder.model)} model turns"


def _production(proving: _Proving) -> str:
    verdicts = judge(_incident(proving.folder), proving.folder.scenario.targets())
    proving.signature = frozenset().union(*(verdict.signature() for verdict in verdicts))
    quiet = [v for v in verdicts if not v.findings]
    if quiet:
        raise _Refused(
            Refusal.TRACE_NOT_RED, f"the recorded trace does not fail {quiet[0].check}: {quiet[0].because}"
        )
    return f"the recorded trace is red: {_subjects(proving.signature)}"


def _incident(folder: Folder) -> Trajectory:
    runs = [
        r
        for r in read_runs(folder.trace, folder.logs)
        if folder.scenario.origin.get("trace_id") in r.trace_ids
    ]
    if len(runs) != 1:
        raise _Refused(Refusal.TRACE_NOT_RED, f"the recorded trace holds {len(runs)} runs of its trace id")
    return runs[0]


@cache
def _harness_control() -> str | None:
    return harness_control()


def _harness(proving: _Proving) -> str:  # noqa: ARG001 - every stage has one shape
    wrong = _harness_control()
    if wrong is not None:
        raise _Refused(Refusal.HARNESS_BROKEN, wrong)
    return "an unrecorded call gives no verdict, a failed check is red"


def _recorded_red(proving: _Proving) -> str:
    one = job(proving.folder, proving.agent, proving.project, turns=proving.folder.model, sources=INCIDENT)
    first, second = _twice(proving.folder, one)
    proving.runs += [first, second]
    _same_events(first, second)
    for result in (first, second):
        _must_fail(proving, result)
    proving.red = first
    execution = first.execution
    live = len(execution.live_decisions)
    return (
        f"red twice for the same reason, equal events; {execution.tape_decisions} decisions by the tape, "
        f"{live} live{': ' + '; '.join(execution.live_decisions[:3]) if live else ''}{_used(first, second)}"
    )


def _used(*results: Result) -> str:
    """What the runs used that is not frozen: they agree, and a reader should know on what."""
    used = sorted({source for result in results for source in result.execution.unfrozen})
    more = f" and {len(used) - SOURCES_SHOWN} more" if len(used) > SOURCES_SHOWN else ""
    return f"; used and not frozen: {', '.join(used[:SOURCES_SHOWN])}{more}" if used else ""


def _live_red(proving: _Proving, runs: int | None) -> str:
    settings = proving.folder.scenario.proof.live
    asked = runs or settings.runs
    jobs = [
        job(proving.folder, proving.agent, proving.project, turns=None, sources=EVERYTHING, draw=n)
        for n in range(asked)
    ]
    results = _all(proving.folder, jobs)
    proving.runs += results
    valid = [r for r in results if r.outcome is not RunOutcome.NO_VERDICT]
    if len(valid) < len(results) * (1 - MOST_WITHOUT_VERDICT):
        lost = next(r for r in results if r.outcome is RunOutcome.NO_VERDICT)
        raise _Refused(
            Refusal(lost.stop.value) if lost.stop is not None else Refusal.INCONCLUSIVE,
            f"{len(results) - len(valid)} of {len(results)} live runs gave no verdict; the first: {lost.because}",
        )
    red = [r for r in valid if r.outcome is RunOutcome.RED and r.signature >= proving.signature]
    seen = f"{len(red)} of {len(valid)} live runs failed this way"
    if not red:
        others = sorted({v.check for r in valid for v in r.failed})
        reason = Refusal.OTHER_REASON if others else Refusal.DID_NOT_FAIL
        raise _Refused(reason, f"{seen}{'; others failed ' + ', '.join(others) if others else ''}")
    low = clopper_pearson_lower(len(red), len(valid))
    interval = wilson(len(red), len(valid))
    if low < settings.at_least:
        raise _Refused(
            Refusal.TOO_RARE,
            f"{seen}; the one-sided 95 % lower bound is {low:.2f}, and {settings.at_least:.2f} is asked",
        )
    proving.red = red[0]
    return f"{seen}, Wilson 95 % [{interval[0]:.2f}, {interval[1]:.2f}], lower bound {low:.2f} ≥ {settings.at_least:.2f}"


def _control(proving: _Proving, reference: str | None) -> str:
    tried: list[str] = []
    for kind, agent, turns in _candidates(proving, reference):
        one = job(proving.folder, agent, proving.project, turns=turns, sources=CONTROL)
        first, second = _twice(proving.folder, one)
        divergence = first_divergence(first.execution, second.execution)
        if first.outcome is RunOutcome.GREEN and second.outcome is RunOutcome.GREEN and divergence is None:
            proving.control = kind
            if kind.startswith(BY_AGENT):
                proving.folder = proving.folder.including(CONTROL_FILE, lines(turns))
            return f"the control is green twice ({kind})"
        worst = first if first.outcome is not RunOutcome.GREEN else second
        tried.append(f"{kind}: {divergence.said if divergence else f'{worst.outcome}, {worst.because}'}")
    advice = "pass --control module:factory of an agent that handles it"
    raise _Refused(Refusal.CONTROL_NOT_GREEN, f"{' | '.join(tried) or 'no control could be made'}; {advice}")


def _candidates(proving: _Proving, reference: str | None) -> Any:
    folder = proving.folder
    if reference is not None:
        agent = proving.project.agent(folder.scenario.agent, reference)
        yield f"{BY_AGENT}{agent}", agent, _recorded_control(proving, agent)
        return
    if folder.control is not None:
        yield "passing run", proving.agent, folder.control
    run = _incident(folder)
    turns = repaired(run, judge(run, folder.scenario.targets()), folder.model)
    if turns is not None:
        yield "derived", proving.agent, turns


def _recorded_control(proving: _Proving, agent: str) -> Turns:
    """The model turns of a green run of the control agent.

    First on the incident's own model turns, live only where they end: a fix of the code meets the very
    decisions that went wrong. An agent that follows them into the failure is tried with its model live.
    """
    folder = proving.folder
    said: list[str] = []
    for how, turns in (("after the incident's turns", folder.model), ("from the start", None)):
        one = job(
            folder, agent, proving.project, turns=turns, sources=EVERYTHING, live_off_tape=turns is not None
        )
        result = play(folder, one, hash_seed=0)
        if result.outcome is RunOutcome.GREEN and result.run is not None:
            return recording.record(result.run, result.execution.spans, source="control").turns
        said.append(f"live {how}: {result.outcome}, {result.because}")
    raise _Refused(Refusal.CONTROL_NOT_GREEN, f"agent {agent}, model {'; model '.join(said)}")


def _write(proving: _Proving) -> str:
    folder = proving.folder  # as it was executed: what was changed on disk meanwhile is not proven
    body = {
        "schema": SCHEMA,
        "scenario": folder.scenario.id,
        "level": proving.level.value,
        "files": folder.hashes(),
        "checks": [
            {"id": check.id, "revision": check.revision, "role": "target"} for check in folder.scenario.targets()
        ],
        "signature": sorted(list(item) for item in proving.signature),
        "agent": {"reference": proving.agent, "version": _agent_version(proving)},
        "control": proving.control,
        "red": [_red_row(result) for result in proving.runs],
        "environment": {
            "redfirst": version("redfirst"), "python": platform.python_version(),
            "platform": f"{platform.system().lower()}-{platform.machine()}",
        },
    }  # fmt: skip
    if proving.control.startswith(BY_AGENT):
        folder.keep_control()
    if load(folder.path).hashes() != folder.hashes():
        raise ConfigurationError(f"{folder.path}: it was changed while it was being proven; prove it again.")
    bind(folder, body)
    return f"{PROOF_FILE} binds {len(folder.hashes())} files"


def _red_row(result: Result) -> dict[str, Json]:
    return {
        "outcome": result.outcome.value,
        "events_sha256": hashlib.sha256("\n".join(result.execution.events).encode()).hexdigest(),
        "tape_decisions": result.execution.tape_decisions,
        "live_decisions": len(result.execution.live_decisions),
        "unfrozen": sorted(result.execution.unfrozen),
    }


def _agent_version(proving: _Proving) -> str | None:
    return proving.red.run.agent_version if proving.red is not None and proving.red.run is not None else None


# -- what the steps share


def _twice(folder: Folder, one: Job) -> tuple[Result, Result]:
    """Two fresh processes with different hash seeds; in different seconds when another program was run."""
    began = time.monotonic()
    first = play(folder, one, hash_seed=1)
    if first.execution.may_lag:
        time.sleep(max(0.0, 1.1 - (time.monotonic() - began)))
    return first, play(folder, one, hash_seed=2)


def _all(folder: Folder, jobs: Sequence[Job]) -> list[Result]:
    return together([partial(play, folder, one, hash_seed=seed) for seed, one in enumerate(jobs)])


def _same_events(first: Result, second: Result) -> None:
    divergence: Divergence | None = first_divergence(first.execution, second.execution)
    if divergence is not None:
        raise _Refused(Refusal.NONDETERMINISTIC, divergence.said)


def _must_fail(proving: _Proving, result: Result) -> None:
    if result.stop is not None:
        raise _Refused(Refusal(result.stop.value), result.because)
    if result.outcome is RunOutcome.GREEN:
        raise _Refused(Refusal.DID_NOT_FAIL, f"{proving.agent} passed: {result.because}")
    if result.signature >= proving.signature:
        return
    if result.outcome is RunOutcome.NO_VERDICT:
        raise _Refused(Refusal.INCONCLUSIVE, result.because)
    raise _Refused(
        Refusal.OTHER_REASON,
        f"production failed {_subjects(proving.signature)}; this run failed {result.because}",
    )


def _subjects(signature: Signature) -> str:
    return ", ".join(f"{check} [{subject}]" for check, _, subject in sorted(signature))

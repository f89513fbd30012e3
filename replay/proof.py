"""The executed red proof: a scenario is a test only after the agent has been seen to fail it.

Steps, after docs/proof.md: S0 the scenario is sound; S1 the recorded trace fails the target checks;
S2 the harness can report a miss and a red; S3 a control is green, twice; S4 the agent fails with the
same signature on the incident's own recordings, twice and with equal events; S5, at level ``live``,
it does so with its model live, often enough; S6 the proof is written, bound to the scenario's bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.check import judge
from redfirst.replay.green import green_control
from redfirst.replay.harness import harness_control
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.project import Project
from redfirst.replay.proving import BY_AGENT, Proving, Refused, incident, subjects
from redfirst.replay.reds import live_red, recorded_red
from redfirst.replay.report import Level, Refusal, Report, Step
from redfirst.replay.scenario import PROOF_FILE, load
from redfirst.replay.standing import SCHEMA, bind, environment, events_digest

Json = Any


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
    if folder.scenario.kind == "sample":
        raise ConfigurationError(
            f"{path}: a sample has no target that could be seen to fail; it is held, not proven."
        )
    reference = project.agent(folder.scenario.agent, agent)
    proving = Proving(folder, reference, project, level)
    stages: list[tuple[str, Callable[[Proving], str]]] = [
        ("S0", _sound),
        ("S1", _production),
        ("S2", _harness),
        # the red before the control: an agent that cannot fail for the right reason is named as what it is
        *([("S4", recorded_red)] if level is Level.RECORDED else [("S5", lambda p: live_red(p, runs))]),
        ("S3", lambda p: green_control(p, control)),
        ("S6", _write),
    ]
    for name, stage in stages:
        try:
            proving.steps.append(Step(name=name, said=stage(proving), ok=True))
        except Refused as refused:
            proving.steps.append(Step(name=name, said=str(refused), ok=False))
            if told is not None:
                told(proving.steps[-1])
            return proving.report(refused)
        if told is not None:
            told(proving.steps[-1])
    return proving.report()


def _sound(proving: Proving) -> str:
    scenario = proving.folder.scenario
    responses = sum(len(part.responses) for part in scenario.tools.values())
    return f"{len(scenario.checks)} checks, {responses} tool answers, {len(proving.folder.model)} model turns"


def _production(proving: Proving) -> str:
    verdicts = judge(incident(proving.folder), proving.folder.scenario.targets())
    proving.signature = frozenset().union(*(verdict.signature() for verdict in verdicts))
    quiet = [v for v in verdicts if not v.findings]
    if quiet:
        raise Refused(
            Refusal.TRACE_NOT_RED, f"the recorded trace does not fail {quiet[0].check}: {quiet[0].because}"
        )
    return f"the recorded trace is red: {subjects(proving.signature)}"


@cache
def _harness_control() -> str | None:
    return harness_control()


def _harness(_: Proving) -> str:
    wrong = _harness_control()
    if wrong is not None:
        raise Refused(Refusal.HARNESS_BROKEN, wrong)
    return "an unrecorded call gives no verdict, a failed check is red"


def _write(proving: Proving) -> str:
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
        "rate": _rate(proving),
        "environment": environment(
            [result.execution for result in proving.runs], network=proving.level is not Level.RECORDED
        ),
    }  # fmt: skip
    if proving.control.startswith(BY_AGENT):
        folder.keep_control()
    if load(folder.path).hashes() != folder.hashes():
        raise ConfigurationError(f"{folder.path}: it was changed while it was being proven; prove it again.")
    bind(folder, body)
    return f"{PROOF_FILE} binds {len(folder.hashes())} files"


def _rate(proving: Proving) -> dict[str, int] | None:
    """How often the live runs failed this way: ``verify`` sizes its runs by it."""
    if proving.level is not Level.LIVE:
        return None
    valid = [result for result in proving.runs if result.outcome is not RunOutcome.NO_VERDICT]
    return {"red": sum(result.fails_as(proving.signature) for result in valid), "valid": len(valid)}


def _red_row(result: Result) -> dict[str, Json]:
    return {
        "outcome": result.outcome.value,
        "events_sha256": events_digest(result.execution),
        "tape_decisions": result.execution.tape_decisions,
        "live_decisions": len(result.execution.live_decisions),
        "unfrozen": sorted(result.execution.unfrozen),
    }


def _agent_version(proving: Proving) -> str | None:
    return proving.red.run.agent_version if proving.red is not None and proving.red.run is not None else None

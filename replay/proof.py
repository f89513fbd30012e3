"""The executed red proof: a scenario is a test only after the agent has been seen to fail it.

Steps, after docs/proof.md: S0 the scenario is sound; S1 the recorded trace fails the target checks;
S2 the harness can report a miss and a red; S3 a control is green, twice; S4 the agent fails with the
same signature on the incident's own recordings, twice and with equal events; S5, at level ``live``,
it does so with its model live, often enough; S6 the proof is written, bound to the scenario's bytes.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redfirst.evaluators import ConfigurationError
from redfirst.evaluators.check import judge
from redfirst.evaluators.intervals import clopper_pearson_lower, wilson
from redfirst.evaluators.reading import read_runs
from redfirst.replay import recording
from redfirst.replay.controls import harness_control
from redfirst.replay.derive import repaired
from redfirst.replay.divergence import Divergence, first_divergence
from redfirst.replay.outcome import Result, RunOutcome, Signature
from redfirst.replay.playing import CONTROL, EVERYTHING, INCIDENT, Turns, job, play
from redfirst.replay.project import Project
from redfirst.replay.runner import Job
from redfirst.replay.scenario import CONTROL_FILE, HASHED_FILES, PROOF_FILE, Folder, lines, load

Json = Any

SCHEMA = "redfirst.proof/1"
MOST_WITHOUT_VERDICT = 0.2
"""Share of live runs that may end without a verdict before the live step says nothing."""


class Level(StrEnum):
    """What was live when the agent was seen to fail."""

    RECORDED = "recorded"
    """The agent's code; model and tools from the tape."""
    LIVE = "live"
    """The agent's code and its model; tools from fixtures."""


class Refusal(StrEnum):
    """Why there is no proof."""

    TRACE_NOT_RED = "trace_not_red"
    DID_NOT_FAIL = "did_not_fail"
    OTHER_REASON = "other_reason"
    TOO_RARE = "too_rare"
    HARNESS_BROKEN = "harness_broken"
    CONTROL_NOT_GREEN = "control_not_green"
    NONDETERMINISTIC = "nondeterministic"
    INCONCLUSIVE = "inconclusive"
    OFF_TAPE = "off_tape"
    RECORDING_STALE = "recording_stale"
    CANNOT_REBUILD = "cannot_rebuild"
    NETWORK = "network"
    GRADER_READ = "grader_read"
    AGENT_NOT_CALLED = "agent_not_called"
    TIMED_OUT = "timed_out"
    CHILD_DIED = "child_died"
    OUR_FAULT = "our_fault"

    @property
    def exit_code(self) -> int:
        """1: it did not fail, or for another reason; 3: nothing can be said."""
        return 1 if self in _DID_NOT_FAIL else 3


_DID_NOT_FAIL = frozenset(
    {Refusal.TRACE_NOT_RED, Refusal.DID_NOT_FAIL, Refusal.OTHER_REASON, Refusal.TOO_RARE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the protocol and what it showed."""

    name: str
    said: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of ``prove``: a proof, or a named refusal."""

    scenario: str
    level: Level
    steps: tuple[Step, ...]
    refusal: Refusal | None = None
    because: str = ""
    signature: Signature = frozenset()
    control: str = ""
    """``agent REF``, ``passing run`` or ``derived``."""
    red: Result | None = None
    runs: tuple[Result, ...] = ()
    """Every execution of the agent under proof."""

    @property
    def proven(self) -> bool:
        """Whether the agent was seen to fail for the reason it failed in production."""
        return self.refusal is None

    @property
    def exit_code(self) -> int:
        """0 proven, 1 it did not fail or failed for another reason, 3 nothing can be said."""
        return 0 if self.refusal is None else self.refusal.exit_code


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
        ConfigurationError: the scenario or the agent's reference is wrong.
    """
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
    folder = proving.folder
    runs = [
        r
        for r in read_runs(folder.trace, folder.logs)
        if folder.scenario.origin.get("trace_id") in r.trace_ids
    ]
    if len(runs) != 1:
        raise _Refused(Refusal.TRACE_NOT_RED, f"the recorded trace holds {len(runs)} runs of its trace id")
    verdicts = judge(runs[0], folder.scenario.targets())
    proving.signature = frozenset().union(*(verdict.signature() for verdict in verdicts))
    quiet = [v for v in verdicts if not v.findings]
    if quiet:
        raise _Refused(
            Refusal.TRACE_NOT_RED, f"the recorded trace does not fail {quiet[0].check}: {quiet[0].because}"
        )
    return f"the recorded trace is red: {_subjects(proving.signature)}"


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
        f"{live} live{': ' + '; '.join(execution.live_decisions[:3]) if live else ''}"
    )


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
            if kind.startswith("agent "):
                (proving.folder.path / CONTROL_FILE).write_bytes(lines(turns))
                proving.folder = load(proving.folder.path)
            return f"the control is green twice ({kind})"
        worst = first if first.outcome is not RunOutcome.GREEN else second
        tried.append(f"{kind}: {divergence.said if divergence else f'{worst.outcome}, {worst.because}'}")
    advice = "pass --control module:factory of an agent that handles it"
    raise _Refused(Refusal.CONTROL_NOT_GREEN, f"{' | '.join(tried) or 'no control could be made'}; {advice}")


def _candidates(proving: _Proving, reference: str | None) -> Any:
    folder = proving.folder
    if reference is not None:
        agent = proving.project.agent(folder.scenario.agent, reference)
        yield f"agent {agent}", agent, _recorded_control(proving, agent)
        return
    if folder.control is not None:
        yield "passing run", proving.agent, folder.control
    run = read_runs(folder.trace, folder.logs)[0]
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
    folder = load(proving.folder.path)
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
    (folder.path / PROOF_FILE).write_text(
        json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8"
    )
    return f"{PROOF_FILE} binds {len(body['files'])} files"


def _red_row(result: Result) -> dict[str, Json]:
    return {
        "outcome": result.outcome.value,
        "events_sha256": hashlib.sha256("\n".join(result.execution.events).encode()).hexdigest(),
        "tape_decisions": result.execution.tape_decisions,
        "live_decisions": len(result.execution.live_decisions),
    }


def _agent_version(proving: _Proving) -> str | None:
    return proving.red.run.agent_version if proving.red is not None and proving.red.run is not None else None


# -- what the steps share


def _twice(folder: Folder, one: Job) -> tuple[Result, Result]:
    """Two fresh processes with different hash seeds; in different seconds when another program was run."""
    began = time.monotonic()
    first = play(folder, one, hash_seed=1)
    if first.execution.used_subprocess:
        time.sleep(max(0.0, 1.1 - (time.monotonic() - began)))
    return first, play(folder, one, hash_seed=2)


def _all(folder: Folder, jobs: Sequence[Job]) -> list[Result]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda pair: play(folder, pair[1], hash_seed=pair[0]), enumerate(jobs)))


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


# -- proofs on disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a scenario may gate."""

    proven: bool
    level: Level | None = None
    because: str = ""


def standing(folder: Folder) -> Standing:
    """Whether the folder holds a proof of exactly these bytes; any change of any of them voids it."""
    path = folder.path / PROOF_FILE
    if not path.is_file():
        return Standing(proven=False, because="draft: not proven yet")
    try:
        proof: Mapping[str, Json] = json.loads(path.read_text("utf-8"))
        if proof["schema"] != SCHEMA:
            raise ConfigurationError(
                f"{path}: schema is {proof['schema']!r}; this redfirst reads {SCHEMA}. Prove again."
            )
        recorded, level = dict(proof["files"]), Level(proof["level"])
    except (ValueError, KeyError, TypeError) as problem:
        return Standing(proven=False, because=f"void: {PROOF_FILE} is damaged ({problem})")
    found = folder.hashes()
    changed = sorted(name for name in HASHED_FILES if recorded.get(name) != found.get(name))
    if changed:
        return Standing(proven=False, because=f"void: {changed[0]} changed since the proof")
    return Standing(proven=True, level=level)

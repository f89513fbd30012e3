"""What the steps of a proof share: what is known so far, and a step's refusal."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from redfirst.evaluators import Trajectory
from redfirst.evaluators.reading import read_runs
from redfirst.replay.causes import hash_seeds
from redfirst.replay.outcome import Result, Signature
from redfirst.replay.playing import play
from redfirst.replay.project import Project
from redfirst.replay.report import Level, Refusal, Report, Step
from redfirst.replay.runner import Job
from redfirst.replay.scenario import Folder
from redfirst.replay.world import EVERYTHING

BY_AGENT = "agent "
"""How the name of a control begins that an agent was run for."""


class Refused(Exception):
    """A step that did not show what it has to show."""

    def __init__(self, refusal: Refusal, because: str) -> None:
        super().__init__(because)
        self.refusal = refusal


@dataclass(slots=True)
class Proving:
    """A proof as far as it has come."""

    folder: Folder
    agent: str
    project: Project
    level: Level
    steps: list[Step] = field(default_factory=list)
    runs: list[Result] = field(default_factory=list)
    signature: Signature = frozenset()
    control: str = ""
    red: Result | None = None

    def report(self, refused: Refused | None = None) -> Report:
        """What is to be told."""
        return Report(
            scenario=self.folder.scenario.id, agent=self.agent, level=self.level, steps=tuple(self.steps),
            signature=self.signature, control=self.control, red=self.red, runs=tuple(self.runs),
            refusal=None if refused is None else refused.refusal, because="" if refused is None else str(refused),
        )  # fmt: skip


def incident(folder: Folder) -> Trajectory:
    """The run that the scenario was frozen from, read from its trace."""
    runs = [
        r
        for r in read_runs(folder.trace, folder.logs)
        if folder.scenario.origin.get("trace_id") in r.trace_ids
    ]
    if len(runs) != 1:
        raise Refused(Refusal.TRACE_NOT_RED, f"the recorded trace holds {len(runs)} runs of its trace id")
    return runs[0]


def twice(folder: Folder, one: Job) -> tuple[Result, Result]:
    """Two fresh processes with different hash seeds, the second as on another machine; in different seconds when
    another program was run."""
    began = time.monotonic()
    seed, other = hash_seeds(folder)
    first = play(folder, one, hash_seed=seed)
    if first.execution.may_lag:
        time.sleep(max(0.0, 1.1 - (time.monotonic() - began)))
    return first, play(folder, one, hash_seed=other, vary=[EVERYTHING])


def subjects(signature: Signature) -> str:
    """Checks and what they failed for, as a person reads it."""
    return ", ".join(f"{check} [{subject}]" for check, _, subject in sorted(signature))

"""Samples: runs that went well, replayed until it is known that they stay so. Guards only; no red was ever seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redfirst.evaluators import ConfigurationError
from redfirst.replay.divergence import first_divergence
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.playing import INCIDENT, job, play
from redfirst.replay.process import together
from redfirst.replay.project import Project
from redfirst.replay.scenario import load
from redfirst.replay.standing import HELD_SCHEMA, bind, environment

REPLAYS = 3
"""Unless another number is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the replays of a sample showed."""

    scenario: str
    results: tuple[Result, ...]
    because: str = ""
    """Why it is not held; empty when it is."""

    @property
    def held(self) -> bool:
        """Whether every replay was green, with equal events."""
        return not self.because

    @property
    def exit_code(self) -> int:
        """0 held, 1 a guard failed, 3 nothing can be said."""
        if self.held:
            return 0
        return 1 if any(result.outcome is RunOutcome.RED for result in self.results) else 3


def hold(path: Path, project: Project, *, agent: str | None = None, runs: int | None = None) -> Holding:
    """Replay a sample in fresh processes with different hash seeds, and write that it stayed green.

    Raises:
        ConfigurationError: the scenario is no sample, or the agent's reference is wrong, or there is only one run.
        CannotWrite: the result cannot be put on disk.
    """
    folder = load(path)
    if folder.scenario.kind != "sample":
        raise ConfigurationError(f"{path}: an incident is proven, not held; run redfirst prove.")
    times = REPLAYS if runs is None else runs
    if times < 2:
        raise ConfigurationError(f"{times} replays: give at least 2; one says nothing about the next.")
    reference = project.agent(folder.scenario.agent, agent)
    one = job(folder, reference, project, turns=folder.model, sources=INCIDENT)
    results = tuple(together([partial(play, folder, one, hash_seed=seed) for seed in range(times)]))
    because = _because(results)
    if not because:
        bind(
            folder,
            {
                "schema": HELD_SCHEMA,
                "scenario": folder.scenario.id,
                "green": times,
                "files": folder.hashes(),
                "agent": reference,
                "environment": environment([result.execution for result in results], network=False),
            },
        )
    return Holding(scenario=folder.scenario.id, results=results, because=because)


def _because(results: tuple[Result, ...]) -> str:
    for result in results:
        if result.outcome is not RunOutcome.GREEN:
            return f"{result.outcome}: {result.because}"
    for other in results[1:]:
        divergence = first_divergence(results[0].execution, other.execution)
        if divergence is not None:
            return f"nondeterministic: {divergence.said}"
    return ""

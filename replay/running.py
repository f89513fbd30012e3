"""Runs a scenario against the agent as it is now, and keeps every run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from redfirst.evaluators import ConfigurationError
from redfirst.replay.kept import keep
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.playing import EVERYTHING, job, play
from redfirst.replay.process import together
from redfirst.replay.project import Project
from redfirst.replay.scenario import SCENARIO_FILE, Folder, load
from redfirst.replay.standing import Standing, standing

LIVE_RUNS = 5
"""Runs in ``tools`` mode unless another number is asked for."""


class Mode(StrEnum):
    """What answers the agent."""

    RECORDED = "recorded"
    """Model and tools from the tape: verifies a fix of the code."""
    TOOLS = "tools"
    """Tools from fixtures, the model live: verifies a fix of the code, the prompt or the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Every run of one scenario."""

    folder: Folder
    standing: Standing
    mode: Mode
    results: tuple[Result, ...]

    def count(self, outcome: RunOutcome) -> int:
        """How many runs ended so."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def outcome(self) -> RunOutcome:
        """RED when any run is, otherwise NO_VERDICT when any run has none."""
        for worst in (RunOutcome.RED, RunOutcome.NO_VERDICT):
            if self.count(worst):
                return worst
        return RunOutcome.GREEN


def run(
    path: Path,
    project: Project,
    *,
    at: float,
    agent: str | None = None,
    mode: Mode = Mode.RECORDED,
    runs: int | None = None,
    workers: int = 2,
) -> Outcome:
    """Play a scenario ``runs`` times (1 in recorded mode, ``LIVE_RUNS`` in tools mode).

    Args:
        path: the scenario's folder.
        project: where agents are configured and runs are kept.
        at: Unix seconds, for the names of the kept runs.
        agent: ``module:factory`` instead of the configured one.
        mode: what is live.
        runs: how often.
        workers: how many processes at once.

    Raises:
        ConfigurationError: the scenario, the agent's reference or the number of runs is wrong.
        CannotWrite: the runs cannot be kept.
    """
    if runs is not None and runs < 1:
        raise ConfigurationError(f"{runs} runs: give a number of at least 1.")
    folder = load(path)
    reference = project.agent(folder.scenario.agent, agent)
    times = runs or (1 if mode is Mode.RECORDED else LIVE_RUNS)
    turns = [*folder.model, *(folder.control or [])] if mode is Mode.RECORDED else None
    jobs = [
        job(
            folder,
            reference,
            project,
            turns=turns,
            sources=EVERYTHING,
            draw=draw if mode is Mode.TOOLS else 0,
        )
        for draw in range(times)
    ]
    work = [partial(play, folder, one, hash_seed=seed) for seed, one in enumerate(jobs)]
    results = tuple(together(work, workers=workers))
    for draw, result in enumerate(results):
        keep(project.home, folder.scenario.id, mode.value, result, draw=draw, at=at)
    return Outcome(folder=folder, standing=standing(folder), mode=mode, results=results)


def scenario_folders(paths: Iterable[Path]) -> list[Path]:
    """The scenario folders at or below these paths, each once, sorted within each path.

    Raises:
        ConfigurationError: a path is not there, or holds no scenario.
    """
    found: dict[Path, None] = {}
    for given in paths:
        path = given.parent if given.name == SCENARIO_FILE and given.is_file() else given
        if not path.exists():
            raise ConfigurationError(f"{path}: there is no such folder; 'redfirst freeze' writes one.")
        here: Sequence[Path] = (
            [path]
            if (path / SCENARIO_FILE).is_file()
            else sorted(inner.parent for inner in path.rglob(SCENARIO_FILE))
        )
        if not here:
            raise ConfigurationError(
                f"{path}: no {SCENARIO_FILE} at or below it; 'redfirst freeze' writes one."
            )
        found.update(dict.fromkeys(here))
    return list(found)

"""Runs a scenario against the agent as it is now, and keeps every run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from redfirst.evaluators import ConfigurationError
from redfirst.replay.answers import moved_answers
from redfirst.replay.asked import Asked, Mode
from redfirst.replay.kept import keep
from redfirst.replay.outcome import Result, RunOutcome
from redfirst.replay.playing import EVERYTHING, Turns, job, play
from redfirst.replay.process import together
from redfirst.replay.project import Project
from redfirst.replay.runner import Job
from redfirst.replay.scenario import SCENARIO_FILE, Folder, load
from redfirst.replay.standing import Standing, standing
from redfirst.replay.upkeep import Upkeep, upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Every run of one scenario."""

    folder: Folder
    standing: Standing
    upkeep: Upkeep
    asked: Asked
    results: tuple[Result, ...]
    lost: int = 0
    """Runs that a failure of the infrastructure ended and that were made again; ``results`` holds none of them."""

    @property
    def mode(self) -> Mode:
        """What answered the agent."""
        return self.asked.mode

    @property
    def gates(self) -> bool:
        """Whether its outcome counts: a draft's does not, nor for a while that of one in quarantine."""
        return self.standing.gates and self.upkeep.quarantine is None

    def count(self, outcome: RunOutcome) -> int:
        """How many runs ended so."""
        return sum(result.outcome is outcome for result in self.results)

    @property
    def valid(self) -> int:
        """How many runs have a verdict."""
        return len(self.results) - self.count(RunOutcome.NO_VERDICT)

    @property
    def outcome(self) -> RunOutcome:
        """RED when any run is, otherwise NO_VERDICT when any run has none."""
        for worst in (RunOutcome.RED, RunOutcome.NO_VERDICT):
            if self.count(worst):
                return worst
        return RunOutcome.GREEN

    @property
    def worst(self) -> Result:
        """The first run with that outcome."""
        return next(result for result in self.results if result.outcome is self.outcome)

    @property
    def moved(self) -> tuple[str, ...]:
        """Where live tools answered in another shape than the recorded one; only in ``model`` mode."""
        if self.mode is not Mode.MODEL:
            return ()
        runs = [result.run for result in self.results if result.run is not None]
        found = [said for run in runs for said in moved_answers(self.folder.scenario.tools, run)]
        return tuple(dict.fromkeys(found))

    @property
    def said(self) -> str:
        """Why, in a sentence."""
        return self.worst.because


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
    """Play one scenario: ``run_all`` of it, asked in the ordinary way.

    Raises:
        ConfigurationError: the scenario, the agent's reference or the number of runs is wrong.
        CannotWrite: the runs cannot be kept.
    """
    asked = Asked(agent=agent, mode=mode, runs=runs)
    (outcome,) = run_all([(path, asked)], project, at=at, workers=workers)
    return outcome


def run_all(
    work: Sequence[tuple[Path, Asked]],
    project: Project,
    *,
    at: float,
    workers: int = 2,
    told: Callable[[Result], None] | None = None,
) -> list[Outcome]:
    """Play scenarios, all their runs in one pool of processes, and keep each run as it ends.

    Args:
        work: the folders, each with what is asked of it.
        project: where agents are configured and runs are kept.
        at: Unix seconds, for the names of the kept runs and for what is due.
        workers: how many processes at once.
        told: called with each run as it ends, from several threads.

    Raises:
        ConfigurationError: a scenario, the agent's reference or a number is wrong; nothing has been run then.
        CannotWrite: the runs cannot be kept.
    """
    if workers < 1:
        raise ConfigurationError(f"{workers} workers: give a number of at least 1.")
    series = [_Series.of(path, project, asked, at=at) for path, asked in work]
    each = [(one, draw) for one in series for draw in range(len(one.jobs))]

    def play_one(one: _Series, draw: int) -> list[Result]:
        attempts = one.play(draw)
        for number, result in enumerate(attempts):
            keep(
                project.home,
                one.folder.scenario.id,
                one.asked.label,
                result,
                draw=draw,
                at=at,
                attempt=number,
                more=one.asked.conditions,
            )
        if told is not None:
            told(attempts[-1])
        return attempts

    played = together([partial(play_one, one, draw) for one, draw in each], workers=workers)
    return [
        one.outcome([attempts for (of, _), attempts in zip(each, played, strict=True) if of is one])
        for one in series
    ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Series:
    """The runs of one scenario that are to be made."""

    folder: Folder
    standing: Standing
    upkeep: Upkeep
    asked: Asked
    jobs: tuple[Job, ...]

    @classmethod
    def of(cls, path: Path, project: Project, asked: Asked, *, at: float) -> _Series:
        asked.require_sense()
        folder = load(path)
        reference = project.agent(folder.scenario.agent, asked.agent)
        live, turns = asked.mode.live_model, _turns(folder, asked.mode)
        jobs = tuple(
            job(
                folder,
                reference,
                project,
                turns=turns,
                sources=EVERYTHING,
                draw=draw if live else 0,
                options=None if asked.step_cap is None else {"step_cap": asked.step_cap},
                inject=asked.inject,
                live_reads=asked.mode is Mode.MODEL,
            )
            for draw in range(asked.times)
        )
        return cls(
            folder=folder, standing=standing(folder), upkeep=upkeep(path, at=at), asked=asked, jobs=jobs
        )

    def play(self, draw: int) -> list[Result]:
        """One run, made again while infrastructure ends it; all attempts, the one that counts last."""
        attempts = [play(self.folder, self.jobs[draw], hash_seed=draw)]
        while self.retries(attempts[-1]) and len(attempts) <= self.asked.infra_retries:
            attempts.append(play(self.folder, self.jobs[draw], hash_seed=draw))
        return attempts

    def retries(self, result: Result) -> bool:
        """Whether only infrastructure failed; what was injected, or stands on the tape, would fail again."""
        return result.infra and self.asked.inject is None and self.asked.mode.live_model

    def outcome(self, played: Sequence[Sequence[Result]]) -> Outcome:
        return Outcome(
            folder=self.folder,
            standing=self.standing,
            upkeep=self.upkeep,
            asked=self.asked,
            results=tuple(attempts[-1] for attempts in played),
            lost=sum(len(attempts) - 1 for attempts in played),
        )


def _turns(folder: Folder, mode: Mode) -> Turns | None:
    """The model's turns: all that were recorded, those of one run by their number alone, or none."""
    if mode is Mode.RECORDED:
        return [*folder.model, *(folder.control or [])]
    if mode is Mode.TOOLS:
        return None
    return [{"turn": turn["turn"], "response": turn["response"]} for turn in folder.control or folder.model]


def scenario_folders(paths: Iterable[Path]) -> list[Path]:
    """The scenario folders at or below these paths, each once however it is spelt, sorted within each path.

    Raises:
        ConfigurationError: a path is not there, or holds no scenario.
    """
    found: dict[Path, Path] = {}
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
        for folder in here:
            # results are kept under the folder's name, and "." has none
            found.setdefault(folder.resolve(), folder if folder.name not in ("", "..") else folder.resolve())
    return list(found.values())

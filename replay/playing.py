"""A scenario played once: the job that follows from its folder, executed and judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from redfirst.replay.outcome import Result, judged
from redfirst.replay.project import Project
from redfirst.replay.runner import Execution, Job, execute
from redfirst.replay.scenario import Folder, ResponsePart, ToolPart

Json = Any
Turns = Sequence[Mapping[str, Json]]

INCIDENT = ("incident",)
CONTROL = ("control", "incident", "authored")
EVERYTHING = ("incident", "control", "authored")


def job(
    folder: Folder,
    agent: str,
    project: Project,
    *,
    turns: Turns | None,
    sources: Sequence[str],
    draw: int = 0,
    live_off_tape: bool = False,
    options: Mapping[str, Json] | None = None,
    inject: tuple[str, str] | None = None,
    live_reads: bool = False,
) -> Job:
    """What a child needs to play a scenario.

    Args:
        folder: the scenario.
        agent: ``module:factory``.
        project: where the agent's code is found.
        turns: the model turns on the tape; ``None`` lets the model answer live.
        sources: which recordings may answer tools, the preferred first.
        draw: number of the run; each has its own random numbers.
        live_off_tape: let the model answer live where the tape ends.
        options: keyword arguments of the factory.
        inject: a tool and the ``FaultKind`` that one call of it meets.
        live_reads: let tools that are recorded as reads answer live.
    """
    scenario = folder.scenario
    request = scenario.request.model_dump(exclude_none=True)
    return Job(
        agent=agent,
        request=project.request_for(scenario.agent, request),
        world={
            "start": scenario.world.clock.seconds,
            "tick": scenario.world.clock.tick,
            "seed": scenario.world.seed + draw,
        },
        tools=tuple(_tool(name, part) for name, part in scenario.tools.items()),
        sources=tuple(sources),
        model=None if turns is None else tuple(turns),
        live_off_tape=live_off_tape,
        options=options or {},
        inject=inject,
        live_reads=live_reads,
        state=scenario.world.state,
        scenario=scenario.id,
        closed=_closed(folder, project),
        path=project.path,
        variables=project.variables_for(scenario.agent),
    )


def _closed(folder: Folder, project: Project) -> tuple[str, ...]:
    """The scenario's folder, its files where they are links to elsewhere, and the kept runs with their verdicts."""
    inside = [path for path in folder.path.iterdir() if path.is_symlink()]
    return tuple(str(path.resolve()) for path in (folder.path, *inside, project.home / "runs"))


def play(folder: Folder, one: Job, *, hash_seed: int, vary: Sequence[str] = ()) -> Result:
    """Execute a job and judge it by the scenario's checks; ``vary`` as in ``execute``."""
    execution: Execution = execute(one, hash_seed=hash_seed, timeout=folder.scenario.proof.timeout, vary=vary)
    scenario = folder.scenario
    return judged(execution, scenario.targets(), scenario.guards(), ended=scenario.ended)


def _tool(name: str, part: ToolPart) -> dict[str, Json]:
    return {
        "name": name,
        "effect": part.effect,
        "args": part.match.args,
        "ignore": part.match.ignore,
        "responses": [_response(response) for response in part.responses],
    }


def _response(part: ResponsePart) -> dict[str, Json]:
    return {
        "when": part.when,
        "after": part.after,
        "returns": part.returns,
        "failed": part.failed,
        "error": None if part.error is None else part.error.model_dump(),
        "set": part.put,
        "unset": part.unset,
        "times": None if part.times == "any" else part.times,
        "source": part.source,
    }

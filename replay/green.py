"""S3: a control that handles the same request is green, twice."""

from __future__ import annotations

from collections.abc import Iterator

from redfirst.evaluators.check import judge
from redfirst.replay import recording
from redfirst.replay.causes import parted
from redfirst.replay.derive import repaired
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.playing import CONTROL, EVERYTHING, Turns, job, play
from redfirst.replay.proving import BY_AGENT, Proving, Refused, incident, twice
from redfirst.replay.report import Refusal
from redfirst.replay.scenario import CONTROL_FILE, lines


def green_control(proving: Proving, reference: str | None) -> str:
    """The first control that is: the agent that was named, a passing run of the same task, a derived one."""
    tried: list[str] = []
    for kind, agent, turns in _candidates(proving, reference):
        one = job(proving.folder, agent, proving.project, turns=turns, sources=CONTROL)
        first, second = twice(proving.folder, one)
        divergence = parted(proving.folder, one, first, second)
        if first.outcome is RunOutcome.GREEN and second.outcome is RunOutcome.GREEN and divergence is None:
            proving.control = kind
            if kind.startswith(BY_AGENT):
                proving.folder = proving.folder.including(CONTROL_FILE, lines(turns))
            return f"the control is green twice ({kind})"
        worst = first if first.outcome is not RunOutcome.GREEN else second
        tried.append(f"{kind}: {divergence.said if divergence else f'{worst.outcome}, {worst.because}'}")
    advice = "pass --control module:factory of an agent that handles it"
    raise Refused(Refusal.CONTROL_NOT_GREEN, f"{' | '.join(tried) or 'no control could be made'}; {advice}")


def _candidates(proving: Proving, reference: str | None) -> Iterator[tuple[str, str, Turns]]:
    folder = proving.folder
    if reference is not None:
        agent = proving.project.agent(folder.scenario.agent, reference)
        yield f"{BY_AGENT}{agent}", agent, _recorded_control(proving, agent)
        return
    if folder.control is not None:
        yield "passing run", proving.agent, folder.control
    run = incident(folder)
    turns = repaired(run, judge(run, folder.scenario.targets()), folder.model)
    if turns is not None:
        yield "derived", proving.agent, turns


def _recorded_control(proving: Proving, agent: str) -> Turns:
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
    raise Refused(Refusal.CONTROL_NOT_GREEN, f"agent {agent}, model {'; model '.join(said)}")

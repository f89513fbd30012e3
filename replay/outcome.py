"""RED, GREEN or NO_VERDICT: what one execution of a scenario shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from redfirst.evaluators import CheckClass, Outcome, Source, Stop, Trajectory, Verdict
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.reading import read_runs
from redfirst.replay.runner import Execution
from redfirst.replay.stop import StopKind

Signature = frozenset[tuple[str, str, str]]
"""The failure as (check, revision, subject) triples."""


class RunOutcome(StrEnum):
    """Only an evaluated check can be red; a harness error is never red and never green."""

    RED = "RED"
    GREEN = "GREEN"
    NO_VERDICT = "NO_VERDICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One execution, judged."""

    outcome: RunOutcome
    because: str
    stop: StopKind | None = None
    """Why there is no verdict, where the harness ended the run."""
    targets: tuple[Verdict, ...] = ()
    guards: tuple[Verdict, ...] = ()
    run: Trajectory | None = None
    crashed: bool = False
    """Whether it ended with an error where production did not: what it then failed to do is no repetition."""
    execution: Execution = field(default_factory=Execution)

    @property
    def signature(self) -> Signature:
        """How the targets failed."""
        return frozenset().union(*(verdict.signature() for verdict in self.targets))

    def fails_as(self, signature: Signature) -> bool:
        """Whether it is the failure of this signature, and not that of a run that broke off."""
        return self.outcome is RunOutcome.RED and not self.crashed and self.signature >= signature

    @property
    def infra(self) -> bool:
        """Whether a failure of the infrastructure ended it: nothing is known of the agent, and a retry may tell."""
        return (
            self.outcome is RunOutcome.NO_VERDICT
            and self.run is not None
            and self.run.termination.reason is Stop.INFRA
        )

    @property
    def failed(self) -> tuple[Verdict, ...]:
        """The verdicts that make it red, targets first."""
        return tuple(v for v in (*self.targets, *self.guards) if v.outcome is Outcome.FAILED)


def judged(
    execution: Execution, targets: Sequence[Check], guards: Sequence[Check], *, ended: Stop = Stop.COMPLETED
) -> Result:
    """What an execution shows of these checks; ``ended`` is how the run in production ended."""
    if execution.stop is StopKind.OFF_TAPE and execution.unrebuilt:
        return _unrebuilt(execution, f"left the recorded way: {execution.stop_message}")
    if execution.stop is not None:
        return _none(execution, execution.stop, execution.stop_message)
    runs = [run for run in read_runs(execution.spans) if run.tool_calls or run.model_calls]
    # a thread started without the agent's context leaves a trace of its own, in production as here
    whole = [run for run in runs if run.agents] or runs
    if len(whole) != 1:
        said = (
            f"the agent left {len(whole)} runs where one was asked for"
            if whole
            else "the function that the factory made ended, or raised, without calling an instrumented agent, model or tool"
        )
        if execution.error is not None:
            said = f"{said}; it raised {execution.error['type']}: {execution.error['message']}"
        return _none(execution, StopKind.AGENT_NOT_CALLED, said)
    run = whole[0]
    if execution.unrebuilt and (execution.error is not None or run.termination.reason is Stop.ERROR):
        return _unrebuilt(execution, f"ended with an error: {run.termination.because}")
    if execution.unrebuilt and execution.turns_left:
        return _unrebuilt(
            execution,
            f"left the recorded way: {execution.turns_left} recorded model turn(s) were not asked for",
        )
    unseen = _unseen(run, execution)
    if unseen is not None:
        return _none(execution, StopKind.UNSEEN_CALL, unseen)
    hit, guard = judge(run, targets), judge(run, guards)
    outcome, because = _outcome((*hit, *guard))
    reason = run.termination.reason
    if reason is Stop.INFRA and ended is not Stop.INFRA:
        outcome = RunOutcome.NO_VERDICT
        because = (
            f"the run ended by a failure of the infrastructure, not of the agent: {run.termination.because}"
        )
    return Result(
        outcome=outcome,
        because=because,
        targets=hit,
        guards=guard,
        run=run,
        crashed=reason is Stop.ERROR and ended is not Stop.ERROR,
        execution=execution,
    )


def _unseen(run: Trajectory, execution: Execution) -> str | None:
    """A call on the spans that the replay did not answer: a run is judged only by what it was seen to do."""
    seen = Counter(
        event.get("name") for event in map(json.loads, execution.events) if event["kind"] == "tool"
    )
    ran = [call for call in run.tool_calls if call.ran]
    told = Counter(call.name for call in ran if call.source is Source.SPAN)
    for name, times in sorted((told - seen).items()):
        return (
            f"{name} stands on the run's spans {times} time(s) more than the replay answered it: "
            f"it was called for real or not at all. Put @tool on it."
        )
    for name, times in sorted((Counter(call.name for call in ran) - seen).items()):
        return (
            f"the model was given an answer of {name} {times} time(s) more than the replay answered it. Put @tool on "
            f"it; where the agent's code refuses a call, let its answer say so: 'Error: …'."
        )
    return None


def _unrebuilt(execution: Execution, then: str) -> Result:
    """What an agent does with another exception than production's says nothing of the agent."""
    return _none(
        execution,
        StopKind.CANNOT_REBUILD,
        f"in production {'; '.join(execution.unrebuilt)}. The agent was given a stand-in and {then.rstrip('.')}. Define the "
        f"exception at the top level of a module that the agent can import, and keep what its handler reads in its text.",
    )


def _none(execution: Execution, stop: StopKind, message: str) -> Result:
    return Result(outcome=RunOutcome.NO_VERDICT, because=message, stop=stop, execution=execution)


def _outcome(verdicts: Sequence[Verdict]) -> tuple[RunOutcome, str]:
    failed = [v for v in verdicts if v.outcome is Outcome.FAILED]
    if failed:
        return RunOutcome.RED, "; ".join(f"{v.check}: {v.because}" for v in failed)
    unsure = [v for v in verdicts if v.outcome is Outcome.INCONCLUSIVE]
    if unsure:
        return RunOutcome.NO_VERDICT, "; ".join(f"{v.check} is inconclusive: {v.because}" for v in unsure)
    goals = [v for v in verdicts if v.check_class is CheckClass.GOAL]
    passed = [v for v in goals if v.outcome is Outcome.PASSED]
    if not passed or len(passed) < len(goals):
        silent = ", ".join(v.check for v in goals if v.outcome is not Outcome.PASSED) or "there is none"
        return RunOutcome.NO_VERDICT, f"no goal check passed ({silent})"
    return RunOutcome.GREEN, f"{len(passed)} goal check(s) passed, none of {len(verdicts)} check(s) failed"

"""Facts: what a run had to find out before it answered, whichever tool told it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth, all_of, any_of
from redfirst.evaluators.logical import in_time
from redfirst.evaluators.rule_kinds.calls import SUCCEEDED, CallPattern, look
from redfirst.evaluators.rule_kinds.conclude import Tally, at
from redfirst.evaluators.rule_kinds.lacking import lacks_such_calls
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.trajectory import ModelCall, ToolCall, Trajectory
from redfirst.evaluators.verdict import Evidence, Finding, Verdict

VERSION = 1


@dataclass(frozen=True, slots=True)
class Told:
    """A way to learn a fact: a successful call of a tool, with this value at a path."""

    tool: str
    path: str
    must: Condition

    def by(self, call: ToolCall, run: Trajectory) -> Truth:
        """Whether the call told it."""
        if call.name != self.tool:
            return False
        fits = CallPattern((self.tool,), SUCCEEDED).status_fits(call)
        return all_of((fits, self.must.holds(look(self.path, call, run, "decided"))))

    def __str__(self) -> str:
        return f"{self.tool} ({self.path} is {self.must})"


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact and the ways to learn it."""

    id: str
    from_any: tuple[Told, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts established before the answer ÷ facts that could be judged.

    Established: a call that told it ended before the model call that answered began. Where no model call is
    known to have answered, every call came before the answer.
    """

    facts: tuple[Fact, ...]
    when: When

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run; a fact that was not established points at the root, and at what came closest."""
        refusal = self.when.refusal(run)
        if refusal is not None:
            return refusal
        lack = lacks_such_calls(run, SUCCEEDED)
        tally = Tally(lack=lack)
        calls, answer = in_time(run.tool_calls), _answering(run)
        for fact in self.facts:
            truth = any_of(
                all_of((way.by(call, run), _before(call, answer))) for call in calls for way in fact.from_any
            )
            if truth is True:
                tally.good += 1
            elif truth is None or lack:
                because = f"whether {fact.id} was established cannot be told" + (f": {lack}" if lack else "")
                tally.unknown.append(Finding(subject=fact.id, because=because, evidence=()))
            else:
                tally.violations.append(_missing(fact, calls, run))
        return tally.verdict(
            nothing="no fact is asked for", good=f"{tally.good} fact(s), each established before the answer"
        )


def _missing(fact: Fact, calls: Sequence[ToolCall], run: Trajectory) -> Finding:
    ways = " or ".join(map(str, fact.from_any))
    evidence = [Evidence(span_id=run.root_span_id, pointer="/tool_calls", note=f"nothing told {fact.id}")]
    near = [call for call in calls if any(call.name == way.tool for way in fact.from_any)]
    told = ""
    if near:
        late = next((one for one in near if any(way.by(one, run) is True for way in fact.from_any)), None)
        told = (
            "; it was told only after the answer began" if late else f"; {near[-1].name} told something else"
        )
        evidence.append(at(late or near[-1], told.removeprefix("; ")))
    because = f"{fact.id} was not established before the answer by {ways}{told}"
    return Finding(subject=fact.id, because=because, evidence=tuple(evidence))


def _answering(run: Trajectory) -> ModelCall | None:
    """The last model call that gave a text and asked for no tool."""
    for model in reversed(run.model_calls):
        if model.output is not None and model.output.content and not model.output.tool_calls:
            return model
    return None


def _before(call: ToolCall, answer: ModelCall | None) -> Truth:
    if answer is None:
        return True
    if call.end_ns and answer.start_ns:
        return call.end_ns <= answer.start_ns
    return None if call.turn is None else call.turn < answer.index

"""What is asked of a run that has a reference: each a function of one table, and the choice of the table.

Definitions: tool recall = required steps matched ÷ required steps; precision = calls matched ÷ calls made; tool
selection = calls made to tools that the reference allows ÷ calls made; argument validity = calls to such tools
with valid arguments ÷ calls to such tools; step efficiency = min(1, required steps ÷ calls made).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from redfirst.evaluators import recall
from redfirst.evaluators.kleene import any_of
from redfirst.evaluators.reference.findings import invalid_argument, surplus, unmatched
from redfirst.evaluators.reference.mode import judged_by_mode, match
from redfirst.evaluators.reference.steps import Reference
from redfirst.evaluators.reference.table import Table, tables
from redfirst.evaluators.rule_kinds.calls import SUCCEEDED, CallPattern
from redfirst.evaluators.rule_kinds.conclude import Tally, at
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, without_absence
from redfirst.evaluators.rule_kinds.task import When
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import (
    Finding,
    Verdict,
    failed,
    inconclusive,
    not_applicable,
    passed,
)

VERSION = 1
Question = Callable[[Table], Verdict]


@dataclass(frozen=True, slots=True)
class AgainstReference:
    """One question about a run, asked beside the acceptable trajectory that the run comes closest to.

    Closest: the one that the mode accepts, then the one whose required steps were all made, then the one of
    the highest F1, then the first. Where the run leaves open which that is, the trajectories must agree.
    """

    reference: Reference
    when: When
    question: Question

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run."""
        refusal = self.when.refusal(run)
        if refusal is not None:
            return refusal
        found = tables(run, self.reference)
        if len(found) == 1:
            return self.question(found[0])
        place = max(range(len(found)), key=lambda number: (*_closeness(found[number]), -number))
        verdict = self.question(found[place])
        if lacks_calls(run) is None and all(_is_certain(table) for table in found):
            return _naming(verdict, place)
        outcomes = {self.question(table).outcome for table in found}
        if outcomes == {verdict.outcome}:
            return _naming(verdict, place)
        return inconclusive(
            "which of the acceptable trajectories the run took cannot be told from what was recorded, and they"
            f" disagree; by number {place + 1}: {verdict.because}"
        )


def _is_certain(table: Table) -> bool:
    return table.certain and judged_by_mode(table) is not None


def _closeness(table: Table) -> tuple[object, ...]:
    steps, _ = table.matched(sure=True)
    perhaps, _ = table.matched(sure=False)
    required = len(table.accepted.required)
    rank = {True: 2, None: 1, False: 0}
    whole = True if steps == required else None if perhaps == required else False
    return rank[judged_by_mode(table)], rank[whole], table.closeness()


def _naming(verdict: Verdict, place: int) -> Verdict:
    return replace(verdict, because=f"{verdict.because} (beside acceptable trajectory {place + 1})")


def tool_recall(table: Table) -> Verdict:
    """Required steps matched ÷ required steps, by tool; what the arguments were ``argument_validity`` says."""
    steps = [table.accepted.steps[place] for place in table.accepted.required]
    if not steps:
        return without_absence(not_applicable("the reference requires no call"), lacks_calls(table.run))
    if table.matched(sure=True)[0] == len(steps):
        every = passed(f"each of the {len(steps)} required call(s) was made", of=(len(steps), len(steps)))
        return without_absence(every, lacks_calls(table.run))
    patterns = tuple(CallPattern(step.tools, SUCCEEDED) for step in steps)
    return recall.Recall(required=patterns, when=When())(table.run)


def precision(table: Table) -> Verdict:
    """Calls matched to a step, required or optional, ÷ calls made."""
    tally = Tally(lack=lacks_calls(table.run))
    _, tally.good = table.matched(sure=True)
    _, perhaps = table.matched(sure=False)
    tally.violations = [unmatched(call) for call in surplus(table)] if perhaps < len(table.calls) else []
    tally.unknown = [_open("matches a step")] * (perhaps - tally.good)
    return tally.verdict(
        nothing="no tool was called", good=f"each of the {tally.good} call(s) matches a step"
    )


def tool_selection(table: Table) -> Verdict:
    """Calls made whose tool the reference allows ÷ calls made."""
    tally = Tally(lack=lacks_calls(table.run))
    for attempts in table.calls:
        call = attempts[-1]
        if table.is_nameless(attempts):
            tally.unknown.append(_open("is of an allowed tool"))
        elif call.name in table.accepted.tools:
            tally.good += 1
        else:
            because = f"{describe(call)} is a call of a tool that the reference does not allow"
            tally.violations.append(Finding(subject=call.name, because=because, evidence=(at(call),)))
    return tally.verdict(nothing="no tool was called", good=f"{tally.good} call(s), all of allowed tools")


def argument_validity(table: Table) -> Verdict:
    """Calls to tools of the reference whose arguments some step of the tool accepts ÷ calls to such tools."""
    tally = Tally(lack=lacks_calls(table.run))
    for attempts in table.calls:
        call = attempts[-1]
        steps = [step for step in table.accepted.steps if call.name in step.tools]
        if table.is_nameless(attempts):
            tally.unknown.append(_open("has valid arguments"))
        elif steps:
            truth = any_of(step.arguments.fit(call) for step in steps)
            if truth:
                tally.good += 1
            elif truth is None:
                because = (
                    f"whether the arguments of {call.name} are valid cannot be told from what was recorded"
                )
                tally.unknown.append(Finding(subject=call.name, because=because, evidence=(at(call),)))
            else:
                tally.violations.append(invalid_argument(call, steps))
    return tally.verdict(
        nothing="no tool of the reference was called", good=f"{tally.good} call(s), each with valid arguments"
    )


def efficiency(table: Table) -> Verdict:
    """min(1, required steps ÷ calls made); fails for calls that no step, not even an optional one, asks for."""
    required, made, lack = len(table.accepted.required), len(table.calls), lacks_calls(table.run)
    if not required or not made:
        nothing = "no tool was called" if required else "the reference requires no call"
        return without_absence(not_applicable(nothing), lack)
    told = f"{made} call(s) made, {required} required"
    of = (min(required, made), made)
    if made <= required:
        return without_absence(passed(told, of=of), lack)
    sure, perhaps = (_allowed(table, sure=certainty) for certainty in (True, False))
    if made > perhaps:
        calls = surplus(table)
        findings = [
            Finding(subject=call.name, because=f"{describe(call)} was not needed", evidence=(at(call),))
            for call in calls
        ]
        names = ", ".join(dict.fromkeys(call.name for call in calls))
        return failed(f"{told}; not needed: {names}", findings=findings, of=of)
    if made > sure:
        return inconclusive(f"{told}; whether each call was needed cannot be told from what was recorded")
    return without_absence(passed(told, of=of), lack)


def _allowed(table: Table, *, sure: bool) -> int:
    """How many calls a run may make: one for each required step and for each optional step that was made."""
    steps, calls = table.matched(sure=sure)
    return len(table.accepted.required) + calls - steps


def _open(what: str) -> Finding:
    return Finding(
        subject="call",
        because=f"whether each call {what} cannot be told from what was recorded",
        evidence=(),
    )


QUESTIONS: Mapping[str, Question] = {
    "recall": tool_recall,
    "match": match,
    "precision": precision,
    "tool_selection": tool_selection,
    "argument_validity": argument_validity,
    "efficiency": efficiency,
}
"""Kind of check → what it asks."""

"""A sound and a broken agent on thirty tasks, each run read from its spans and scored two ways."""

from __future__ import annotations

from dataclasses import dataclass

from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.trajectory import Stop
from redfirst.evaluators.verdict import Outcome
from reproductions.shop_runs import STEP_CAP, Script, find, invoice, look, read_back, right_answer

TASKS = 30
CLEAN, AGAIN, DETOURS = 10, 1, 3
"""Of the broken agent's runs: without fault, with one call repeated, and of the looping ones those with one call more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """One run as both scores see it."""

    outcome: bool
    trajectory: bool
    calls: int
    repeats: int
    capped: bool
    tokens: int


def sound(task: int) -> Script:
    """Finds the order, looks it up, answers."""
    return Script(task, [find(task), look(task)], right_answer(task))


def broken(task: int) -> Script:
    """The same agent after a break: it asks again for what it knows, mostly until the cap ends it."""
    known = [find(task), look(task)]
    if task < CLEAN:
        return sound(task)
    if task < CLEAN + AGAIN:
        return Script(task, [*known, look(task)], right_answer(task))
    if task < CLEAN + AGAIN + DETOURS:
        known.append(invoice(task))
    return Script(task, [*known, *[look(task)] * (STEP_CAP - len(known))], None)


def scored(script: Script) -> Scored:
    """Outcome: the right answer. Trajectory: every default check that has something to judge passes."""
    run = read_back(script)
    verdicts = {verdict.check: verdict for verdict in judge(run, default_checks())}
    counted = verdicts["repeats"]
    return Scored(
        outcome=run.answer == right_answer(script.task),
        trajectory=all(
            verdict.outcome is Outcome.PASSED
            for verdict in verdicts.values()
            if verdict.outcome is not Outcome.NOT_APPLICABLE
        ),
        calls=len(run.tool_calls),
        repeats=_known(counted.denominator) - _known(counted.numerator),
        capped=run.termination.reason is Stop.STEP_CAP,
        tokens=_known(run.tokens.input) + _known(run.tokens.output),
    )


def _known(count: int | None) -> int:
    if count is None:
        raise LookupError("the spans say every count that is asked for here")
    return count

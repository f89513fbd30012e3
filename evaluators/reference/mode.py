"""The match modes: whether a run is an acceptable trajectory, its superset, its subset, or it in any order.

==============  =========================================  ============================================
mode            what must hold                             score
==============  =========================================  ============================================
``superset``    every required step is matched             required steps matched ÷ required steps
``subset``      every call is matched                      calls matched ÷ calls made
``unordered``   both                                       (steps + calls matched) ÷ (required + made)
``strict``      both, in the order of the list             the same, of the best matching in order
==============  =========================================  ============================================

A step is matched by a successful call of one of its tools with valid arguments, and each call matches one step
at most. What ``after`` demands holds in every mode. The score of the last two is an F1 where no step is optional.
"""

from __future__ import annotations

from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.reference.findings import (
    invalid_argument,
    not_made,
    out_of_order,
    surplus,
    unmatched,
)
from redfirst.evaluators.reference.steps import Mode
from redfirst.evaluators.reference.table import Table
from redfirst.evaluators.rule_kinds.conclude import and_untold, sentence
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, without_absence
from redfirst.evaluators.verdict import Finding, Verdict, failed, inconclusive, not_applicable, passed

_GAVE_UP = "the search for the best order was given up: too many calls fit too many steps"


def match(table: Table) -> Verdict:
    """Whether the run is acceptable by the mode of its reference."""
    lack = lacks_calls(table.run)
    mode = table.mode
    if lack is not None and mode != "superset":
        mode = "subset"  # calls that were not seen can only add to those that match no step
    full = table.full(mode)
    if not full:
        nothing = "no tool was called" if mode == "subset" else "the reference requires no call"
        return without_absence(not_applicable(nothing), lack)
    truth, score, perhaps = _scores(table, mode)
    if truth is None or (lack is not None and (truth or mode == "superset")):
        why = lack or (_GAVE_UP if perhaps is None else "what was recorded does not tell")
        return inconclusive(f"whether the run is acceptable ({table.mode}) cannot be told: {why}")
    if truth:
        return passed(f"the run is acceptable ({mode})", of=(full, full))
    findings = _findings(table, mode)
    untold = (perhaps or 0) - (score or 0)
    return failed(sentence(findings) + and_untold(untold), findings=findings, of=(score or 0, full - untold))


def judged_by_mode(table: Table) -> Truth:
    """Whether the mode accepts the run, by the calls that were seen."""
    return _scores(table, table.mode)[0]


def _scores(table: Table, mode: Mode) -> tuple[Truth, int | None, int | None]:
    """Whether everything is matched, the score that is certain and the score that is possible."""
    full, score = table.full(mode), table.score(mode, sure=True)
    if score == full:
        return True, score, score
    perhaps = table.score(mode, sure=False)
    return (False if score is not None and perhaps is not None and perhaps < full else None), score, perhaps


def _findings(table: Table, mode: Mode) -> list[Finding]:
    """What is wrong: steps that are not matched, calls that match none, arguments, order."""
    pairs, steps = table.pairs(), table.accepted.steps
    last = {step: table.calls[place][-1] for step, place in pairs.items()}
    found: list[Finding] = []
    if mode != "subset":
        found += [not_made(steps[place], table) for place in table.accepted.required if place not in pairs]
    if mode != "superset":
        found += [unmatched(call) for call in surplus(table)]
    counted = [step for step in pairs if mode != "superset" or not steps[step].optional]
    found += [
        invalid_argument(last[step], [steps[step]])
        for step in counted
        if pairs[step] not in table.right[step]
    ]
    found += [
        out_of_order(steps[other], last[other], steps[one], last[one])
        for one, other in sorted(table.accepted.order(mode))
        if one in counted and other in counted and not table.came(pairs[one], pairs[other], sure=False)
    ]
    return found

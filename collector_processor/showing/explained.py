"""For each check: why it failed or did not, what it looked at, and what it asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from redfirst.collector_processor.showing.columns import ROOM, Line, brief, paragraph, row
from redfirst.collector_processor.showing.gaps import grouped
from redfirst.collector_processor.showing.view import View
from redfirst.evaluators.trajectory import Completeness, Gap, Trajectory
from redfirst.evaluators.verdict import Outcome

_LOOKED_AT: Mapping[str, str] = {
    "repeats": "every call that ran, against the calls before it",
    "termination": "why the run ended",
    "tool_errors": "how each call that ran ended",
    "recovery": "each tool error, and later calls of the tool",
    "arguments": "the arguments of each call, against the schema of its tool",
    "unverified_claim": "ids, numbers and dates in the answer, against all that was said and answered before",
    "ungrounded_argument": "ids in the arguments of each call, against all that was said and answered before",
    "outcome": "what the run came to",
    "python": "the run, by a function",
    "recall": "the calls that the task requires",
    "recall.facts": "what successful calls answered before the run did",
    "match": "the calls made, against the steps of the reference",
    "precision": "the calls made, against the steps of the reference",
    "tool_selection": "the tools called, against those of the reference",
    "argument_validity": "the arguments of each call of a tool of the reference",
    "efficiency": "how many calls were made, and how many the reference requires",
    "learned.recall": "the calls that passing runs of this kind have in common",
    "learned.tool_selection": "the tools called, against those that passing runs of this kind called",
    "state.required": "the last state that the run reported",
    "state.collateral": "what changed between the first and the last state reported",
    "require_before": "each call the rule is about, and what ended before it",
    "forbid": "each call that the rule forbids",
    "max_calls": "how often the calls of the rule were made",
}
_NEEDS: Mapping[str, str] = {
    "repeats": r"tool_calls(\[.*\.(name|arguments|result|status))?$",
    "termination": r"answer$",
    "tool_errors": r"tool_calls(\[.*\.status)?$",
    "recovery": r"tool_calls(\[.*\.(name|status))?$",
    "arguments": r"tool_calls(\[.*\.(name|arguments))?$|model_calls",
    "unverified_claim": r"tool_calls(\[.*\.(arguments|result))?$|model_calls|request$|answer$",
    "ungrounded_argument": r"tool_calls(\[.*\.(arguments|result))?$|model_calls|request$",
    "outcome": r"answer$|request$|states",
    "recall": r"tool_calls|request$",
    "state.required": r"states|request$",
    "state.collateral": r"states|request$",
}
"""The facts that a kind hangs on, as ``coverage`` names them; every other kind hangs on calls."""
_OF_CALLS = r"tool_calls"


def explained(view: View) -> list[Line]:
    """Every check with its reason, first those that flag the run, then the others that failed."""
    order = (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.PASSED, Outcome.NOT_APPLICABLE)
    colours = {Outcome.FAILED: "red", Outcome.INCONCLUSIVE: "yellow", Outcome.PASSED: "green"}
    roles = view.roles()
    pairs = sorted(
        zip(view.checks, view.verdicts, strict=True),
        key=lambda pair: (order.index(pair[1].outcome), not pair[1].flags),
    )
    lines: list[Line] = []
    for check, verdict in pairs:
        colour = colours.get(verdict.outcome, "dim")
        score = f", {verdict.numerator} of {verdict.denominator} right" if verdict.denominator else ""
        told = (f"{verdict.outcome.value.replace('_', ' ')}{score}", colour)
        lines += [()] if lines else []
        lines += row("check", check.id, told, style=f"{colour} bold".removeprefix("dim "))
        lines += paragraph("because", verdict.because)
        kind = str(check.spec.get("kind", check.id))
        asked = {key: value for key, value in check.spec.items() if key not in ("kind", "id", "severity")}
        told_of = (
            f"{_LOOKED_AT.get(kind, kind)}{'; ' if asked else ''}{brief(asked, 4 * ROOM) if asked else ''}"
        )
        lines += paragraph("looks at", told_of, style="dim", most=4)
        for fact, why in grouped(_lacking(view.run, kind)):
            lines += row("lacks", f"{fact}: {why}", style="yellow", label_style="yellow")
        role = f"{roles[check.id]}, " if check.id in roles else ""
        meant = f"{role}{check.check_class.value}, severity {check.severity.name.lower()}, revision {check.revision}"
        lines += row("class", meant, style="dim")
    return lines


def _lacking(run: Trajectory, kind: str) -> Iterator[Gap]:
    """What the run lacks of what such a check looks at."""
    if run.completeness is Completeness.INCOMPLETE:
        yield Gap(fact="spans", because="some that others name as their parent are not there")
    needs = re.compile(_NEEDS.get(kind, _OF_CALLS))
    yield from (gap for gap in run.coverage.missing if needs.match(gap.fact))

"""A summary for a pull request, in GitHub's Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from redfirst.collector_processor.reliability.tables import Table, as_markdown
from redfirst.collector_processor.summaries.case import Case
from redfirst.collector_processor.terminal import fit
from redfirst.replay.outcome import RunOutcome

_MARK = {RunOutcome.RED: "🔴", RunOutcome.NO_VERDICT: "⚪", RunOutcome.GREEN: "🟢"}
_ORDER = tuple(_MARK)
_LONGEST = 300


def markdown(cases: Sequence[Case], tally: str) -> bytes:
    """A table of the cases, the worst first and what does not count last, under the counts of them all."""
    ordered = sorted(cases, key=lambda case: (not case.counted, _ORDER.index(case.outcome)))
    table = Table(
        title=f"redfirst: {tally}",
        header=("scenario", "outcome", "green runs", "why"),
        rows=[_row(case) for case in ordered],
        notes=[f"{case.name}: {note}" for case in cases for note in case.notes],
        left=frozenset({0, 1, 3}),
    )
    return ("\n".join(as_markdown([table])) + "\n").encode("utf-8", "backslashreplace")


def _row(case: Case) -> tuple[str, str, str, str]:
    aside = f", not counted: {case.set_aside}" if case.set_aside else ""
    green, valid = case.runs
    return (
        case.name,
        f"{_MARK[case.outcome]} {case.outcome.value}{aside}",
        f"{green} of {valid}",
        fit(case.because, _LONGEST),
    )

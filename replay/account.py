"""A red run in words: the rule, the subject, and the calls around the witness."""

from __future__ import annotations

from collections.abc import Iterator

from redfirst.evaluators import ToolCall, Trajectory, Verdict
from redfirst.evaluators.canonical import canonical_text
from redfirst.replay.outcome import Result

AROUND = 2
"""Calls shown before and after a witness."""


def account(result: Result) -> Iterator[str]:
    """The lines of a failure report."""
    roles = {id(verdict): "target" for verdict in result.targets}
    for verdict in result.failed:
        yield f"{verdict.check} ({roles.get(id(verdict), 'guard')}): {verdict.because}"
        for finding in verdict.findings:
            yield f"  subject: {finding.subject}"
        if result.run is not None:
            yield from _events(result.run, verdict)
    if result.execution.error is not None:
        yield f"the agent raised {result.execution.error['type']}: {result.execution.error['message']}"


def _events(run: Trajectory, verdict: Verdict) -> Iterator[str]:
    accused = {item.span_id for item in verdict.evidence}
    places = [place for place, call in enumerate(run.tool_calls) if call.span_id in accused]
    shown = sorted({near for place in places for near in range(place - AROUND, place + AROUND + 1)})
    for place in shown:
        if 0 <= place < len(run.tool_calls):
            mark = "→" if place in places else " "
            yield f"  {mark} {place + 1}. {call_line(run.tool_calls[place])}"


def call_line(call: ToolCall) -> str:
    """One call in a line."""
    arguments = "?" if call.arguments is None else canonical_text(call.arguments)
    return f"{call.name} {arguments} {call.status.value}"

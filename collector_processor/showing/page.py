"""One run, or the incident of a scenario, as a page that a person reads in a minute."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from redfirst.collector_processor.showing.columns import (
    GUTTER,
    ROOM,
    Line,
    brief,
    columns,
    cut,
    labelled,
    listed,
    paragraph,
    row,
)
from redfirst.collector_processor.showing.explained import explained
from redfirst.collector_processor.showing.gaps import grouped
from redfirst.collector_processor.showing.origins import origin_lines
from redfirst.collector_processor.showing.scenario import scenario_lines, tool_lines
from redfirst.collector_processor.showing.timeline import timeline
from redfirst.collector_processor.showing.view import View
from redfirst.collector_processor.showing.witnesses import Witnesses
from redfirst.collector_processor.terminal import clean, counted, near
from redfirst.evaluators.record import errors_of, repeats_of
from redfirst.evaluators.trajectory import Completeness, Stop, Trajectory
from redfirst.evaluators.verdict import Outcome, Verdict, flagged

_ID = 12
"""Characters of a run's id in a command; ``freeze`` takes the beginning of one."""


def page(view: View, *, explain: bool = False) -> list[Line]:
    """Every line, from the header to the next command."""
    run = view.run
    witnesses = Witnesses(run, view.verdicts)
    parts: list[list[Line]] = [
        scenario_lines(view.folder, view.standing) if view.folder else [],
        _header(view, witnesses),
        _request(run, witnesses),
        timeline(run, witnesses) or _nothing(run),
        _answer(run, witnesses),
        explained(view) if explain else _verdicts(view),
        origin_lines(view.origins),
        _coverage(run, view.verdicts),
        tool_lines(view.folder.scenario) if view.folder else [],
        _next(view),
    ]
    lines: list[Line] = []
    for part in parts:
        if part:
            lines += [*([()] if lines else []), *part]
    return lines


def _header(view: View, witnesses: Witnesses) -> list[Line]:
    run, verdicts = view.run, view.verdicts
    guilty = ", ".join(verdict.check for verdict in verdicts if verdict.flags)
    traces = [(f"{len(run.trace_ids)} traces", "dim")] if len(run.trace_ids) > 1 else []
    lines = row(view.folder.scenario.kind if view.folder else "run", run.run_id, *traces)
    if view.url:  # never cut: half an address leads nowhere
        lines.append((("at".ljust(GUTTER), "dim"), (clean(view.url), "")))
    if guilty:
        lines += paragraph("FLAGGED", guilty, style="red bold", label_style="red bold", most=2)
    else:
        lines += row("flagged", "no", style="green")
    if view.cover is not None:
        lines += paragraph("scenario", f"{view.cover.said}: it fails again", most=2)
    if view.labels:
        lines += row("labelled", labelled(view.labels), least=ROOM)
    names = ", ".join(run.agents) or "not named"
    version = f" {run.agent_version}" if run.agent_version else ""
    models = f" on {', '.join(run.models)}" if run.models else ""
    lines += row("agent", f"{names}{version}{models}")
    lines += row("when", _when(run))
    lines += row("work", _work(run, verdicts))
    if view.cost:
        lines += paragraph("cost", view.cost, most=2)
    end = run.termination
    at_cap = f" of {end.cap}" if end.cap is not None else ""
    good = end.reason in (Stop.COMPLETED, Stop.HANDOFF, Stop.REFUSED)
    why = f": {end.because}" if end.because else ""
    style = "" if good else "yellow" if end.reason in (Stop.UNKNOWN, Stop.PARKED, Stop.INFRA) else "red"
    lines += row(
        "ended", f"{end.reason.value}{at_cap}{why}", *witnesses.parts["termination"], style=style, least=ROOM
    )
    return lines


def _when(run: Trajectory) -> str:
    if not run.start_ns or any(gap.fact == "times" for gap in run.coverage.missing):
        return "not recorded"
    at = datetime.fromtimestamp(min(run.start_ns, 2**63) // 10**9, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC, for {_span(max(0, run.end_ns - run.start_ns))}"


def _span(ns: int) -> str:
    seconds = ns / 1e9
    if seconds < 1:
        return f"{ns / 1e6:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def _work(run: Trajectory, verdicts: Sequence[Verdict]) -> str:
    unknown = {gap.fact for gap in run.coverage.missing}
    turns = "turns not recorded" if "model_calls" in unknown else counted(len(run.model_calls), "turn")
    calls = "calls not recorded" if "tool_calls" in unknown else counted(len(run.tool_calls), "call")
    counts = {"failed": errors_of(run), "repeated": repeats_of(verdicts)}
    trouble = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
    used = run.tokens
    if used.input is None and used.output is None:
        tokens = "tokens not recorded"
    else:
        tokens = f"{_number(used.input)} tokens in, {_number(used.output)} out"
    return f"{turns}, {calls}{f' ({trouble})' if trouble else ''}, {tokens}"


def _number(value: int | None) -> str:
    return "?" if value is None else f"{value:,}"


def _request(run: Trajectory, witnesses: Witnesses) -> list[Line]:
    said = [message for message in run.history or () if message.role != "system"]
    last = max((place for place, message in enumerate(said) if message.role == "user"), default=0)
    lines: list[Line] = []
    if last:
        earlier = [message.content for message in said[:last] if message.role == "user" and message.content]
        quoted = f", the user said {brief(earlier[-1], ROOM)}" if earlier else ""
        lines += row("before", f"{counted(last, 'message')}{quoted}", style="dim")
    text = "(not recorded)" if run.request is None else run.request
    lines += paragraph("request", text, most=5, style="" if run.request else "dim")
    for mark in witnesses.parts["request"]:
        lines += row("", "", mark)
    return lines


def _nothing(run: Trajectory) -> list[Line]:
    if run.model_calls:  # one turn, and what it said is the answer
        return []
    return row("", "(no turn of a model and no call was recorded)", style="dim")


def _answer(run: Trajectory, witnesses: Witnesses) -> list[Line]:
    marks = witnesses.parts["answer"]
    if run.answer is None:
        unread = any(gap.fact == "answer" for gap in run.coverage.missing)
        return row("answer", "(not recorded)" if unread else "(none)", *marks, style="dim")
    lines = paragraph("answer", run.answer, most=8)
    for mark in marks:
        lines += row("", "", mark)
    return lines


def _verdicts(view: View) -> list[Line]:
    roles = view.roles()
    lines: list[Line] = []
    for verdict in sorted(view.verdicts, key=lambda one: not one.flags):
        if verdict.outcome is Outcome.FAILED:
            style = "red" if verdict.flags else "yellow"
            kind = roles.get(verdict.check, "" if verdict.flags else verdict.severity.name.lower())
            tags = [(kind, "dim")] if kind else []
            lines += row("failed", verdict.check, *tags, style=f"{style} bold", label_style=style)
            lines += paragraph("", verdict.because, most=6)
    for verdict in view.verdicts:
        if verdict.outcome is Outcome.INCONCLUSIVE:
            lines += row("unclear", f"{verdict.check} is inconclusive", style="yellow", label_style="yellow")
            lines += paragraph("", verdict.because, most=4)
    names = {
        o: [v.check for v in view.verdicts if v.outcome is o]
        for o in (Outcome.PASSED, Outcome.NOT_APPLICABLE)
    }
    quiet = names[Outcome.NOT_APPLICABLE]
    beside = f"; {len(quiet)} not applicable" if quiet else ""
    if names[Outcome.PASSED] or quiet:
        told = listed(names[Outcome.PASSED], ROOM - len(beside)) or "none"
        lines += row("passed", told + beside, style="dim")
    return lines


def _coverage(run: Trajectory, verdicts: Iterable[Verdict]) -> list[Line]:
    lines: list[Line] = []
    if run.completeness is Completeness.INCOMPLETE:
        told = "spans: some that others name as their parent are not there"
        lines += row("missing", told, style="yellow", label_style="yellow")
    for label, gaps in (("missing", run.coverage.missing), ("rebuilt", run.coverage.reconstructed)):
        style = "yellow" if label == "missing" else "dim"
        for fact, because in grouped(gaps):
            lines += row(label, f"{fact}: {because}", style=style, label_style=style)
    if blind := [verdict.check for verdict in verdicts if verdict.blind]:
        lines += paragraph(
            "blind", f"{', '.join(blind)}: could not fail here, whatever the agent did", most=3
        )
    return lines


def _next(view: View) -> list[Line]:
    if view.folder is not None:
        words = ["redfirst", "run" if view.standing.gates else "prove", str(view.folder.path)]
    elif view.cover is not None:
        words = ["redfirst", "run" if view.cover.proven else "prove", near(view.cover.path)]
    elif flagged(view.verdicts):
        words = ["redfirst", "freeze", view.run.run_id[:_ID], *view.sources]
    else:
        return []
    return _command(words)


def _command(words: Sequence[str]) -> list[Line]:
    """A command that can be pasted; one that does not fit is continued on the next line, never cut."""
    lines, line = [], ""
    for word in map(shlex.quote, words):
        if line and columns(f"{line} {word} \\") > ROOM:
            lines.append(f"{line} \\")
            line = "  "
        line += word if not line.strip() else f" {word}"
    lines.append(line)
    if any(columns(text) > ROOM or not text.isprintable() for text in lines):
        told = f"{' '.join(words[:2])} {cut(words[2], 40)}"
        lines = [f"{told} (with the same options)" if len(words) > 3 else told]
    return [
        (("next     " if not place else " " * GUTTER, "dim"), (text, "bold"))
        for place, text in enumerate(lines)
    ]

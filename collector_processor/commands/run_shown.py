"""What ``redfirst run`` prints: each scenario, what became of injected faults, and the table of step caps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from redfirst.collector_processor.commands.scenario_options import show_notes, upkeep_record
from redfirst.collector_processor.reliability.tables import Table, as_text
from redfirst.collector_processor.terminal import Screen, counted
from redfirst.evaluators.statistics.proportions import wilson
from redfirst.replay.account import account
from redfirst.replay.asked import Mode
from redfirst.replay.capping import CapReading, Caps
from redfirst.replay.injecting import Injected, Reading, Recovery, not_put_in
from redfirst.replay.kept import row
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.running import Outcome
from redfirst.replay.suite import Suite

_STYLE = {RunOutcome.GREEN: "green", RunOutcome.RED: "red", RunOutcome.NO_VERDICT: "yellow"}
_READINGS = {
    CapReading.FAILS: "more steps do not help, it ends by itself and is RED",
    CapReading.FITS: "no run was stopped",
    CapReading.SLOW: "it ends when it may take more steps",
    CapReading.STUCK: "more steps do not help",
    CapReading.MIXED: "some runs were stopped at the highest cap, some were not",
    CapReading.UNCLEAR: "under one cap no run has a verdict",
}


def show_outcome(screen: Screen, outcome: Outcome) -> None:
    """One scenario's runs."""
    kind, total, valid = outcome.outcome, len(outcome.results), outcome.valid
    screen.line(f"{kind.value:<10} {outcome.folder.scenario.id}", _STYLE[kind], "bold")
    if not outcome.standing.proven:
        told = (
            outcome.standing.because if outcome.standing.held else f"not proven: {outcome.standing.because}"
        )
        screen.para(told, "yellow", indent="  ", hang="      ")
    show_notes(screen, outcome.upkeep)
    if total > 1 and valid:
        green = outcome.count(RunOutcome.GREEN)
        share = wilson(green, valid)
        lost = f", {total - valid} without a verdict" if valid < total else ""
        screen.line(f"  green {green} of {valid} runs, Wilson 95 % [{share.low:.2f}, {share.high:.2f}]{lost}")
    worst = outcome.worst
    if kind is RunOutcome.RED:
        for text in account(worst):
            screen.para(text, indent="  ", hang="      ")
    else:
        screen.para(worst.because, indent="  ")
    execution = worst.execution
    if outcome.mode is Mode.RECORDED and kind is not RunOutcome.NO_VERDICT:
        live = execution.live_decisions
        told = f": {'; '.join(live[:3])}" if live else ""
        screen.para(
            f"decisions: {execution.tape_decisions} by the tape, {len(live)} live{told}",
            "dim",
            indent="  ",
            hang="    ",
        )
    for said in outcome.moved:
        screen.para(f"a live answer moved: {said}", "yellow", indent="  ", hang="      ")
    if outcome.lost:
        screen.line(f"  {counted(outcome.lost, 'run')} lost to infrastructure and made again", "dim")


def show_injected(screen: Screen, baseline: Outcome, injected: Sequence[Injected]) -> None:
    """What became of the faults in one scenario: a row for each tool, a column for each kind; or why none is in."""
    if (why := not_put_in(baseline)) is not None:
        screen.line(f"  no fault put in: {why}", "yellow")
        return
    kinds = list(dict.fromkeys(one.kind for one in injected))
    tools = list(dict.fromkeys(one.tool for one in injected))
    cells = {(one.tool, one.kind): one.recovery.value for one in injected}
    table = Table(
        header=("one fault at", *(kind.value for kind in kinds)),
        rows=[(tool, *(cells[tool, kind] for kind in kinds)) for tool in tools],
        left=frozenset(range(len(kinds) + 1)),
    )
    for line in as_text([table]):
        screen.line(line)
    told: dict[tuple[str, Reading], list[str]] = {}
    for one in injected:
        if one.recovery.outcome in (RunOutcome.RED, RunOutcome.NO_VERDICT):
            told.setdefault((one.tool, one.reading), []).append(one.kind.value)
    for (tool, reading), names in told.items():
        said = f"{tool}, {', '.join(names)}: {reading.recovery.value}, {reading.because}"
        screen.para(said, "dim", indent="    ", hang="        ")


def recovered(suite: Suite, injected: Sequence[Injected]) -> str:
    """The faults in a line, and where none was put in."""
    put_in = [one.recovery for one in injected if one.recovery is not Recovery.NOT_MET]
    told = [
        f"{put_in.count(kind)} {word}"
        for kind, word in (
            (Recovery.RECOVERS, "recovered"),
            (Recovery.TELLS, "told the user"),
            (Recovery.FAILS, "failed"),
            (Recovery.BREAKS_OFF, "broke off"),
            (Recovery.UNNOTICED, "unnoticed"),
            (Recovery.NO_VERDICT, "without a verdict"),
            (Recovery.UNCLEAR, "unclear"),
        )
        if kind in put_in
    ]
    reasons = Counter(why for one in suite.outcomes if (why := not_put_in(one)) is not None)
    spared = "".join(f"; not put in at {counted(n, 'scenario')}: {why}" for why, n in reasons.items())
    return f"{counted(len(put_in), 'fault')} put in{': ' if told else ''}{', '.join(told)}{spared}"


def show_caps(screen: Screen, found: Sequence[Caps]) -> None:
    """One table: is the agent slow or stuck?"""
    caps = [one.cap for one in found[0].under]
    table = Table(
        title="green runs of those with a verdict, and runs cut at the cap",
        header=("scenario", *(f"cap {cap}" for cap in caps), "reading"),
        rows=[
            (
                one.scenario,
                *(f"{u.green}/{u.valid}, {u.stopped} cut" if u.valid else "no verdict" for u in one.under),
                one.reading.value,
            )
            for one in found
        ],
        left=frozenset({0, len(caps) + 1}),
    )
    for line in as_text([table]):
        screen.line(line)
    for reading in dict.fromkeys(one.reading for one in found):
        screen.line(f"  {reading.value}: {_READINGS[reading]}", "dim")
    for one in found:
        if one.reading is CapReading.FAILS:
            screen.para(f"{one.scenario}: {one.because}", "dim", indent="    ", hang="        ")


def outcome_records(suite: Suite, injected: Sequence[Injected]) -> Iterator[dict[str, object]]:
    """Every run as JSON data."""
    for outcome in (*suite.outcomes, *(one.outcome for one in injected)):
        reading = next((one.reading for one in injected if one.outcome is outcome), None)
        reading = None if reading is None or reading.recovery is Recovery.NOT_MET else reading
        for draw, result in enumerate(outcome.results):
            yield {
                **row(outcome.folder.path.name, outcome.asked.label, result, draw),
                "proven": outcome.standing.proven,
                "counted": suite.counts(outcome),
                "step_cap": outcome.asked.step_cap,
                "inject": None if outcome.asked.inject is None else list(outcome.asked.inject),
                "injected": result.execution.injected,
                "moved": list(outcome.moved),
                "recovery": None if reading is None else reading.recovery.name.lower(),
                "recovery_because": None if reading is None else reading.because,
                **upkeep_record(outcome.upkeep),
            }

"""``redfirst run``: the scenarios against the agent as it is now."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from redfirst.collector_processor.terminal import Screen, counted
from redfirst.evaluators.statistics.proportions import wilson
from redfirst.replay.account import account
from redfirst.replay.kept import row
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.project import load_project
from redfirst.replay.running import Mode, Outcome, run, scenario_folders

_STYLE = {RunOutcome.GREEN: "green", RunOutcome.RED: "red", RunOutcome.NO_VERDICT: "yellow"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "paths", nargs="*", metavar="DIR", help="scenario folders (default: all of the project)"
    )
    parser.add_argument("--agent", metavar="MODULE:FACTORY", help="the agent, instead of the configured one")
    parser.add_argument(
        "--mode", choices=[mode.value for mode in Mode], default="recorded", help="what answers the agent"
    )
    parser.add_argument(
        "-n", "--runs", type=int, metavar="N", help="runs of each (default: 1 recorded, 5 tools)"
    )
    parser.add_argument(
        "--draft", action="store_true", help="let scenarios that are not proven count as well"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per run on stdout")


def execute(options: argparse.Namespace) -> int:
    """Run each scenario. Any RED → 1, else any run without a verdict → 3, else 0; drafts do not count."""
    project = load_project(Path.cwd())
    paths = [Path(path) for path in options.paths] or [project.root / project.settings.scenarios]
    screen = Screen()
    outcomes: list[RunOutcome] = []
    drafts = 0
    for folder in scenario_folders(paths):
        outcome = run(
            folder, project, at=time.time(), agent=options.agent, mode=Mode(options.mode), runs=options.runs
        )
        if outcome.standing.proven or options.draft:
            outcomes.append(outcome.outcome)
        else:
            drafts += 1
        if options.json:
            for draw, result in enumerate(outcome.results):
                print(
                    json.dumps(
                        {
                            **row(folder.name, outcome.mode.value, result, draw),
                            "proven": outcome.standing.proven,
                        }
                    )
                )
        else:
            show(screen, outcome)
    if not options.json:
        summary = ", ".join(f"{outcomes.count(kind)} {kind.value}" for kind in RunOutcome)
        screen.line(f"{summary}; {counted(drafts, 'draft')} not counted")
    if RunOutcome.RED in outcomes:
        return 1
    return 3 if RunOutcome.NO_VERDICT in outcomes or not outcomes else 0


def show(screen: Screen, outcome: Outcome) -> None:
    """One scenario's runs."""
    kind, total = outcome.outcome, len(outcome.results)
    screen.line(f"{kind.value:<10} {outcome.folder.scenario.id}", _STYLE[kind], "bold")
    if not outcome.standing.proven:
        screen.para(f"not proven: {outcome.standing.because}", "yellow", indent="  ", hang="      ")
    valid = total - outcome.count(RunOutcome.NO_VERDICT)
    if total > 1 and valid:
        green = outcome.count(RunOutcome.GREEN)
        share = wilson(green, valid)
        lost = f", {total - valid} without a verdict" if valid < total else ""
        screen.line(f"  green {green} of {valid} runs, Wilson 95 % [{share.low:.2f}, {share.high:.2f}]{lost}")
    worst = next(result for result in outcome.results if result.outcome is kind)
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

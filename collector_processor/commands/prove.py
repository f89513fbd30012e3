"""``redfirst prove``: execute the agent and see it fail for the reason it failed in production."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from redfirst.collector_processor.commands.scenario_options import (
    add_folders,
    folders,
    show_notes,
    upkeep_record,
)
from redfirst.collector_processor.terminal import Screen
from redfirst.replay.holding import Holding, hold
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove
from redfirst.replay.report import Level, Refusal, Report, Step
from redfirst.replay.scenario import load
from redfirst.replay.standing import Standing, standing
from redfirst.replay.upkeep import upkeep


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_folders(parser)
    parser.add_argument(
        "--control", metavar="MODULE:FACTORY", help="an agent that passes, to be recorded as the control"
    )
    parser.add_argument(
        "--level",
        choices=[level.value for level in Level],
        default="recorded",
        help="recorded: the model's turns come from the tape; live: the model itself answers, in N runs "
        "(default: recorded)",
    )
    parser.add_argument("-n", "--runs", type=int, metavar="N", help="live runs (default: the scenario's, 5)")
    parser.add_argument("--again", action="store_true", help="also prove what is proven already")
    parser.add_argument("--json", action="store_true", help="one JSON object per scenario on stdout")


def execute(options: argparse.Namespace) -> int:
    """Prove each scenario. 0 all proven, 1 one did not fail or failed for another reason, 3 nothing can be said."""
    project = load_project(Path.cwd())
    screen = Screen()
    codes: list[int] = []
    for folder in folders(options, project):
        before, kept = standing(load(folder)), upkeep(folder, at=time.time())
        if not options.json:
            screen.line(folder.name, "bold")
            show_notes(screen, kept)
        if load(folder).scenario.kind == "sample":
            holding = hold(folder, project, agent=options.agent, runs=options.runs)
            codes.append(holding.exit_code)
            show_holding(screen, holding, as_json=options.json)
            continue
        if _stands(options, before):
            codes.append(0)
            if options.json:
                print(json.dumps({**standing_record(folder.name, before), **upkeep_record(kept)}))
            else:
                show_standing(screen, before)
            continue
        report = prove(
            folder,
            project,
            agent=options.agent,
            control=options.control,
            level=Level(options.level),
            runs=options.runs,
            told=None if options.json else lambda step: show_step(screen, step),
        )
        codes.append(report.exit_code)
        if options.json:
            print(json.dumps({**report_record(report), **upkeep_record(kept)}))
        else:
            show_end(screen, report, before)
    return 1 if 1 in codes else max(codes)


def _stands(options: argparse.Namespace, before: Standing) -> bool:
    """Whether there is nothing to prove: these bytes are proven, and no other agent or level is asked for."""
    asked = options.again or options.agent or options.control
    return before.proven and not asked and options.level in (Level.RECORDED, before.level)


def show_standing(screen: Screen, before: Standing) -> None:
    """A scenario that is proven already."""
    level = before.level.value if before.level is not None else ""
    screen.line(f"  STANDS ({level})", "green", "bold")
    screen.para(f"{before.agent} was seen to fail it; --again proves it anew", "dim", indent="  ")


def standing_record(scenario: str, before: Standing) -> dict[str, object]:
    """The same as JSON data."""
    return {
        "scenario": scenario,
        "level": None if before.level is None else before.level.value,
        "proven": True,
        "stands": True,
        "agent": before.agent,
        "signature": sorted(list(item) for item in before.signature),
        "exit_code": 0,
    }


def show_step(screen: Screen, step: Step) -> None:
    """One step as it ends."""
    mark, style = ("ok", "green") if step.ok else ("no", "red")
    screen.para(step.said, indent=f"  {step.name} ", hang=" " * 8, mark=(mark, style))


def show_end(screen: Screen, report: Report, before: Standing) -> None:
    """The outcome of a proof; ``before`` tells which agent an earlier one was made with."""
    if report.refusal is None:
        screen.line(f"  PROVEN ({report.level.value})", "green", "bold")
    else:
        screen.line(f"  REFUSED: {report.refusal.value} (exit {report.exit_code})", "yellow", "bold")
        other = before.agent is not None and before.agent != report.agent
        if other and report.refusal is not Refusal.TRACE_NOT_RED:  # which no agent has a part in
            screen.para(
                f"the agent that was seen to fail it: --agent {before.agent}", indent="  ", hang="      "
            )


def show_holding(screen: Screen, holding: Holding, *, as_json: bool) -> None:
    """What the replays of a sample showed; the word proven does not stand in it."""
    if as_json:
        print(json.dumps(holding_record(holding)))
    elif holding.held:
        screen.line(
            f"  HELD: a sample, green in {len(holding.results)} replays; guards only", "green", "bold"
        )
    else:
        screen.para(f"NOT HELD (exit {holding.exit_code}): {holding.because}", "yellow", indent="  ")


def holding_record(holding: Holding) -> dict[str, object]:
    """The replays of a sample as JSON data."""
    return {
        "scenario": holding.scenario,
        "kind": "sample",
        "held": holding.held,
        "because": holding.because,
        "exit_code": holding.exit_code,
        "runs": [result.outcome.value for result in holding.results],
    }


def report_record(report: Report) -> dict[str, object]:
    """The report as JSON data."""
    execution = report.red.execution if report.red is not None else None
    return {
        "scenario": report.scenario,
        "level": report.level.value,
        "proven": report.proven,
        "stands": False,
        "agent": report.agent,
        "refusal": None if report.refusal is None else report.refusal.value,
        "because": report.because,
        "exit_code": report.exit_code,
        "control": report.control or None,
        "signature": sorted(list(item) for item in report.signature),
        "decisions_live": None if execution is None else len(execution.live_decisions),
        "decisions_tape": None if execution is None else execution.tape_decisions,
        "runs": [result.outcome.value for result in report.runs],
        "steps": [{"step": step.name, "ok": step.ok, "said": step.said} for step in report.steps],
    }

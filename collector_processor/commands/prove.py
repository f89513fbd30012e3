"""``redfirst prove``: execute the agent and see it fail for the reason it failed in production."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from redfirst.collector_processor.terminal import Screen
from redfirst.replay.project import load_project
from redfirst.replay.proof import prove
from redfirst.replay.report import Level, Report, Step
from redfirst.replay.running import scenario_folders


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "paths", nargs="*", metavar="DIR", help="scenario folders (default: all of the project)"
    )
    parser.add_argument(
        "--agent", metavar="MODULE:FACTORY", help="the agent under proof, instead of the configured one"
    )
    parser.add_argument(
        "--control", metavar="MODULE:FACTORY", help="an agent that passes, to be recorded as the control"
    )
    parser.add_argument(
        "--level", choices=[level.value for level in Level], default="recorded", help="what is live"
    )
    parser.add_argument("-n", "--runs", type=int, metavar="N", help="live runs (default: the scenario's, 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object per scenario on stdout")


def execute(options: argparse.Namespace) -> int:
    """Prove each scenario. 0 all proven, 1 one did not fail or failed for another reason, 3 nothing can be said."""
    project = load_project(Path.cwd())
    paths = [Path(path) for path in options.paths] or [project.root / project.settings.scenarios]
    screen = Screen()
    codes: list[int] = []
    for folder in scenario_folders(paths):
        if not options.json:
            screen.line(folder.name, "bold")
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
            print(json.dumps(report_record(report)))
        else:
            show_end(screen, report)
    return 1 if 1 in codes else max(codes)


def show_step(screen: Screen, step: Step) -> None:
    """One step as it ends."""
    mark, style = ("ok", "green") if step.ok else ("no", "red")
    screen.para(step.said, indent=f"  {step.name} ", hang=" " * 8, mark=(mark, style))


def show_end(screen: Screen, report: Report) -> None:
    """The outcome of a proof."""
    if report.refusal is None:
        screen.line(f"  PROVEN ({report.level.value})", "green", "bold")
    else:
        screen.line(f"  REFUSED: {report.refusal.value} (exit {report.exit_code})", "yellow", "bold")


def report_record(report: Report) -> dict[str, object]:
    """The report as JSON data."""
    execution = report.red.execution if report.red is not None else None
    return {
        "scenario": report.scenario,
        "level": report.level.value,
        "proven": report.proven,
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

"""``redfirst verify``: is the incident over, or were the green runs luck?"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from redfirst.collector_processor.commands.scenario_options import (
    add_execution,
    add_folders,
    folders,
    show_notes,
    upkeep_record,
)
from redfirst.collector_processor.terminal import Screen, counted
from redfirst.replay.account import account
from redfirst.replay.asked import Mode
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.project import load_project
from redfirst.replay.verifying import LUCK, MOST_RUNS, Fix, RedRate, Verdict, Verification, verify

_STYLE = {Verdict.VERIFIED: "green", Verdict.NOT_FIXED: "red", Verdict.NO_VERDICT: "yellow"}


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_folders(parser)
    parser.add_argument(
        "--mode",
        choices=(Mode.RECORDED.value, Mode.TOOLS.value),
        help="what answers the agent (default: as the proof's)",
    )
    parser.add_argument(
        "--before",
        metavar="MODULE:FACTORY",
        help="the agent that fails: measure its red rate with its model live",
    )
    parser.add_argument(
        "--rate", type=float, metavar="R", help="its red rate, where it is known from elsewhere"
    )
    parser.add_argument(
        "-n", "--runs", type=int, metavar="N", help="runs (default: what the red rate asks for, at least 8)"
    )
    parser.add_argument(
        "--most",
        type=int,
        metavar="N",
        default=MOST_RUNS,
        help=f"never more runs than these (default: {MOST_RUNS})",
    )
    parser.add_argument(
        "--luck",
        type=float,
        metavar="P",
        default=LUCK,
        help=f"the chance left that an agent which still fails passes them all (default: {LUCK})",
    )
    add_execution(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object per scenario on stdout")


def execute(options: argparse.Namespace) -> int:
    """Verify each scenario. 0 all verified, 1 one was red, 3 of one nothing can be said."""
    project = load_project(Path.cwd())
    fix = Fix(
        agent=options.agent,
        mode=None if options.mode is None else Mode(options.mode),
        before=options.before,
        rate=options.rate,
        runs=options.runs,
        most=options.most,
        luck=options.luck,
        infra_retries=options.infra_retries,
    )
    screen = Screen()
    found: list[Verification] = []
    for folder in folders(options, project):
        one = verify(folder, project, fix, at=time.time(), workers=options.workers)
        found.append(one)
        if options.json:
            print(json.dumps(verification_record(one)))
        else:
            show(screen, one)
    if not options.json:
        tally = ", ".join(f"{sum(one.verdict is kind for one in found)} {kind.value}" for kind in Verdict)
        screen.line(tally)
    codes = [one.verdict.exit_code for one in found]
    return 1 if 1 in codes else max(codes)


def show(screen: Screen, one: Verification) -> None:
    """One scenario."""
    screen.line(f"{one.verdict.value:<10} {one.scenario}", _STYLE[one.verdict], "bold")
    show_notes(screen, one.upkeep)
    screen.para(one.because, indent="  ", hang="      ")
    if one.outcome is not None and one.verdict is Verdict.NOT_FIXED:
        for text in account(one.outcome.worst):
            screen.para(text, indent="  ", hang="      ")
    if one.rate is not None and one.needed is not None:
        screen.para(
            f"before: {_rate(one.rate)}; that asks for {counted(one.needed, 'green run')}",
            "dim",
            indent="  ",
            hang="      ",
        )
    if one.luck is not None and one.verdict is Verdict.VERIFIED:
        screen.para(
            f"an agent that still fails this often would pass them all with a chance of {one.luck:.2g}",
            "dim",
            indent="  ",
            hang="      ",
        )
    for begin in range(0, len(one.pass_hat), 2):
        pair = one.pass_hat[begin : begin + 2]
        told = [f"pass^{p.k:<2} {p.estimate:.2f} [{p.low:.2f}, {p.high:.2f}]" for p in pair]
        screen.line(f"  now: {'   '.join(told)}", "dim")
    if one.outcome is not None and one.outcome.lost:
        screen.line(f"  {counted(one.outcome.lost, 'run')} lost to infrastructure and made again", "dim")


def _rate(rate: RedRate) -> str:
    if rate.red is None:
        return f"red in {rate.low:.2f} of the runs ({rate.source})"
    return (
        f"red in {rate.red} of {rate.runs} live runs ({rate.source}), at least {rate.low:.2f} of them at 95 %"
    )


def verification_record(one: Verification) -> dict[str, object]:
    """A verification as JSON data."""
    rate, outcome = one.rate, one.outcome
    return {
        "scenario": one.scenario,
        "mode": one.mode.value,
        "verdict": one.verdict.value,
        "because": one.because,
        "exit_code": one.verdict.exit_code,
        "red_rate": None
        if rate is None
        else {"red": rate.red, "runs": rate.runs, "low": rate.low, "source": rate.source},
        "needed": one.needed,
        "luck": one.luck,
        "runs": None if outcome is None else {kind.value: outcome.count(kind) for kind in RunOutcome},
        "lost": None if outcome is None else outcome.lost,
        "pass_hat": {str(p.k): {"estimate": p.estimate, "low": p.low, "high": p.high} for p in one.pass_hat},
        **upkeep_record(one.upkeep),
    }

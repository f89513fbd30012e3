"""``redfirst run``: the scenarios against the agent as it is now."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from redfirst.collector_processor.commands.run_shown import (
    outcome_records,
    recovered,
    show_caps,
    show_injected,
    show_outcome,
)
from redfirst.collector_processor.commands.scenario_options import add_execution, add_folders, folders
from redfirst.collector_processor.summaries.case import cases
from redfirst.collector_processor.summaries.junit import junit
from redfirst.collector_processor.summaries.markdown import markdown
from redfirst.collector_processor.summaries.sarif import sarif
from redfirst.collector_processor.terminal import Progress, Screen, tell
from redfirst.evaluators import ConfigurationError
from redfirst.replay import files
from redfirst.replay.asked import Asked, Mode
from redfirst.replay.capping import Caps
from redfirst.replay.injecting import Injected, injections
from redfirst.replay.injection import FaultKind
from redfirst.replay.outcome import RunOutcome
from redfirst.replay.project import Project, load_project
from redfirst.replay.running import Outcome, run_all
from redfirst.replay.suite import Suite

RED_EXIT = 1
MOST_CAPS = 4
"""Columns that a table of 80 characters has room for."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_folders(parser)
    parser.add_argument(
        "--mode",
        choices=[mode.value for mode in Mode],
        help="what answers the agent (default: recorded; tools with --step-cap and --inject)",
    )
    parser.add_argument(
        "-n", "--runs", type=int, metavar="N", help="runs of each (default: 1 recorded, 5 tools)"
    )
    add_execution(parser)
    parser.add_argument(
        "--draft", action="store_true", help="let scenarios that are not proven count as well"
    )
    parser.add_argument(
        "--step-cap",
        metavar="N,N,…",
        type=_caps,
        help="run under each of these caps: is the agent slow or stuck?",
    )
    parser.add_argument(
        "--inject",
        metavar="KINDS",
        type=_kinds,
        help="put one fault in at each tool, once: error,timeout,500,empty,stale or all",
    )
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML")
    parser.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0")
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for a pull request")
    parser.add_argument("--json", action="store_true", help="one JSON object per run on stdout")


def _caps(text: str) -> list[int]:
    try:
        caps = sorted({int(part) for part in text.split(",")})
    except ValueError:
        caps = []
    if not 1 <= len(caps) <= MOST_CAPS or caps[0] < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: give 1 to {MOST_CAPS} numbers from 1 on, as in 6,12,24")
    return caps


def _kinds(text: str) -> list[FaultKind]:
    if text == "all":
        return list(FaultKind)
    known = [kind.value for kind in FaultKind]
    wrong = [part for part in text.split(",") if part not in known]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is no fault; give all, or some of {','.join(known)}")
    return [kind for kind in FaultKind if kind.value in text.split(",")]


def execute(options: argparse.Namespace) -> int:
    """Run each scenario. Any RED → 1, else any run without a verdict → 3, else 0; drafts do not count."""
    if options.step_cap and options.inject:
        raise ConfigurationError("--step-cap and --inject: give one of them.")
    if options.inject and options.mode == Mode.MODEL.value:
        raise ConfigurationError(
            "--inject with --mode model: the recorded model goes on as it was whatever it is told; give --mode tools."
        )
    project = load_project(Path.cwd())
    found = folders(options, project)
    for name in filter(None, (options.junit, options.sarif, options.markdown)):
        files.require_writable(Path(name))
    live = options.step_cap or options.inject
    asked = Asked(
        agent=options.agent,
        mode=Mode(options.mode) if options.mode else Mode.TOOLS if live else Mode.RECORDED,
        runs=options.runs if options.runs is not None or not options.inject else 1,
        infra_retries=options.infra_retries,
    )
    screen = Screen()
    if options.step_cap:
        return _under_caps(options, project, found, asked, screen)
    suite = Suite(
        outcomes=_play(options, project, [(path, asked) for path in found]), with_drafts=options.draft
    )
    injected = _inject(options, project, suite, found) if options.inject else []
    if options.json:
        for record in outcome_records(suite, injected):
            print(json.dumps(record))
    else:
        for outcome in suite.outcomes:
            show_outcome(screen, outcome)
            if options.inject:
                here = [one for one in injected if one.outcome.folder.path == outcome.folder.path]
                show_injected(screen, outcome, here)
        screen.para(suite.tally, hang="  ")
        if options.inject:
            screen.para(recovered(suite, injected), hang="  ")
    return _written(options, suite, injected, _exit_code(suite, injected))


def _play(options: argparse.Namespace, project: Project, work: Sequence[tuple[Path, Asked]]) -> list[Outcome]:
    total = sum(asked.times for _, asked in work)
    with Progress(total, "run") as progress:
        return run_all(
            work,
            project,
            at=time.time(),
            workers=options.workers,
            told=lambda result: progress.step(result.outcome.value),
        )


def _inject(
    options: argparse.Namespace, project: Project, suite: Suite, found: Sequence[Path]
) -> list[Injected]:
    work = [
        item
        for path, baseline in zip(found, suite.outcomes, strict=True)
        for item in injections(path, baseline, options.inject)
    ]
    outcomes = _play(options, project, work)
    return [
        Injected(tool=asked.inject[0], kind=asked.inject[1], outcome=outcome)
        for (_, asked), outcome in zip(work, outcomes, strict=True)
        if asked.inject is not None
    ]


def _under_caps(
    options: argparse.Namespace, project: Project, found: Sequence[Path], asked: Asked, screen: Screen
) -> int:
    work = [(path, replace(asked, step_cap=cap)) for path in found for cap in options.step_cap]
    outcomes = _play(options, project, work)
    width = len(options.step_cap)
    rows = [
        dict(zip(options.step_cap, outcomes[begin : begin + width], strict=True))
        for begin in range(0, len(outcomes), width)
    ]
    highest = Suite(outcomes=[row[options.step_cap[-1]] for row in rows], with_drafts=options.draft)
    if options.json:
        for outcome in outcomes:
            for record in outcome_records(Suite(outcomes=[outcome], with_drafts=options.draft), []):
                print(json.dumps(record))
    else:
        show_caps(screen, [Caps.of(row) for row in rows])
        screen.para(f"at {options.step_cap[-1]} steps: {highest.tally}", hang="  ")
    return _written(options, highest, [], highest.exit_code)


def _written(options: argparse.Namespace, suite: Suite, injected: Sequence[Injected], code: int) -> int:
    """Write the summaries that were asked for; the exit code stays.

    Raises:
        CannotWrite: one cannot be written, and there is no RED that this would hide.
    """
    try:
        _write(options, suite, injected)
    except files.CannotWrite as problem:
        if code != RED_EXIT:
            raise
        tell(str(problem))
    return code


def _write(options: argparse.Namespace, suite: Suite, injected: Sequence[Injected]) -> None:
    wanted: list[tuple[str | None, Callable[[], bytes]]] = [
        (options.junit, lambda: junit(told)),
        (options.sarif, lambda: sarif(told, root=Path.cwd())),
        (options.markdown, lambda: markdown(told, suite.tally)),
    ]
    told = cases(suite, injected) if any(name for name, _ in wanted) else []
    for name, made in wanted:
        if name is not None:
            files.write(Path(name), made())


def _exit_code(suite: Suite, injected: Sequence[Injected]) -> int:
    kinds = {one.recovery.outcome for one in injected if suite.counts(one.outcome)}
    if RunOutcome.RED in kinds:
        return 1
    if suite.exit_code == 0 and RunOutcome.NO_VERDICT in kinds:
        return 3
    return suite.exit_code

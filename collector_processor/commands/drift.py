"""``redfirst drift``: does the agent still ask its model as it did when the scenario was recorded?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from redfirst.collector_processor.commands.scenario_options import add_folders, folders
from redfirst.collector_processor.terminal import Screen
from redfirst.replay.drifting import Drift, drift
from redfirst.replay.project import load_project


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_folders(parser)
    parser.add_argument(
        "--reviewed",
        action="store_true",
        help="accept what moved: it was looked at, and the scenarios still hold",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per scenario on stdout")


def execute(options: argparse.Namespace) -> int:
    """Mark each scenario. 0 nothing moved that was not reviewed, 1 something did, 3 one could not be looked at."""
    project = load_project(Path.cwd())
    screen = Screen()
    found: list[Drift] = []
    for folder in folders(options, project):
        one = drift(folder, project, agent=options.agent, reviewed=options.reviewed)
        found.append(one)
        if options.json:
            print(json.dumps(drift_record(one)))
        else:
            show(screen, one)
    if not options.json:
        words = [_word(one)[0] for one in found]
        screen.line(
            ", ".join(f"{words.count(word)} {word}" for word in ("SAME", "REVIEWED", "MOVED", "UNSEEN"))
        )
    codes = [one.exit_code for one in found]
    return 1 if 1 in codes else max(codes)


def show(screen: Screen, one: Drift) -> None:
    """One scenario."""
    word, style = _word(one)
    screen.line(f"{word:<10} {one.scenario}", style, "bold")
    if one.unseen:
        screen.para(one.unseen, indent="  ", hang="      ")
        return
    for what in one.mark.moved:
        screen.para(what, indent="  ", hang="      ")
    if one.mark.open:
        screen.para("marked stale; 'redfirst drift --reviewed' once it was looked at", "dim", indent="  ")


def _word(one: Drift) -> tuple[str, str]:
    if one.unseen:
        return "UNSEEN", "yellow"
    if one.mark.open:
        return "MOVED", "red"
    return ("REVIEWED", "yellow") if one.mark.moved else ("SAME", "green")


def drift_record(one: Drift) -> dict[str, object]:
    """The same as JSON data."""
    return {
        "scenario": one.scenario,
        "moved": list(one.mark.moved),
        "stale": bool(one.mark.open),
        "reviewed": bool(one.mark.moved) and not one.mark.open,
        "unseen": one.unseen or None,
        "exit_code": one.exit_code,
    }

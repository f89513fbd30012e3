"""What the commands on scenarios have in common: their arguments, and what is told of every scenario."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from redfirst.collector_processor.terminal import Screen
from redfirst.replay.asked import INFRA_RETRIES
from redfirst.replay.project import Project
from redfirst.replay.running import scenario_folders
from redfirst.replay.upkeep import Upkeep


def add_folders(parser: argparse.ArgumentParser) -> None:
    """The scenarios, and the agent."""
    parser.add_argument(
        "paths", nargs="*", metavar="DIR", help="scenario folders (default: all of the project)"
    )
    parser.add_argument("--agent", metavar="MODULE:FACTORY", help="the agent, instead of the configured one")


def add_execution(parser: argparse.ArgumentParser) -> None:
    """How runs are made."""
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        default=os.cpu_count() or 2,
        help="processes at once (default: one per CPU)",
    )
    parser.add_argument(
        "--infra-retries",
        type=int,
        metavar="N",
        default=INFRA_RETRIES,
        help=f"how often a live run is made again that infrastructure ended (default: {INFRA_RETRIES})",
    )


def folders(options: argparse.Namespace, project: Project) -> list[Path]:
    """The scenarios that the arguments name.

    Raises:
        ConfigurationError: a path is not there, or holds no scenario.
    """
    paths = [Path(path) for path in options.paths] or [project.root / project.settings.scenarios]
    return scenario_folders(paths)


def show_notes(screen: Screen, upkeep: Upkeep) -> None:
    """Quarantine, expiry and drift of a scenario."""
    for note in upkeep.notes:
        screen.para(note, "yellow", indent="  ", hang="      ")


def upkeep_record(upkeep: Upkeep) -> Mapping[str, object]:
    """The same as JSON data."""
    held = upkeep.quarantine or upkeep.overdue
    return {
        "quarantined": upkeep.quarantine is not None,
        "quarantine_until": None if held is None else held.until.isoformat(),
        "expired": None if upkeep.expired is None else upkeep.expired.isoformat(),
        "stale": list(upkeep.stale),
    }

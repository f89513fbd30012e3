"""``redfirst label``: a person says whether a flag was right, so that the precision of each check is known."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from redfirst.collector_processor.commands.changing import add_run_arguments, change, home_of, resolved
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Label
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_run_arguments(parser)
    parser.add_argument(
        "judgement", metavar="right|wrong", choices=["right", "wrong"], help="whether the verdict was right"
    )
    parser.add_argument(
        "--check", metavar="ID", default="", help="the check that is meant (default: the run as a whole)"
    )
    parser.add_argument("--note", metavar="TEXT", default="", help="why")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def execute(options: argparse.Namespace) -> int:
    """Keep the label; what was said before of the same check is replaced."""
    if options.check:
        _known(home_of(options.home), options.run, options.check)
    right = options.judgement == "right"
    body = {"right": right, "check": options.check, "note": options.note}
    run_id = change(
        home_of(options.home),
        options.run,
        "label",
        body,
        lambda store, name: store.label(Label(run_id=name, at_ns=time.time_ns(), **body)),
    )
    links = Links.of_project(load_project(Path.cwd()))
    about = options.check or "the run as a whole"
    print(
        json.dumps({"trace_id": run_id, **body, **links.beside(run_id)})
        if options.json
        else f"{run_id}: {about} is labelled {options.judgement}"
    )
    return 0


def _known(home: Home, wanted: str, check: str) -> None:
    """A label on a check that never judged the run would count for nothing.

    Raises:
        ConfigurationError: the run has no verdict of that check.
    """
    reader = SqliteReader(home.store)
    try:
        versions = reader.versions(resolved(home, wanted))
    finally:
        reader.close()
    record = versions[-1].record if versions else None
    made = [str(verdict["check"]) for verdict in (record or {}).get("verdicts", ())]
    if check not in made:
        raise ConfigurationError(
            f"--check {check}: run {wanted} has no such verdict; it has {', '.join(made) or 'none'}."
        )

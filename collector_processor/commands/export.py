"""``redfirst export pytest``: the scenarios as a file of plain tests, for those who want one."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from redfirst.collector_processor.commands.scenario_options import folders
from redfirst.replay import files
from redfirst.replay.project import load_project

_FILE = '''\
"""Scenarios that the agent has been seen to fail, as plain tests. Written by: redfirst export pytest"""

from pathlib import Path

import pytest

from redfirst.replay.asserting import assert_green, played

ROOT = Path(__file__).resolve().parent
SCENARIOS = {scenarios}


@pytest.fixture(params=SCENARIOS)
def outcome(request):
    """The agent, executed: no verdict is an error, a draft is skipped."""
    return played(ROOT / request.param)


def test_scenario(outcome):
    """No run is red."""
    assert_green(outcome)
'''


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    tests = what.add_parser(
        "pytest", help="a file of tests", description="a file of tests, one for each scenario"
    )
    tests.add_argument(
        "paths", nargs="*", metavar="DIR", help="scenario folders (default: all of the project)"
    )
    tests.add_argument(
        "--out", metavar="FILE", help="write it there (default: stdout, for a file in this folder)"
    )


def execute(options: argparse.Namespace) -> int:
    """Print or write the file."""
    found = folders(options, load_project(Path.cwd()))
    beside = Path(options.out).resolve().parent if options.out else Path.cwd()
    names = [Path(os.path.relpath(folder.resolve(), beside)).as_posix() for folder in found]
    listed = "".join(f"    {json.dumps(name)},\n" for name in names)
    text = _FILE.format(scenarios=f"[\n{listed}]")
    if options.out:
        files.require_writable(Path(options.out))
        files.write(Path(options.out), text.encode())
    else:
        print(text, end="")
    return 0

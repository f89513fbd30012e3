"""``redfirst traces``: the runs in the store, and with ``--all`` those that are still being assembled."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from redfirst.collector_processor.commands.changing import home_of
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.recorded.open_runs import open_runs
from redfirst.collector_processor.storing.rows import row
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState
from redfirst.collector_processor.terminal import Screen, fit

_WIDTHS = (("TRACE", 9), ("STATE", 10), ("AGENT", 22), ("SPANS", 6), ("VERSION", 8), ("JUDGED", 20))


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per run, one per line")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="open traces and those that are no runs, too")
    which.add_argument("--flagged", action="store_true", help="flagged runs only")


def execute(options: argparse.Namespace) -> int:
    """Print the runs, oldest verdict first."""
    home = home_of(options.home)
    rows = list(_rows(home, every=options.all, flagged=options.flagged))
    if options.json:
        for item in rows:
            print(json.dumps(item))
        return 0
    screen = Screen()
    screen.line("".join(name.ljust(width) for name, width in _WIDTHS), "bold")
    for item in rows:
        cells = (
            *(item["trace_id"][:8], item["state"], item["agent"] or "-", str(item["spans"])),
            *(str(item["version"]), (item["judged"] or "")[:19]),
        )
        line = "".join(
            fit(cell, width - 1).ljust(width) for cell, (_, width) in zip(cells, _WIDTHS, strict=True)
        )
        screen.line(line + ("FLAG" if item["flagged"] else ""), *(("red",) if item["flagged"] else ()))
    return 0


def _rows(home: Home, *, every: bool, flagged: bool) -> Iterable[dict[str, Any]]:
    reader = SqliteReader(home.store)
    try:
        query = Query(
            flagged=True if flagged else None,
            states=tuple(RunState) if every else (RunState.SCORED, RunState.UNSCORED),
        )
        for run in reversed(reader.runs(query)):
            yield row(run)
        if every:
            yield from open_runs(home, reader)
    finally:
        reader.close()

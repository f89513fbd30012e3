"""``redfirst traces``: the runs in the store, and with ``--all`` those that are still being assembled."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redfirst.collector_processor.commands.changing import home_of
from redfirst.collector_processor.home import Home
from redfirst.collector_processor.links import Links
from redfirst.collector_processor.recorded.open_runs import open_runs
from redfirst.collector_processor.showing.columns import labelled
from redfirst.collector_processor.storing.rows import row
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Label, Query, RunState
from redfirst.collector_processor.terminal import WIDTH, Screen, clean, counted, fit, tell
from redfirst.replay.covering import Covers, covers_of, recorded_signature
from redfirst.replay.project import load_project

_WIDTHS = (("TRACE", 9), ("JUDGED", 15), ("AGENT", 14), ("SPANS", 6), ("VER", 4))
_LABELS = 20
_LEFT = sum(width for _, width in _WIDTHS)


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "--home", metavar="DIR", help="where the store lies (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per run, one per line")
    parser.add_argument("--text", metavar="WORDS", help="runs whose request or answer has all of these words")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="open traces and those that are no runs, too")
    which.add_argument("--flagged", action="store_true", help="flagged runs only")


def execute(options: argparse.Namespace) -> int:
    """Print the runs, oldest verdict first."""
    home = home_of(options.home)
    project = load_project(Path.cwd())
    known = covers_of(project)
    for problem in filter(None, (*known.unreadable, known.said_untold)):
        tell(problem)
    links = Links.of_project(project)
    rows = list(
        _rows(home, known, links, every=options.all, flagged=options.flagged, text=options.text or "")
    )
    if options.json:
        for item in rows:
            print(json.dumps(item))
        return 0
    screen = Screen()
    screen.line("".join(name.ljust(width) for name, width in _WIDTHS) + "FLAGGED BY", "bold")
    for item in rows:
        cells = (
            *(item["trace_id"][:8], (item["judged"] or "")[5:19].replace("T", " "), item["agent"] or "-"),
            *(str(item["spans"]), str(item["version"])),
        )
        line = "".join(
            fit(cell, width - 1).ljust(width) for cell, (_, width) in zip(cells, _WIDTHS, strict=True)
        )
        link = (item["trace_id"][:8], item["url"]) if "url" in item else None
        screen.line(line + _became(item), *(("red",) if item["flagged"] else ()), link=link)
    if not rows and not options.flagged and not options.text:
        _say_open(home)
    if any(item.get("covered_by") for item in rows):
        screen.line("= a scenario covers it: redfirst show RUN names it", "dim")
    return 0


def _say_open(home: Home) -> None:
    """What is on its way, where nothing has been judged yet."""
    reader = SqliteReader(home.store)
    try:
        waiting = sum(1 for _ in open_runs(home, reader))
    finally:
        reader.close()
    if waiting:
        tell(
            f"{counted(waiting, 'run')} open: judged once nothing more came for settle_seconds; --all shows them"
        )


def _became(item: Mapping[str, Any]) -> str:
    """The checks that flag a run and what people said of that; of a run without a verdict, its state."""
    labels = labelled([Label(run_id="", check=one["check"], right=one["right"]) for one in item["labels"]])
    if len(labels) > _LABELS:  # the words that matter; show has the rest
        labels = ", ".join("right" if one["right"] else "wrong" for one in item["labels"])
    said = f" [{fit(labels, _LABELS)}]" if labels else ""
    said += " =" if item.get("covered_by") else ""
    if item["state"] != RunState.SCORED.value:
        state = item["state"].replace("_", " ")
        return f"({state}{': ' + item['because'] if item['because'] else ''}){said}"
    return _named([clean(check) for check in item["failed"]], WIDTH - _LEFT - len(said)) + said


def _named(checks: Sequence[str], room: int) -> str:
    """As many names as fit and how many more there are; the first is named always, cut where it must be."""
    for shown in range(len(checks), 1, -1):
        text = ", ".join(checks[:shown]) + (f" +{len(checks) - shown}" if shown < len(checks) else "")
        if len(text) <= room:
            return text
    more = f" +{len(checks) - 1}" if len(checks) > 1 else ""
    return fit(checks[0], room - len(more)) + more if checks else ""


def _rows(
    home: Home, known: Covers, links: Links, *, every: bool, flagged: bool, text: str
) -> Iterable[dict[str, Any]]:
    reader = SqliteReader(home.store)
    try:
        query = Query(
            flagged=True if flagged else None,
            text=text,
            states=tuple(RunState) if every else (RunState.SCORED, RunState.UNSCORED),
            records=bool(known.known),
        )
        for run in reversed(reader.runs(query)):
            cover = known.of(run.agent or "", recorded_signature((run.record or {}).get("verdicts", ())))
            kept = {"covered_by": None if cover is None else cover.scenario}
            yield {**row(run), **kept, **links.beside_stored(run.run_id, reader)}
        if every and not text:
            for item in open_runs(home, reader):
                yield {**item, **links.beside(item["trace_id"])}
    finally:
        reader.close()

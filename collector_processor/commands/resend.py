"""``redfirst resend``: give destinations again what they refused, or list it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from redfirst.collector_processor.extras import need
from redfirst.collector_processor.settings import configured, in_force
from redfirst.collector_processor.terminal import Screen, clean, counted, fit
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project, project_at

_WIDTHS = (("DESTINATION", 20), ("ARRIVED", 21), ("HOLDS", 18))


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument("destination", nargs="?", metavar="NAME", help="one destination (default: all)")
    parser.add_argument(
        "--home", metavar="DIR", help="where the dead letters lie (default: REDFIRST_HOME or .redfirst)"
    )
    parser.add_argument(
        "--config", metavar="FILE", help="the redfirst.yaml to use (default: the nearest one)"
    )
    parser.add_argument("--list", action="store_true", help="show what is kept and send nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object per request, one per line")


def execute(options: argparse.Namespace) -> int:
    """0 when nothing is left, 1 when a destination still does not take something."""
    need("zstandard", extra="server", wanted="resend")
    from redfirst.collector_processor.forwarding.destinations import destinations
    from redfirst.collector_processor.forwarding.export import Export
    from redfirst.collector_processor.forwarding.resending import Letter, letters, resent
    from redfirst.collector_processor.posting.answers import Fate

    project = project_at(Path(options.config)) if options.config else load_project(Path.cwd())
    known = {one.name: one for one in destinations(in_force(configured(project)).forward)}
    home = Path(options.home) if options.home else project.home
    if options.destination is not None and options.destination not in known:
        raise ConfigurationError(
            f"No destination is called {options.destination!r} (configured: {', '.join(sorted(known)) or 'none'});"
            f" the names stand under serve: forward: in redfirst.yaml."
        )
    exports: dict[str, Export] = {}

    def became(letter: Letter) -> str:
        if options.list:
            return letter.reason
        if letter.destination not in known:
            return "not_configured"
        export = exports.setdefault(letter.destination, Export(known[letter.destination]))
        reading = resent(letter, export)
        return "delivered" if reading.fate is Fate.DELIVERED and not reading.rejected else reading.reason

    left = found = 0
    screen = Screen()
    for letter in letters(home, options.destination):
        what = became(letter)
        found, left = found + 1, left + (what != "delivered")
        row = {
            "destination": letter.destination, "signal": letter.signal, "records": letter.records,
            "arrived": letter.arrived or None, "file": str(letter.path), "became": what,
        }  # fmt: skip
        _show(row, screen, first=found == 1, as_json=options.json, listed=options.list)
    for export in exports.values():
        export.close()
    if not options.json:
        said = counted(found, "request") + (" kept" if options.list else f", {left} not taken")
        screen.line("nothing is kept: no destination refused anything for good" if not found else said)
    return 1 if left and not options.list else 0


def _show(row: Mapping[str, object], screen: Screen, *, first: bool, as_json: bool, listed: bool) -> None:
    if as_json:
        print(json.dumps(row))
        return
    if first:
        names = "".join(name.ljust(width) for name, width in _WIDTHS)
        screen.line(names + ("REFUSED BECAUSE" if listed else "NOW"), "bold")
    holds = f"{'?' if row['records'] is None else row['records']} {row['signal']}"
    cells = (str(row["destination"]), str(row["arrived"] or "-")[:19], holds)
    line = "".join(
        fit(clean(cell), width - 1).ljust(width) for cell, (_, width) in zip(cells, _WIDTHS, strict=True)
    )
    screen.line(line + str(row["became"]))

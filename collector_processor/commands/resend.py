"""``redfirst resend``: give destinations again what they refused, or list it."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from redfirst.collector_processor.extras import need
from redfirst.collector_processor.settings import configured, in_force
from redfirst.collector_processor.terminal import Screen, clean, counted, fit
from redfirst.evaluators.errors import ConfigurationError
from redfirst.replay.project import load_project, project_at

_WIDTHS = (("DESTINATION", 24), ("REQUESTS", 10), ("WITH", 20))


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

    shown: Counter[tuple[str, str, str]] = Counter()
    records: Counter[tuple[str, str, str]] = Counter()
    found = left = 0
    for letter in letters(home, options.destination):
        what = became(letter)
        found, left = found + 1, left + (what != "delivered")
        kind = (letter.destination, letter.signal, what)
        shown[kind] += 1
        records[kind] += letter.records or 0
        if options.json:
            row = {
                "destination": letter.destination, "signal": letter.signal, "records": letter.records,
                "arrived": letter.arrived or None, "file": str(letter.path), "became": what,
            }  # fmt: skip
            print(json.dumps(row))
    for export in exports.values():
        export.close()
    if not options.json:
        _show(shown, records, listed=options.list)
        said = counted(found, "request") + (" kept" if options.list else f", {left} not taken")
        print("nothing is kept: no destination refused anything for good" if not found else said)
    return 1 if left and not options.list else 0


def _show(
    shown: Mapping[tuple[str, str, str], int], records: Mapping[tuple[str, str, str], int], *, listed: bool
) -> None:
    """One line for all that a destination said the same of."""
    screen = Screen()
    if shown:
        names = "".join(name.ljust(width) for name, width in _WIDTHS)
        screen.line(names + ("REFUSED BECAUSE" if listed else "NOW"), "bold")
    for kind, requests in sorted(shown.items()):
        destination, signal, what = kind
        holds = f"{records[kind]} {'spans' if signal == 'traces' else 'log records'}"
        cells = (destination, str(requests), holds)
        line = "".join(
            fit(clean(cell), width - 1).ljust(width) for cell, (_, width) in zip(cells, _WIDTHS, strict=True)
        )
        screen.line(line + what)

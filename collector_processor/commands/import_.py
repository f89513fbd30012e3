"""``redfirst import``: records of other systems into OTLP files that every other command reads."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

from redfirst.collector_processor.importing.converting import Account, convert
from redfirst.collector_processor.importing.registry import AUTO, FORMATS, format_named
from redfirst.collector_processor.terminal import tell
from redfirst.evaluators.errors import UnreadableInput

_SHOWN = 10
"""Refused records that are named; the others are counted."""
REFUSED = 1
"""Exit code when some records were left out."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    known = ", ".join((AUTO, *(form.name for form in FORMATS)))
    parser.add_argument("format", metavar="FORMAT", help=f"one of {known}")
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="JSON files, or directories of them; .gz is unpacked"
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the OTLP files")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")


def execute(options: argparse.Namespace) -> int:
    """Import everything under the paths. 0 when every record was used, 1 when some were left out.

    Raises:
        UnreadableInput: nothing could be imported.
    """
    account = convert(options.paths, Path(options.out), format_named(options.format))
    if not account.records:
        raise UnreadableInput(f"nothing was imported: {_why(account)}")
    for item in account.refused[:_SHOWN]:
        tell(f"refused: {item.where}: {item.reason}")
    if len(account.refused) > _SHOWN:
        tell(f"refused: {len(account.refused) - _SHOWN} more")
    if options.json:
        print(json.dumps(_record(account)))
    else:
        _print(account, options.out)
    return REFUSED if account.refused else 0


def _why(account: Account) -> str:
    if account.refused:
        first = account.refused[0]
        more = f" (and {len(account.refused) - 1} more)" if len(account.refused) > 1 else ""
        return f"{first.where}: {first.reason}{more}"
    skipped = "; ".join(f"{count} file(s) {reason}" for reason, count in sorted(account.skipped.items()))
    return skipped or "there is no file"


def _print(account: Account, out: str) -> None:
    by_format = ", ".join(f"{count} {name}" for name, count in sorted(account.records.items()))
    print(
        f"imported {sum(account.records.values())} record(s) ({by_format}) of {account.files} file(s): "
        f"{len(account.traces)} trace(s), {account.spans} span(s)"
    )
    if account.refused:
        print(f"refused {len(account.refused)} record(s)")
    for reason, count in sorted(account.skipped.items()):
        print(f"skipped {count} file(s): {reason}")
    print(f"next: redfirst score {shlex.quote(out)}")


def _record(account: Account) -> dict[str, object]:
    return {
        "files": account.files,
        "records": dict(sorted(account.records.items())),
        "traces": len(account.traces),
        "spans": account.spans,
        "refused": [{"where": item.where, "reason": item.reason} for item in account.refused],
        "skipped": dict(sorted(account.skipped.items())),
        "written": [str(path) for path in account.written],
    }

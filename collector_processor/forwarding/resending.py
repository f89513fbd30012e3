"""What destinations refused for good, given to them again once they, or what they were asked, are mended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redfirst.collector_processor.forwarding.export import Export
from redfirst.collector_processor.forwarding.refused import FOLDER
from redfirst.collector_processor.journal.format import Signal
from redfirst.collector_processor.posting.answers import Fate, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A refused request, and what is known of it."""

    path: Path
    destination: str
    signal: Signal
    records: int | None
    """Spans or log records in it; None when what was written beside it cannot be read."""
    arrived: str
    reason: str


def letters(home: Path, destination: str | None = None) -> Iterator[Letter]:
    """What is kept in a home, by destination and age; of one destination where it is named."""
    for path in sorted((home / FOLDER).glob("*/*.pb")):
        if destination in (None, path.parent.name):
            yield _letter(path)


def resent(letter: Letter, export: Export) -> Reading:
    """Send a letter once. A delivered one is kept no longer; any other stays as it is."""
    reading = export.send(export.packed(letter.path.read_bytes()), letter.signal)
    if reading.fate is Fate.DELIVERED and not reading.rejected:
        # the request first: a note without one is no letter, a request without its note still is
        letter.path.unlink()
        letter.path.with_suffix(".json").unlink(missing_ok=True)
    return reading


def _letter(path: Path) -> Letter:
    signal: Signal = "logs" if path.name.endswith(".logs.pb") else "traces"
    try:
        about = json.loads(path.with_suffix(".json").read_bytes())
        return Letter(
            path=path,
            destination=path.parent.name,
            signal=signal,
            records=int(about["records"]),
            arrived=str(about["arrived"]),
            reason=str(about["reason"]),
        )
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
    ):  # the request itself is whole: it is renamed into place
        return Letter(
            path=path, destination=path.parent.name, signal=signal, records=None, arrived="", reason="unknown"
        )

"""The mark that ``drift`` leaves beside a scenario: what moved since the recording, and what was reviewed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from redfirst.evaluators import ConfigurationError
from redfirst.replay import files

DRIFT_FILE = "drift.json"
SCHEMA = "redfirst.drift/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What ``drift.json`` says; empty without one."""

    moved: tuple[str, ...] = ()
    seen: str | None = None
    """Digest of what the agent asked its model with when it was looked at."""
    reviewed: str | None = None
    """Digest that a person has looked at and accepted."""

    @property
    def open(self) -> tuple[str, ...]:
        """What moved and was not reviewed."""
        return () if self.seen == self.reviewed else self.moved


def read_mark(folder: Path) -> Mark:
    """The mark in a scenario's folder.

    Raises:
        ConfigurationError: it is damaged or of another version.
    """
    path = folder / DRIFT_FILE
    if not path.is_file():
        return Mark()
    try:
        found = json.loads(files.read(path))
        if found["schema"] != SCHEMA:
            raise ConfigurationError(
                f"{path}: schema is {found['schema']!r}; this redfirst reads {SCHEMA}. Run drift again."
            )
        return Mark(moved=tuple(map(str, found["moved"])), seen=found["seen"], reviewed=found.get("reviewed"))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise ConfigurationError(
            f"{path}: damaged ({type(problem).__name__}: {problem}); delete it and run drift again."
        ) from problem


def write_mark(folder: Path, mark: Mark) -> None:
    """Put the mark beside the scenario; without anything moved there is none.

    Raises:
        CannotWrite: it cannot be put on disk.
    """
    path = folder / DRIFT_FILE
    if not mark.moved:
        with files.writing(path):
            path.unlink(missing_ok=True)
        return
    body = {"schema": SCHEMA, "moved": list(mark.moved), "seen": mark.seen, "reviewed": mark.reviewed}
    files.write(path, (json.dumps(body, indent=1, ensure_ascii=False) + "\n").encode())

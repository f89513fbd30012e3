"""The proof on disk: bound to the bytes of the scenario it was made of, and to nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from redfirst.evaluators import ConfigurationError
from redfirst.replay import files
from redfirst.replay.report import Level
from redfirst.replay.scenario import HASHED_FILES, PROOF_FILE, Folder

Json = Any

SCHEMA = "redfirst.proof/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a scenario may gate."""

    proven: bool
    level: Level | None = None
    because: str = ""


def bind(folder: Folder, body: Mapping[str, Json]) -> None:
    """Write the proof beside the scenario.

    Raises:
        CannotWrite: it cannot be put on disk.
    """
    text = json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    files.write(folder.path / PROOF_FILE, text.encode("utf-8", "backslashreplace"))


def standing(folder: Folder) -> Standing:
    """Whether the folder holds a proof of exactly these bytes; any change of any of them voids it."""
    path = folder.path / PROOF_FILE
    if not path.is_file():
        return Standing(proven=False, because="draft: not proven yet")
    try:
        proof: Mapping[str, Json] = json.loads(files.read(path))
        if proof["schema"] != SCHEMA:
            raise ConfigurationError(
                f"{path}: schema is {proof['schema']!r}; this redfirst reads {SCHEMA}. Prove again."
            )
        recorded, level = dict(proof["files"]), Level(proof["level"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return Standing(proven=False, because=f"void: {PROOF_FILE} is damaged ({problem})")
    found = folder.hashes()
    changed = sorted(name for name in HASHED_FILES if recorded.get(name) != found.get(name))
    if changed:
        return Standing(proven=False, because=f"void: {changed[0]} changed since the proof")
    return Standing(proven=True, level=level)

"""The proof on disk: bound to the bytes of the scenario it was made of, and to nothing else."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from redfirst.evaluators import ConfigurationError
from redfirst.replay import files
from redfirst.replay.outcome import Signature
from redfirst.replay.report import Level
from redfirst.replay.runner import Execution
from redfirst.replay.scenario import HASHED_FILES, HELD_FILE, PROOF_FILE, Folder

Json = Any

SCHEMA = "redfirst.proof/1"
HELD_SCHEMA = "redfirst.held/1"
SEAL = "proof_sha256"
_VOID = "void: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a scenario may gate."""

    proven: bool
    held: int = 0
    """Of a sample: how often it was replayed and stayed green. It gates, and was never seen to fail."""
    level: Level | None = None
    because: str = ""
    agent: str | None = None
    """The reference that was seen to fail, also where the proof is void since."""
    rate: tuple[int, int] | None = None
    """Of a live proof: runs that failed this way, and runs with a verdict."""
    signature: Signature = frozenset()
    """How it was seen to fail."""
    control: str = ""
    """Of a proof: what was seen to pass, ``agent REF``, ``passing run`` or ``derived``."""
    red_events: frozenset[str] = frozenset()
    """SHA-256 of the events of the runs that were seen to fail."""

    @property
    def void(self) -> bool:
        """Whether there was a proof, or replays, of other bytes than these: it has stopped to count."""
        return self.because.startswith(_VOID)

    @property
    def gates(self) -> bool:
        """Whether a run of it counts."""
        return self.proven or self.held > 0


def events_digest(execution: Execution) -> str:
    """SHA-256 of what an execution did, in hexadecimal."""
    return hashlib.sha256("\n".join(execution.events).encode()).hexdigest()


def environment(executions: Sequence[Execution], *, network: bool) -> dict[str, Json]:
    """Where executions were made, and what each was kept from: by the audit hook in Python, by the kernel in all code."""
    kept = [set(execution.locked) for execution in executions]
    return {
        "redfirst": version("redfirst"),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system().lower()}-{platform.machine()}",
        "isolation": {
            "audit_hook": ["files", *([] if network else ["network"])],
            "kernel": sorted(set.intersection(*kept) if kept else ()),
        },
    }


def bind(folder: Folder, body: Mapping[str, Json]) -> None:
    """Write the proof beside the scenario.

    Raises:
        CannotWrite: it cannot be put on disk.
    """
    name = HELD_FILE if folder.scenario.kind == "sample" else PROOF_FILE
    files.write(folder.path / name, _text({**body, SEAL: _seal(body)}))


def _text(proof: Mapping[str, Json]) -> bytes:
    text = json.dumps(proof, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _seal(body: Mapping[str, Json]) -> str:
    """Hash of all that the proof says: an edit of the proof voids it as one of the scenario does.

    It finds accidents and edits, not forgery: who can write the folder can write the hash.
    """
    return hashlib.sha256(_text({key: value for key, value in body.items() if key != SEAL})).hexdigest()


def standing(folder: Folder) -> Standing:
    """Whether the folder holds a proof of exactly these bytes; any change of any of them voids it."""
    if folder.scenario.kind == "sample":
        return _held(folder)
    path = folder.path / PROOF_FILE
    if not path.is_file():
        return Standing(proven=False, because="draft: not proven yet")
    try:
        written = files.read(path)
        proof: Mapping[str, Json] = json.loads(written)
        if proof["schema"] != SCHEMA:
            raise ConfigurationError(
                f"{path}: schema is {proof['schema']!r}; this redfirst reads {SCHEMA}. Prove again."
            )
        if written != _text(proof) or proof.get(SEAL) != _seal(proof):
            return Standing(proven=False, because=f"{_VOID}{PROOF_FILE} changed since the proof")
        recorded, level = dict(proof["files"]), Level(proof["level"])
        agent, rate = str(proof["agent"]["reference"]), proof.get("rate")
        counted = None if rate is None else (int(rate["red"]), int(rate["valid"]))
        signature = frozenset((str(c), str(r), str(subject)) for c, r, subject in proof["signature"])
        control = str(proof.get("control", ""))
        events = frozenset(str(row["events_sha256"]) for row in proof["red"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return Standing(proven=False, because=f"{_VOID}{PROOF_FILE} is damaged ({problem})")
    changed = _changed(folder, recorded)
    if changed is not None:
        return Standing(proven=False, because=f"{_VOID}{changed} changed since the proof", agent=agent)
    return Standing(
        proven=True,
        level=level,
        agent=agent,
        rate=counted,
        signature=signature,
        control=control,
        red_events=events,
    )


def _changed(folder: Folder, recorded: Mapping[str, Json]) -> str | None:
    """The first file that is another than the recorded one, or is gone or new; ``None`` when none is."""
    found = folder.hashes()
    return min((name for name in HASHED_FILES if recorded.get(name) != found.get(name)), default=None)


def _held(folder: Folder) -> Standing:
    """Whether a sample was replayed with exactly these bytes."""
    path = folder.path / HELD_FILE
    if not path.is_file():
        return Standing(proven=False, because="a sample that no replays have held yet")
    try:
        written = files.read(path)
        body: Mapping[str, Json] = json.loads(written)
        if written != _text(body) or body[SEAL] != _seal(body) or body["schema"] != HELD_SCHEMA:
            return Standing(proven=False, because=f"{_VOID}{HELD_FILE} changed since the replays")
        recorded, green = dict(body["files"]), int(body["green"])
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        return Standing(proven=False, because=f"{_VOID}{HELD_FILE} is damaged ({problem})")
    changed = _changed(folder, recorded)
    if changed is not None:
        return Standing(proven=False, because=f"{_VOID}{changed} changed since the replays")
    return Standing(
        proven=False, held=green, because=f"a sample, green in {green} replays; never seen to fail"
    )

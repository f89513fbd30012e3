"""A regression scenario: a folder a reviewer can read, and the plain data the player runs.

``scenario.yaml`` is the whole of it but for the recordings: ``trace.otlp.pb.gz`` (the incident),
``model.jsonl`` (its model turns) and ``good.jsonl`` (those of the control). ``proof.json`` is written
by ``prove`` and holds for exactly these bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from redfirst.evaluators import ConfigurationError, Stop, UnreadableInput, strict_yaml
from redfirst.evaluators.check import Check, check_from_spec
from redfirst.evaluators.otlp import decode_logs, decode_traces
from redfirst.evaluators.span import LogRecord, Span
from redfirst.replay import files
from redfirst.replay.scenario_parts import (
    CheckPart,
    Clock,
    Completeness,
    ErrorPart,
    MatchPart,
    Part,
    ProofPart,
    Request,
    ResponsePart,
    ToolPart,
    WorldPart,
    refused,
)

__all__ = [
    "CONTROL_FILE", "HASHED_FILES", "HELD_FILE", "LOGS_FILE", "MODEL_FILE", "PROOF_FILE", "SCENARIO_FILE", "SCHEMA",
    "TRACE_FILE", "CheckPart", "Clock", "Completeness", "ErrorPart", "Folder", "MatchPart", "ProofPart", "Request",
    "ResponsePart", "Scenario", "ToolPart", "WorldPart", "dump", "lines", "load", "parse",
]  # fmt: skip

Json = Any

SCHEMA: Literal["redfirst.scenario/1"] = "redfirst.scenario/1"
SCENARIO_FILE = "scenario.yaml"
TRACE_FILE = "trace.otlp.pb.gz"
MODEL_FILE = "model.jsonl"
LOGS_FILE = "logs.otlp.pb.gz"
CONTROL_FILE = "good.jsonl"
PROOF_FILE = "proof.json"
HELD_FILE = "held.json"
"""Of a sample: how often it was replayed and stayed green."""
HASHED_FILES = (SCENARIO_FILE, TRACE_FILE, LOGS_FILE, MODEL_FILE, CONTROL_FILE)
"""What a proof is bound to, byte for byte."""


class Scenario(Part):
    """``scenario.yaml``."""

    schema_: Literal["redfirst.scenario/1"] = Field(alias="schema")
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{2,80}$")
    title: str
    kind: Literal["incident", "sample"] = "incident"
    """A sample is a run that nothing flagged: it has guards only, and is never called proven."""
    agent: str
    """Name of the agent in the project's configuration."""
    origin: dict[str, Json] = Field(default={})
    ended: Stop = Stop.COMPLETED
    """How the run in production ended: one that breaks off otherwise does not repeat it."""
    completeness: Completeness
    request: Request
    world: WorldPart
    tools: dict[str, ToolPart]
    checks: list[CheckPart]
    proof: ProofPart = ProofPart()

    @field_validator("origin")
    @classmethod
    def _shown(cls, origin: dict[str, Json]) -> dict[str, Json]:
        shapes = {"notes": list, "redacted": dict}
        wrong = [key for key, kind in shapes.items() if not isinstance(origin.get(key, kind()), kind)]
        if wrong:
            raise ValueError(f"{wrong[0]} is no {'list' if shapes[wrong[0]] is list else 'mapping'}")
        return origin

    @model_validator(mode="after")
    def _judged(self) -> Scenario:
        targets = [part for part in self.checks if part.role == "target"]
        if self.kind == "incident" and not targets:
            raise ValueError("a scenario needs at least one check with role: target")
        if self.kind == "sample" and targets:
            raise ValueError("a sample was not flagged, so none of its checks has role: target")
        ids = [check_from_spec(part.check).id for part in self.checks]
        twice = {name for name in ids if ids.count(name) > 1}
        if twice:
            raise ValueError(f"check {sorted(twice)[0]!r} stands here twice")
        return self

    def targets(self) -> tuple[Check, ...]:
        """The checks that must be seen to fail."""
        return tuple(check_from_spec(part.check) for part in self.checks if part.role == "target")

    def guards(self) -> tuple[Check, ...]:
        """The checks that must not fail either."""
        return tuple(check_from_spec(part.check) for part in self.checks if part.role == "guard")


class Folder:
    """A scenario on disk, with its recordings, as loaded at one moment."""

    def __init__(self, path: Path, scenario: Scenario, files: Mapping[str, bytes]) -> None:
        self.path = path
        self.scenario = scenario
        self._files = files

    @property
    def trace(self) -> list[Span]:
        """The spans of the incident."""
        with self._reading(TRACE_FILE):
            return decode_traces(self._files[TRACE_FILE])

    @property
    def logs(self) -> list[LogRecord]:
        """The log records of the incident."""
        with self._reading(LOGS_FILE):
            return decode_logs(self._files[LOGS_FILE]) if LOGS_FILE in self._files else []

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except UnreadableInput as problem:
            raise UnreadableInput(f"{self.path / name}: {problem}") from problem

    @property
    def model(self) -> list[dict[str, Json]]:
        """The incident's model turns, one mapping each."""
        return _lines(self.path / MODEL_FILE, self._files[MODEL_FILE])

    @property
    def control(self) -> list[dict[str, Json]] | None:
        """The control's model turns, where a control was recorded."""
        body = self._files.get(CONTROL_FILE)
        return None if body is None else _lines(self.path / CONTROL_FILE, body)

    def including(self, name: str, body: bytes) -> Folder:
        """The same scenario with this file; what is on disk stays as it is."""
        return Folder(self.path, self.scenario, {**self._files, name: body})

    def keep_control(self) -> None:
        """Put the control's turns on disk.

        Raises:
            CannotWrite: they cannot be written.
        """
        files.write(self.path / CONTROL_FILE, self._files[CONTROL_FILE])

    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file a proof is bound to."""
        return {name: hashlib.sha256(body).hexdigest() for name, body in sorted(self._files.items())}


def load(path: Path) -> Folder:
    """The scenario in a folder.

    Raises:
        ConfigurationError: there is none, it is of another version, or something in it is wrong or missing.
    """
    if not (path / SCENARIO_FILE).is_file():
        raise ConfigurationError(
            f"{path}: no {SCENARIO_FILE} here; name a folder that 'redfirst freeze' wrote."
        )
    found = {name: files.read(path / name) for name in HASHED_FILES if (path / name).is_file()}
    for name in (TRACE_FILE, MODEL_FILE):
        if name not in found:
            raise ConfigurationError(f"{path}: {name} is missing; freeze the run again.")
    source = str(path / SCENARIO_FILE)
    try:
        text = found[SCENARIO_FILE].decode("utf-8")
    except UnicodeDecodeError as problem:
        line = found[SCENARIO_FILE].count(b"\n", 0, problem.start) + 1
        raise ConfigurationError(f"{source}:{line}: not UTF-8; save it as UTF-8 or freeze again.") from None
    folder = Folder(path, parse(text.removeprefix("\ufeff"), source), found)
    _ = folder.model, folder.control  # a broken recording is found here, not in the middle of a proof
    return folder


def parse(text: str, source: str) -> Scenario:
    """The scenario in the text of a ``scenario.yaml``.

    Raises:
        ConfigurationError: with the line and what is wrong there.
    """
    document = strict_yaml.read(text, source)
    data = document.data
    if isinstance(data, dict) and str(data.get("schema", "")) != SCHEMA:
        raise document.fault(("schema",), _other_version(data.get("schema")))
    try:
        return Scenario.model_validate(data)
    except ValidationError as problem:
        raise refused(document, problem) from None


def _other_version(schema: object) -> str:
    if schema is None:
        return f"there is no schema; this redfirst reads schema: {SCHEMA}."
    name, _, version = str(schema).partition("/")
    ours, _, reads = SCHEMA.partition("/")
    if name == ours and version.isdigit() and int(version) > int(reads):
        return (
            f"schema is {schema!r}, which is newer than this redfirst; it reads {SCHEMA}. Upgrade redfirst."
        )
    return f"schema is {schema!r}; this redfirst reads {SCHEMA}."


def dump(scenario: Scenario) -> str:
    """The text of ``scenario.yaml``: defaults left out, the same scenario always the same bytes."""
    return strict_yaml.dump(
        scenario.model_dump(by_alias=True, mode="json", exclude_defaults=True, exclude_none=False)
    )


def lines(turns: Iterable[Mapping[str, Json]]) -> bytes:
    """Model turns as JSON lines."""
    return b"".join(json.dumps(turn, ensure_ascii=False).encode() + b"\n" for turn in turns)


def _lines(path: Path, body: bytes) -> list[dict[str, Json]]:
    out: list[dict[str, Json]] = []
    for number, line in enumerate(body.splitlines(), 1):
        try:
            turn = json.loads(line)
            out.append({"turn": int(turn["turn"]), "response": turn["response"], **_optional(turn)})
        except (ValueError, KeyError, TypeError, RecursionError) as problem:
            raise ConfigurationError(
                f"{path}:{number}: not a recorded model turn ({type(problem).__name__}: {problem}); freeze the run again."
            ) from problem
    return out


def _optional(turn: Mapping[str, Json]) -> dict[str, Json]:
    found = {key: turn[key] for key in ("request", "error") if turn.get(key) is not None}
    if not all(isinstance(part, dict) for part in found.values()):
        raise TypeError("request and error are mappings")
    messages = found.get("request", {}).get("messages", [])
    if not isinstance(messages, list) or not all(isinstance(key, str) for key in messages):
        raise TypeError("request.messages is a list of digests")
    return found

"""A regression scenario: a folder a reviewer can read, and the plain data the player runs.

``scenario.yaml`` is the whole of it but for the recordings: ``trace.otlp.pb.gz`` (the incident),
``model.jsonl`` (its model turns) and ``good.jsonl`` (those of the control). ``proof.json`` is written
by ``prove`` and holds for exactly these bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.evaluators.check import Check, check_from_spec
from redfirst.evaluators.otlp import decode_logs, decode_traces
from redfirst.evaluators.span import LogRecord, Span

Json = Any

SCHEMA: Literal["redfirst.scenario/1"] = "redfirst.scenario/1"
SCENARIO_FILE = "scenario.yaml"
TRACE_FILE = "trace.otlp.pb.gz"
MODEL_FILE = "model.jsonl"
LOGS_FILE = "logs.otlp.pb.gz"
CONTROL_FILE = "good.jsonl"
PROOF_FILE = "proof.json"
HASHED_FILES = (SCENARIO_FILE, TRACE_FILE, LOGS_FILE, MODEL_FILE, CONTROL_FILE)
"""What a proof is bound to, byte for byte."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Request(_Part):
    """What the agent is called with: exactly one of these."""

    text: str | None = None
    messages: list[dict[str, Json]] | None = Field(default=None, min_length=1)
    arguments: dict[str, Json] | None = None

    @model_validator(mode="after")
    def _one(self) -> Request:
        if sum(value is not None for value in (self.text, self.messages, self.arguments)) != 1:
            raise ValueError("give exactly one of text, messages, arguments")
        return self


class Clock(_Part):
    """The wall clock of a run: frozen at ``start``, moved by ``tick`` seconds at each call."""

    start: str
    tick: float = Field(default=1.0, ge=0)

    @field_validator("start")
    @classmethod
    def _instant(cls, value: str) -> str:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            raise ValueError("give the time with its zone, as in 2026-11-20T09:14:00Z")
        return value

    @property
    def seconds(self) -> float:
        """Unix seconds of the start."""
        return datetime.fromisoformat(self.start).astimezone(UTC).timestamp()


class WorldPart(_Part):
    """What the run would otherwise take from its machine."""

    clock: Clock
    seed: int
    state: dict[str, Json] | None = None
    """The state at the start; absent when the incident reported none."""


class MatchPart(_Part):
    """How a call finds its recording."""

    args: list[str] | None = None
    ignore: list[str] = []


class ErrorPart(_Part):
    """The exception a tool or model raised."""

    type: str
    message: str


class ResponsePart(_Part):
    """One recorded answer."""

    when: dict[str, Json] = {}
    after: list[str] = []
    returns: Json = Field(default=None, alias="return")
    error: ErrorPart | None = None
    put: dict[str, Json] = Field(default={}, alias="set")
    unset: list[str] = []
    times: Annotated[int, Field(ge=1)] | Literal["any"] = 1
    source: Literal["incident", "control", "authored"] = "incident"

    @model_validator(mode="after")
    def _answers(self) -> ResponsePart:
        if ("returns" in self.model_fields_set) == (self.error is not None):
            raise ValueError("give exactly one of return, error")
        return self

    @field_validator("put", "unset")
    @classmethod
    def _pointers(cls, value: Iterable[str]) -> Iterable[str]:
        for pointer in value:
            if not pointer.startswith("/"):
                raise ValueError(
                    f"{pointer!r} is no JSON pointer; begin with a slash, as in /orders/A-7/status"
                )
        return value


class ToolPart(_Part):
    """One tool of the replayed world."""

    effect: Literal["read", "write", "control"] | None = None
    match: MatchPart = MatchPart()
    responses: list[ResponsePart] = []


class CheckPart(_Part):
    """A check of the scenario: ``target`` must be seen to fail, ``guard`` must not fail either."""

    role: Literal["target", "guard"]
    revision: str
    """Hash of the check's meaning when the run was flagged: the proof is about that meaning."""
    check: dict[str, Json]

    @model_validator(mode="after")
    def _unchanged(self) -> CheckPart:
        try:
            found = check_from_spec(self.check).revision
        except ConfigurationError as problem:
            raise ValueError(str(problem)) from None
        if found != self.revision:
            raise ValueError(
                f"this check means something else than when it flagged the run ({found}); freeze it again"
            )
        return self


class LivePart(_Part):
    """What a live proof asks for."""

    runs: int = Field(default=5, ge=1)
    at_least: float = Field(default=0.30, ge=0, le=1)
    """Smallest acceptable one-sided 95 % Clopper-Pearson lower bound of the red rate."""


class ProofPart(_Part):
    """Settings of ``prove``."""

    live: LivePart = LivePart()
    timeout: float = Field(default=60.0, gt=0)
    """Seconds after which one execution is ended without a verdict."""


class Completeness(_Part):
    """How much of the incident stands behind each boundary."""

    request: Literal["recorded", "reconstructed"]
    model: Literal["recorded", "reconstructed"]
    tools: Literal["recorded", "reconstructed"]
    state: Literal["recorded", "missing"]


class Scenario(_Part):
    """``scenario.yaml``."""

    schema_: Literal["redfirst.scenario/1"] = Field(alias="schema")
    id: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{2,80}$")
    title: str
    agent: str
    """Name of the agent in the project's configuration."""
    origin: dict[str, Json] = {}
    completeness: Completeness
    request: Request
    world: WorldPart
    tools: dict[str, ToolPart]
    checks: list[CheckPart]
    proof: ProofPart = ProofPart()

    @model_validator(mode="after")
    def _judged(self) -> Scenario:
        if not any(part.role == "target" for part in self.checks):
            raise ValueError("a scenario needs at least one check with role: target")
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
        return decode_traces(self._files[TRACE_FILE])

    @property
    def logs(self) -> list[LogRecord]:
        """The log records of the incident."""
        return decode_logs(self._files[LOGS_FILE]) if LOGS_FILE in self._files else []

    @property
    def model(self) -> list[dict[str, Json]]:
        """The incident's model turns, one mapping each."""
        return _lines(self.path / MODEL_FILE, self._files[MODEL_FILE])

    @property
    def control(self) -> list[dict[str, Json]] | None:
        """The control's model turns, where a control was recorded."""
        body = self._files.get(CONTROL_FILE)
        return None if body is None else _lines(self.path / CONTROL_FILE, body)

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
    files = {name: (path / name).read_bytes() for name in HASHED_FILES if (path / name).is_file()}
    for name in (TRACE_FILE, MODEL_FILE):
        if name not in files:
            raise ConfigurationError(f"{path}: {name} is missing; freeze the run again.")
    folder = Folder(
        path, parse(files[SCENARIO_FILE].decode("utf-8", "replace"), str(path / SCENARIO_FILE)), files
    )
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
        raise document.fault(("schema",), f"schema is {data.get('schema')!r}; this redfirst reads {SCHEMA}.")
    try:
        return Scenario.model_validate(data)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the file"
        raise document.fault(
            first["loc"], f"{where}: {first['msg'].removeprefix('Value error, ')}."
        ) from None


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
        except (ValueError, KeyError, TypeError) as problem:
            raise ConfigurationError(
                f"{path}:{number}: not a recorded model turn ({type(problem).__name__}: {problem}); freeze the run again."
            ) from problem
    return out


def _optional(turn: Mapping[str, Json]) -> dict[str, Json]:
    return {key: turn[key] for key in ("request", "error") if key in turn}

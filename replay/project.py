"""The project a command is run in: which agents there are and where things lie.

Read from ``redfirst.yaml``, or ``[tool.redfirst]`` of ``pyproject.toml``, in this folder or the nearest
above it. Only this file names code that redfirst may import.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.evaluators.errors import unread
from redfirst.replay import files
from redfirst.replay.redaction import Redaction

_Section = TypeVar("_Section", bound=BaseModel)
REFERENCE = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$")


class AgentEntry(BaseModel):
    """One agent that redfirst can call."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    call: str = Field(pattern=REFERENCE.pattern)
    """``module:factory``; the factory takes nothing and returns the function that handles a request."""
    input: Literal["text", "messages"] | None = None
    """What that function takes; as recorded when not given."""
    environment: dict[str, str] = {}
    """Environment variables that every replay of it is given, whatever the machine's are."""


class RedactionEntry(BaseModel):
    """What ``freeze`` replaces by pseudonyms."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: list[str] = []
    """Names of JSON members, wherever they stand."""
    patterns: dict[str, str] = {}
    """Regular expressions by a name of yours."""
    personal: list[Literal["email", "phone"]] = []
    """Detectors of personal data."""
    secrets: Literal["replace", "refuse"] = "replace"
    """What becomes of keys, tokens, passwords, card and account numbers that are found."""

    @field_validator("patterns")
    @classmethod
    def _compile(cls, value: dict[str, str]) -> dict[str, str]:
        for name, pattern in value.items():
            try:
                empty = re.compile(pattern).match("")
            except re.error as problem:
                raise ValueError(f"{name} is no regular expression: {problem}") from None
            if empty:
                raise ValueError(f"{name} matches the empty text; ask for at least one character")
        return value


class Settings(BaseModel):
    """Every key of ``redfirst.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    agents: dict[str, AgentEntry] = {}
    rules: str | None = None
    """Path of the rules file, from the folder of the configuration."""
    prices: str | None = None
    """Path of a table of model prices, from the folder of the configuration."""
    traces: list[str] = []
    """Files or folders of OTLP that ``show`` and ``freeze`` look in."""
    path: list[str] = ["."]
    """Folders, from that of the configuration, that agents are imported from."""
    scenarios: str = "scenarios"
    """Folder that ``freeze`` writes to."""
    redaction: RedactionEntry = RedactionEntry()
    """What must not stand in a scenario."""
    serve: dict[str, Any] = {}
    """How ``redfirst serve`` listens, assembles and keeps: see ``Project.section``."""


class Project:
    """The configuration in force and the folder it holds for."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        source: str | None,
        document: strict_yaml.Document | None = None,
    ) -> None:
        """``document`` is the source where it is YAML, so that a fault names its line."""
        self.root = root
        self.settings = settings
        self.source = source
        self._document = document

    @property
    def home(self) -> Path:
        """Where runs are kept: ``REDFIRST_HOME`` or ``.redfirst`` in the project."""
        return Path(os.environ.get("REDFIRST_HOME") or self.root / ".redfirst")

    @property
    def scenarios(self) -> Path:
        """The folder whose folders are scenarios."""
        return self.root / self.settings.scenarios

    @property
    def path(self) -> tuple[str, ...]:
        """What is put before ``sys.path`` when an agent is imported."""
        return tuple(str((self.root / folder).resolve()) for folder in self.settings.path)

    def section(self, key: str, model: type[_Section]) -> _Section:
        """The settings under a key that this room does not read itself.

        Raises:
            ConfigurationError: they are not what the model takes.
        """
        return _validated(model, getattr(self.settings, key), str(self.source), self._document, (key,))

    def redaction(self) -> Redaction:
        """What ``freeze`` replaces; the key is ``REDFIRST_REDACTION_KEY``, or one that is made once and kept in the home.

        Raises:
            CannotWrite: there is none yet, and it cannot be kept.
            ConfigurationError: the one that was kept cannot be read, or is empty.
        """
        wanted = self.settings.redaction
        given = os.environ.get("REDFIRST_REDACTION_KEY")
        return Redaction(
            key=given.encode() if given else _kept_key(self.home / "redaction.key"),
            keys=tuple(wanted.keys),
            patterns=wanted.patterns,
            personal=tuple(wanted.personal),
            refuse_secrets=wanted.secrets == "refuse",
        )

    def redaction_key(self) -> bytes | None:
        """The key of pseudonyms, where there is one; none is made."""
        given = os.environ.get("REDFIRST_REDACTION_KEY")
        if given:
            return given.encode()
        path = self.home / "redaction.key"
        try:
            return path.read_bytes() or None
        except OSError:
            return None  # freeze says what is wrong with it; without it pseudonyms of a scenario cannot be compared

    def agent(self, name: str, override: str | None = None) -> str:
        """The reference of an agent: the override, or the configured one of this name.

        Raises:
            ConfigurationError: the name is not configured, or the override is no ``module:factory``.
        """
        if override is not None:
            if not REFERENCE.match(override):
                raise ConfigurationError(
                    f"--agent {override}: give it as module:factory, as in bookshop.agent:make."
                )
            return override
        if name in self.settings.agents:
            return self.settings.agents[name].call
        known = ", ".join(sorted(self.settings.agents)) or "none"
        raise ConfigurationError(
            f"agent {name!r} is not configured (configured: {known}). Add it under agents: in redfirst.yaml, "
            f"or under [tool.redfirst.agents.{name}] in pyproject.toml, as call: module:factory; or pass --agent."
        )

    def variables_for(self, name: str) -> dict[str, str]:
        """The environment variables that the project sets for an agent."""
        entry = self.settings.agents.get(name)
        return dict(entry.environment) if entry is not None else {}

    def request_for(self, name: str, request: dict[str, Any]) -> dict[str, Any]:
        """The recorded request in the form the configured agent takes.

        Raises:
            ConfigurationError: a conversation of several messages is to be given as one text.
        """
        entry = self.settings.agents.get(name)
        wanted = entry.input if entry is not None else None
        later = {"later": request["later"]} if request.get("later") else {}
        if wanted == "messages" and "text" in request:
            return {"messages": [{"role": "user", "content": request["text"]}], **later}
        if wanted == "text" and "messages" in request:
            if len(request["messages"]) != 1:
                raise ConfigurationError(
                    f"agent {name!r} takes text, and the request has {len(request['messages'])} messages; "
                    f"set input: messages."
                )
            return {"text": request["messages"][0]["content"], **later}
        return request


def _kept_key(path: Path) -> bytes:
    if not path.is_file():
        with files.writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another command made it meanwhile
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_hex(32).encode())
    key = files.read(path)
    if not key:
        raise ConfigurationError(
            f"{path}: the key of the pseudonyms is empty; delete the file and freeze again."
        )
    return key


def load_project(start: Path) -> Project:
    """The project that a folder belongs to; without a configuration, the folder itself with defaults.

    Raises:
        ConfigurationError: the configuration found is wrong.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "redfirst.yaml").is_file():
            return project_at(folder / "redfirst.yaml")
        if (folder / "pyproject.toml").is_file():
            source = folder / "pyproject.toml"
            try:
                table = tomllib.loads(source.read_text(encoding="utf-8")).get("tool", {}).get("redfirst")
            except tomllib.TOMLDecodeError as problem:
                raise ConfigurationError(f"{source}: not TOML: {problem}.") from problem
            if table is not None:
                return Project(folder, _settings(table, str(source), None), str(source))
    return Project(start.resolve(), Settings(), None)


def project_at(source: Path) -> Project:
    """The project that a configuration file in YAML describes.

    Raises:
        ConfigurationError: the file cannot be read or is wrong.
    """
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{source}: cannot be read: {unread(problem)}.") from problem
    document = strict_yaml.read(text, str(source))
    settings = _settings(document.data, str(source), document)
    return Project(source.resolve().parent, settings, str(source), document)


def _settings(data: Any, source: str, document: strict_yaml.Document | None) -> Settings:
    if data is not None and not isinstance(data, Mapping):
        raise ConfigurationError(f"{source}: a mapping of settings is expected.")
    return _validated(Settings, data or {}, source, document)


def _validated(
    model: type[_Section],
    data: Any,
    source: str,
    document: strict_yaml.Document | None,
    under: tuple[str, ...] = (),
) -> _Section:
    try:
        return model.model_validate(data)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = (*under, *first["loc"])
        what = f"{'.'.join(map(str, place))}: {_said(first, model)}"
        raise (document.fault(place, what) if document else ConfigurationError(f"{source}: {what}")) from None


def _said(first: ErrorDetails, model: type[BaseModel]) -> str:
    """What is wrong, and what is expected instead."""
    key = str(first["loc"][-1])
    if first["type"] == "extra_forbidden":
        known = list(model.model_fields) if len(first["loc"]) == 1 else []
        return f"there is no such key{'; ' + strict_yaml.nearest(key, known) if known else ''}"
    if first["type"] == "missing":
        return "this key is needed"
    if key == "call":
        return f"{first['input']!r} is no reference; give it as module:factory, as in bookshop.agent:make"
    if first["type"] == "model_type":
        example = ", as in {call: bookshop.agent:make}" if first["loc"][0] == "agents" else ""
        return f"{first['input']!r} is no mapping; give it keys{example}"
    return first["msg"].removeprefix("Value error, ")

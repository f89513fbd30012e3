"""The parts of ``scenario.yaml``, each of which says what may stand in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from redfirst.evaluators import ConfigurationError, strict_yaml
from redfirst.evaluators.check import check_from_spec

Json = Any

LAST_YEAR = 2200
"""Of a frozen clock: its nanoseconds must fit into 64 bits."""


class Part(BaseModel):
    """Frozen, and without a key that nobody reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def refused(document: strict_yaml.Document, problem: ValidationError) -> ConfigurationError:
    """The first thing that is wrong in a document, with its line."""
    first = problem.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "the file"
    return document.fault(first["loc"], f"{where}: {first['msg'].removeprefix('Value error, ')}.")


class LaterTurn(Part):
    """What the user says in a later turn: found by the turn's number, never by what the agent said."""

    turn: int = Field(ge=2)
    content: str


class Request(Part):
    """What the agent is called with: exactly one of text, messages, arguments."""

    text: str | None = None
    messages: list[dict[str, Json]] | None = Field(default=None, min_length=1)
    arguments: dict[str, Json] | None = None
    later: list[LaterTurn] = []

    @model_validator(mode="after")
    def _one(self) -> Request:
        if sum(value is not None for value in (self.text, self.messages, self.arguments)) != 1:
            raise ValueError("give exactly one of text, messages, arguments")
        if [turn.turn for turn in self.later] != list(range(2, len(self.later) + 2)):
            raise ValueError("later: the user's turns are numbered 2, 3, … in this order")
        if self.later and self.arguments is not None:
            raise ValueError("later: an agent called with arguments takes no further turn")
        return self


class Clock(Part):
    """The wall clock of a run: frozen at ``start``, moved by ``tick`` seconds at each call."""

    start: str
    tick: float = Field(default=1.0, ge=0, le=86400)

    @field_validator("start")
    @classmethod
    def _instant(cls, value: str) -> str:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            raise ValueError("give the time with its zone, as in 2026-11-20T09:14:00Z")
        if not 1970 <= parsed.year <= LAST_YEAR:
            raise ValueError(f"give a year from 1970 to {LAST_YEAR}")
        return value

    @property
    def seconds(self) -> float:
        """Unix seconds of the start."""
        return datetime.fromisoformat(self.start).astimezone(UTC).timestamp()


class WorldPart(Part):
    """What the run would otherwise take from its machine."""

    clock: Clock
    seed: int
    state: dict[str, Json] | None = None
    """The state at the start; absent when the incident reported none."""


class MatchPart(Part):
    """How a call finds its recording."""

    args: list[str] | None = None
    ignore: list[str] = []


class ErrorPart(Part):
    """The exception a tool or model raised."""

    type: str
    message: str


class ResponsePart(Part):
    """One recorded answer."""

    when: dict[str, Json] = {}
    after: list[str] = []
    returns: Json = Field(default=None, alias="return")
    failed: bool = False
    """Whether ``return`` says of itself that it is an error: a framework's answer in place of an exception."""
    error: ErrorPart | None = None
    put: dict[str, Json] = Field(default={}, alias="set")
    unset: list[str] = []
    times: Annotated[int, Field(ge=1)] | Literal["any"] = 1
    source: Literal["incident", "control", "authored"] = "incident"

    @model_validator(mode="after")
    def _answers(self) -> ResponsePart:
        if ("returns" in self.model_fields_set) == (self.error is not None):
            raise ValueError("give exactly one of return, error")
        if self.failed and self.error is not None:
            raise ValueError("failed: stands beside return; an error has failed anyway")
        return self

    @model_serializer(mode="wrap")
    def _with_null(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Json]:
        """A recorded null is an answer, and not the default of a field."""
        out: dict[str, Json] = handler(self)
        if "returns" in self.model_fields_set:
            out.setdefault("return" if info.by_alias else "returns", self.returns)
        return out

    @field_validator("put", "unset")
    @classmethod
    def _pointers(cls, value: Iterable[str]) -> Iterable[str]:
        for pointer in value:
            if not pointer.startswith("/"):
                raise ValueError(
                    f"{pointer!r} is no JSON pointer; begin with a slash, as in /orders/A-7/status"
                )
        return value


class ToolPart(Part):
    """One tool of the replayed world."""

    effect: Literal["read", "write", "control"] | None = None
    match: MatchPart = MatchPart()
    responses: list[ResponsePart] = []


class CheckPart(Part):
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


class LivePart(Part):
    """What a live proof asks for."""

    runs: int = Field(default=5, ge=1)
    at_least: float = Field(default=0.30, ge=0, le=1)
    """Smallest acceptable one-sided 95 % Clopper-Pearson lower bound of the red rate."""


class ProofPart(Part):
    """Settings of ``prove``."""

    live: LivePart = LivePart()
    timeout: float = Field(default=60.0, gt=0, le=86400)
    """Seconds after which one execution is ended without a verdict."""


class Completeness(Part):
    """How much of the incident stands behind each boundary."""

    request: Literal["recorded", "reconstructed", "redacted"]
    model: Literal["recorded", "reconstructed", "redacted"]
    tools: Literal["recorded", "reconstructed", "redacted"]
    state: Literal["recorded", "missing", "redacted"]

"""What one span says, in the words of no dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Protocol

from redfirst.evaluators.later import OnDemand
from redfirst.evaluators.span import LogRecord, Span
from redfirst.evaluators.trajectory import (
    MISSING,
    Effect,
    Gap,
    Message,
    RunEvent,
    StateSnapshot,
    Tokens,
)


class Kind(StrEnum):
    """What a span stands for."""

    AGENT = "agent"
    MODEL = "model"
    TOOL = "tool"
    HANDOFF = "handoff"
    STRUCTURE = "structure"
    """A chain, a task, a workflow, a retriever, HTTP: holds others, is itself none of the above."""


@dataclass(frozen=True, kw_only=True)
class SpanFacts:
    """Everything that was read of one span. What the span does not say is missing here."""

    dialect: str
    kind: Kind = Kind.STRUCTURE
    name: str | None = None
    """Name of the agent, of the tool, or of the agent a hand-off goes to."""
    agent: str | None = None
    """The agent a model or tool span says it belongs to; for a hand-off, where control comes from."""
    arguments: Mapping[str, object] | None = None
    bare_arguments: tuple[object, ...] | None = None
    """Argument values that were recorded without their names."""
    result: object = MISSING
    call_id: str | None = None
    failed: bool = False
    error: str | None = None
    error_type: str | None = None
    interrupted: bool = False
    refused: str | None = None
    """Why a guard did not let the call run."""
    """The run was parked for a person; the framework raised to do so."""
    input: OnDemand[tuple[Message, ...] | None] = OnDemand(None)  # noqa: RUF009 - a descriptor
    output: Message | None = None
    finish: str | None = None
    model: str | None = None
    response_id: str | None = None
    late: bool = False
    """The answer to a call whose own span had ended, written when the stream of it did."""
    tokens: Tokens = field(default_factory=Tokens)
    tools: OnDemand[tuple[Mapping[str, object], ...] | None] = OnDemand(None)  # noqa: RUF009 - a descriptor
    raw_output: OnDemand[object] = OnDemand(MISSING)  # noqa: RUF009 - a descriptor
    session: str | None = None
    user: str | None = None
    execution: str | None = None
    version: str | None = None
    request: str | None = None
    answer: str | None = None
    effect: Effect | None = None
    idempotent: bool | None = None
    poll: bool = False
    schema: Mapping[str, object] | None = None
    step_cap: int | None = None
    says_why: bool = False
    """Whether whoever writes this agent span also says why the run ended, so that silence means nothing."""
    stop_reason: str | None = None
    stop_cap: int | None = None
    states: tuple[StateSnapshot, ...] = ()
    events: tuple[RunEvent, ...] = ()
    gaps: tuple[Gap, ...] = ()
    """Facts of the run that the span was to say and does not."""
    notes: tuple[str, ...] = ()
    """Facts above that were rebuilt from another place than their own attribute."""

    @property
    def says_something(self) -> bool:
        """Whether a model span carries anything of a call that was made."""
        return bool(
            self.output is not None
            or self.input
            or self.finish
            or self.response_id
            or self.failed
            or self.tokens.input is not None
            or self.tokens.output is not None
        )


_FIELDS: Mapping[str, object] = {
    one.name: getattr(SpanFacts, one.name, None) for one in fields(SpanFacts)
} | {"tokens": Tokens()}


def facts_with(found: Mapping[str, object]) -> SpanFacts:
    """The facts of these fields. A span fills few of them, so the others are taken all together."""
    facts = object.__new__(SpanFacts)
    held = facts.__dict__
    held |= _FIELDS
    held |= found
    if len(held) != len(_FIELDS):
        raise TypeError(f"no fields of SpanFacts: {sorted(found.keys() - _FIELDS.keys())}")
    return facts


class Dialect(Protocol):
    """Reads the spans of one vocabulary. Pure; never raises for what a span holds."""

    name: str

    def claims(self, span: Span) -> bool:
        """Whether this span is written in this dialect."""
        ...

    def read(self, span: Span, logs: Sequence[LogRecord]) -> SpanFacts:
        """The facts of a claimed span and the log records that belong to it."""
        ...

"""A run of an agent as rules see it: what was asked, called, decided, changed and answered.

Every fact that could not be read is missing: ``None`` for a scalar or a mapping, ``MISSING`` for a
value that may itself be null. Missing is never empty and never guessed; ``Trajectory.coverage``
says which facts are missing and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from redfirst.evaluators.later import OnDemand


class Missing(Enum):
    """The type of ``MISSING``: no value was recorded, which is not the value null."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = Missing.MISSING


class CallStatus(StrEnum):
    """How one attempt of a tool call ended."""

    OK = "ok"
    TOOL_ERROR = "tool_error"
    """The tool answered with an error."""
    INFRA_ERROR = "infra_error"
    """Time-out, 429, 5xx, lost connection: the effect of a write is unknown."""
    DENIED = "denied"
    """A guard or a person refused it; it did not run."""
    NOT_EXECUTED = "not_executed"
    """The model asked for it and nothing ran it."""
    UNKNOWN = "unknown"


class Effect(StrEnum):
    """What a call does to the world, where the tool declares it."""

    READ = "read"
    WRITE = "write"
    CONTROL = "control"


class Source(StrEnum):
    """Where a call was read from."""

    SPAN = "span"
    MESSAGE = "message"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One attempt of a tool call by the agent."""

    index: int
    """Place in the list: by turn, within a turn in the order of request. Display only; order is ``precedes``."""
    name: str
    arguments: Mapping[str, object] | None = None
    """The arguments by name; ``None`` when they could not be read, ``{}`` when there were none."""
    result: object = MISSING
    error: str | None = None
    status: CallStatus = CallStatus.UNKNOWN
    start_ns: int = 0
    end_ns: int = 0
    agent: str | None = None
    agent_spans: tuple[str, ...] = ()
    """The spans of the agents around the call, outermost first."""
    turn: int | None = None
    """Number of the model call (``ModelCall.index``) that asked for it, where that is known."""
    span_id: str = ""
    """The span that recorded the call; every accusation points here."""
    source: Source = Source.SPAN
    call_id: str | None = None
    effect: Effect | None = None
    idempotent: bool | None = None
    poll: bool = False
    by_code: bool = False
    """True when a turn is known and no model message asked for this call: the agent's code made it."""
    schema: Mapping[str, object] | None = None
    """JSON Schema of the arguments, where the trace carries one."""

    @property
    def ran(self) -> bool:
        """Whether the tool was at least tried: a write that failed on the way may have happened."""
        return self.status not in (CallStatus.NOT_EXECUTED, CallStatus.DENIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedCall:
    """A tool call as a model asked for it; ``arguments`` is ``None`` when they are not a JSON object."""

    name: str
    arguments: Mapping[str, object] | None = None
    raw_arguments: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation. ``content`` is ``None`` when it was not recorded."""

    role: str
    content: str | None = None
    tool_calls: tuple[RequestedCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    failed: bool = False
    """The answer of a tool that says of itself that it is an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of one model call or summed over a run; ``None`` when not reported.

    ``input`` includes ``cached``; ``output`` includes ``reasoning``.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One call of a model that was answered or failed."""

    index: int
    span_id: str
    model: str | None = None
    start_ns: int = 0
    end_ns: int = 0
    agent: str | None = None
    input_messages: OnDemand[tuple[Message, ...] | None] = OnDemand(None)  # noqa: RUF009 - a descriptor
    output: Message | None = None
    finish_reason: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    tools: OnDemand[tuple[Mapping[str, object], ...] | None] = OnDemand(None)  # noqa: RUF009 - a descriptor
    """Tool definitions offered to the model, as found."""
    raw_output: OnDemand[object] = OnDemand(MISSING)  # noqa: RUF009 - a descriptor
    """The response exactly as recorded by our own instrumentation, for replay."""
    error: str | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff:
    """Control passed from one agent to another. Not a tool call."""

    source: str | None
    target: str | None
    span_id: str
    name: str | None = None
    start_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSnapshot:
    """The state of the world as the agent reported it at one moment."""

    time_ns: int
    state: Mapping[str, object]
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEvent:
    """A fact the agent reported about its own run: an approval, a feedback, a pause."""

    name: str
    time_ns: int
    attributes: Mapping[str, object]
    span_id: str


class Stop(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"
    HANDOFF = "handoff"
    REFUSED = "refused"
    STEP_CAP = "step_cap"
    TOKEN_CAP = "token_cap"  # noqa: S105 - a reason, not a secret
    TIME_CAP = "time_cap"
    LOOP_CUT = "loop_cut"
    ERROR = "error"
    INFRA = "infra"
    ABANDONED = "abandoned"
    PARKED = "parked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Termination:
    """Why a run ended, the cap that ended it where there was one, and what said so."""

    reason: Stop
    cap: int | None = None
    because: str = ""
    span_id: str = ""
    waited: bool = False
    """The end was waited for: that none came was observed, and is not only read from what is missing."""


class Completeness(StrEnum):
    """Whether every span of the run is there."""

    COMPLETE = "complete"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A fact that is missing, or that was rebuilt from another place, and why."""

    fact: str
    because: str
    span_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What could and could not be read of a run."""

    missing: tuple[Gap, ...] = ()
    reconstructed: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One run: the unit of verdict, store and alert."""

    run_id: str
    trace_ids: tuple[str, ...]
    root_span_id: str
    """Where evidence of an absence points."""
    dialects: tuple[str, ...] = ()
    completeness: Completeness = Completeness.COMPLETE
    agents: tuple[str, ...] = ()
    agent_version: str | None = None
    models: tuple[str, ...] = ()
    session_id: str | None = None
    user_id: str | None = None
    request: str | None = None
    """The text of the user message that began the run."""
    history: tuple[Message, ...] | None = None
    """The messages the first model call was given (system prompt and earlier turns included)."""
    answer: str | None = None
    termination: Termination = Termination(reason=Stop.UNKNOWN)
    tool_calls: tuple[ToolCall, ...] = ()
    model_calls: tuple[ModelCall, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    cost_usd: float | None = None
    """What the model calls cost, in US dollars, where the trace says so of each."""
    states: tuple[StateSnapshot, ...] = ()
    events: tuple[RunEvent, ...] = ()
    coverage: Coverage = field(default_factory=Coverage)
    start_ns: int = 0
    end_ns: int = 0
    span_ids: frozenset[str] = frozenset()
    coarse_order: bool = False
    """True when times of calls are unknown and order is that of model turns alone."""

    def calls_to(self, *names: str) -> Sequence[ToolCall]:
        """The attempts of the named tools, in display order."""
        return [call for call in self.tool_calls if call.name in names]

    def user_texts(self) -> Iterator[str]:
        """What the user said, as far as it was recorded, each text once.

        Later turns may repeat the conversation or be given only what is new. An inner agent's user is an agent.
        """
        texts: dict[str, None] = {}
        turns = [turn for turn in self.model_calls if turn.agent == self.model_calls[0].agent]
        for messages in (self.history, *(turn.input_messages for turn in turns)):
            for message in messages or ():
                if message.role == "user" and message.content is not None:
                    texts[message.content] = None
        if not texts and self.request is not None:
            texts[self.request] = None
        yield from texts


def precedes(earlier: ToolCall, later: ToolCall, *, order: str = "decided") -> bool:
    """Whether one call happened before another: it ended no later than the other began.

    With ``order="decided"`` two calls of one model turn are concurrent even when they ran one after
    the other, because the model decided the second without seeing the first's result.
    ``order="executed"`` compares intervals alone (safety of state).
    """
    if earlier is later:
        return False
    if earlier.turn is not None and later.turn is not None:
        if earlier.turn == later.turn and order == "decided":
            return False
        if earlier.turn != later.turn and not (earlier.end_ns and later.start_ns):
            return earlier.turn < later.turn
    if not earlier.end_ns or not later.start_ns:
        return False
    began_first = (earlier.start_ns, earlier.index) < (later.start_ns, later.index)
    return earlier.end_ns <= later.start_ns and began_first

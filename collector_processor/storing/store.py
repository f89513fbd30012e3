"""The seam of the store: what is known of runs, their verdicts, where their spans lie, and what is to be sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Protocol

from redfirst.collector_processor.journal.format import Position
from redfirst.evaluators.canonical import digest
from redfirst.evaluators.errors import RedfirstError

Json = Any


def request_hash(request: str) -> str:
    """Equal for runs that began with the same words."""
    return digest(request)[:32]


class RunState(StrEnum):
    """What became of a trace."""

    SCORED = "scored"
    NOT_A_RUN = "not_a_run"
    """It has no agent, model or tool call; kept and forwarded, never judged."""
    UNSCORED = "unscored"
    """It could not be judged; ``because`` says why. Never counted as passed or failed."""
    PART = "part"
    """Its spans belong to a run of several traces, which ``part_of`` names; it has no verdict of its own."""
    DELETED = "deleted"
    """A person erased it; its late spans are dropped."""
    EXPIRED = "expired"
    """Its verdict was kept for as long as was asked; its late spans are dropped."""


class StoreRefused(RedfirstError):
    """The store cannot be opened: it belongs to a newer version, to another process, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The outcome of one cut, as it is stored in one transaction."""

    run_id: str
    state: RunState
    tenant: str = "default"
    spans: int
    span_set_hash: str
    positions: Sequence[Position]
    """Every journal record that holds spans of the run."""
    cut: str
    """Why the assembler released it."""
    arrived_ns: int
    """When its first record arrived."""
    judged_ns: int
    record: str | None = None
    """The JSON object of ``redfirst score --json``; None when there is no run in the trace."""
    agent: str | None = None
    service: str = ""
    """The ``service.name`` of its spans; counted by, not stored."""
    request_hash: str | None = None
    flagged: bool = False
    ending: str = "unknown"
    """Why the run ended, as ``Stop`` names it."""
    because: str = ""
    reason: str = ""
    """Why there is no verdict, as a short name; empty when there is one."""
    verdicts: Sequence[Mapping[str, Json]] = ()
    """The verdicts of the record."""
    revision: str = ""
    """Hash of the checks that judged: the same spans under other checks make another version."""
    late: int = 0
    """How often the run was judged again because of late spans, this time included."""
    part_of: str | None = None
    """The run of several traces that this trace is part of."""
    due_ns: int | None = None
    """When the run is told to be abandoned if nothing comes; None when that is not to be."""
    session: str | None = None
    user: str | None = None
    meetings: Sequence[str] | None = None
    """What the trace may share a run by; None leaves what was stored."""
    only_positions: bool = False
    """The run is not judged again: what came is kept with it, and nothing else changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What a landing did."""

    run_id: str
    version: int
    new: bool
    """False when the run was stored with the same spans before: nothing was added but positions."""
    was_flagged: bool | None = None
    """The verdict that this version supersedes; None for a first version."""
    erased: bool = False
    """It was open when all runs of its user or session were erased: nothing of it is kept but a tombstone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the store has of a run already."""

    state: RunState
    version: int
    positions: frozenset[Position]
    late: int = 0
    arrived_ns: int = 0
    judged_ns: int = 0
    ending: str = "unknown"
    cut: str = ""
    part_of: str | None = None
    meetings: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """A run that was judged before, as the assembler remembers it."""

    run_id: str
    late: int
    ending: str
    cut: str
    judged_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """The latest version of a run, or a given one."""

    run_id: str
    version: int
    state: RunState
    tenant: str
    agent: str | None
    flagged: bool
    spans: int
    span_set_hash: str
    cut: str
    arrived_ns: int
    judged_ns: int
    because: str = ""
    reason: str = ""
    part_of: str | None = None
    record: Mapping[str, Json] | None = None
    failed: Sequence[str] = ()
    """The failed checks that flag it."""
    labels: Sequence[Label] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person said of a verdict: that it was right, or wrong."""

    run_id: str
    check: str
    """Empty for the run as a whole."""
    right: bool
    note: str = ""
    at_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ToJudgeAgain:
    """What was found to be judged by other checks than those in force."""

    noted: int
    """Runs that are judged again, with those that were noted before and are not done."""
    spans_gone: int
    """Runs that keep the verdict they have: the journal no longer holds all of their spans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose runs are to be erased."""

    what: Literal["user", "session"]
    name: str
    tenant: str | None = None
    """Of this tenant alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """What was let go for a destination that is configured no more."""

    rows: int
    """Things that waited to be told."""
    erased: int
    """Erased runs of which it may still hold something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxRow:
    """One thing to deliver to one destination, written in the transaction of what it tells."""

    seq: int
    destination: str
    run_id: str
    version: int
    body: Mapping[str, Json]
    """``{"run_id", "version", "supersedes", "state", "agent", "flagged", "was_flagged", "tenant", "judged_ns",
    "verdicts": {check: outcome}}``: enough to count by, without reading the run."""
    attempts: int
    created_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Which runs to list, newest verdict first."""

    flagged: bool | None = None
    states: Sequence[RunState] = (RunState.SCORED, RunState.UNSCORED)
    agent: str | None = None
    request_hash: str | None = None
    prefix: str = ""
    before_ns: int | None = None
    since_ns: int | None = None
    """Judged at this time or later."""
    text: str = ""
    """Words, or phrases in double quotes, that all stand in the request or the answer."""
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    limit: int | None = None
    records: bool = False
    """Whether to read the runs' records too."""


class StoreReader(Protocol):
    """Reads a store, also while a service writes it. Safe from any thread."""

    def runs(self, query: Query) -> list[StoredRun]:
        """The latest versions that the query asks for."""
        ...

    def versions(self, run_id: str) -> list[StoredRun]:
        """Every version of a run with its record, oldest first; empty when it is not known."""
        ...

    def labels(self) -> list[Label]:
        """What people said of verdicts, in no order."""
        ...

    def positions(self, run_id: str) -> list[Position]:
        """The journal records that hold the spans and log records of a trace, in order of arrival."""
        ...

    def traces_of(self, run_id: str) -> list[str]:
        """The traces that a run is made of: itself, or those that are part of it. Empty when it is not known."""
        ...

    def pinned_segments(self) -> frozenset[int]:
        """Journal segments that flagged runs lie in."""
        ...

    def cursor(self, name: str) -> Position | None:
        """Where the reader of that name goes on; None when it never began."""
        ...

    def close(self) -> None: ...


class Store(StoreReader, Protocol):
    """The one writer of a store. Every method that changes something is one transaction, durable on return."""

    def known(self, run_id: str) -> Known | None:
        """What there is of a run, erased ones too."""
        ...

    def land(
        self,
        landings: Sequence[Landing],
        *,
        cursor: Position | None,
        outbox: Sequence[str] = (),
        joined: Sequence[str] = (),
    ) -> list[Landed]:
        """Store verdicts, positions, the assembler's cursor and one outbox row per new version and destination.

        A landing with the spans of the stored version, judged by the same checks, adds positions only; one for an
        erased run adds nothing. A run that was stored as unscored gets a new version even with the same spans.
        ``joined`` are meetings that were judged as they are with this. Without a cursor the stored one stays.
        """
        ...

    def join_later(self, meetings: Sequence[str], due_ns: int) -> None:
        """These are to be judged together at that time; one that waits already keeps its time."""
        ...

    def joins(self) -> Mapping[str, int]:
        """The meetings that are to be judged, and when."""
        ...

    def meeting(self, meetings: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
        """All traces and all meetings that are connected with these, the newest traces first."""
        ...

    def rootless(self) -> list[tuple[str, int]]:
        """The runs that are to be told abandoned, and when."""
        ...

    def judge_again(self, *, since_ns: int, revision: str, segments: Collection[int]) -> ToJudgeAgain:
        """Note every run judged since then by other checks than these whose spans lie in these segments of the journal."""
        ...

    def outdated(self, *, since_ns: int, revision: str) -> int:
        """How many runs were judged since then by other checks than these."""
        ...

    def left_to_judge_again(self) -> int:
        """How many runs are noted, those of several traces too."""
        ...

    def to_judge_again(self, limit: int) -> list[str]:
        """Some of the runs that were noted."""
        ...

    def expire(self, before_ns: int, *, at_ns: int, limit: int) -> int:
        """Leave a tombstone for runs judged last before then; how many there were, at most ``limit``."""
        ...

    def save_cursor(self, name: str, position: Position) -> None: ...

    def cursors(self) -> Mapping[str, Position]:
        """Every reader's position; retention keeps what the slowest still needs."""
        ...

    def recent(self, limit: int) -> list[Recent]:
        """The runs judged last, oldest first."""
        ...

    def outbox_due(self, destination: str, now_ns: int, limit: int) -> list[OutboxRow]:
        """What that destination should be sent now, oldest first."""
        ...

    def outbox_done(self, seqs: Sequence[int]) -> None:
        """These were delivered."""
        ...

    def outbox_later(self, seq: int, next_ns: int, error: str) -> None:
        """This one failed and is tried again; it counts as an attempt."""
        ...

    def label(self, label: Label) -> bool:
        """Keep what a person said; False when there is no such run."""
        ...

    def told(self, destination: str, run_id: str) -> Mapping[str, Json] | None:
        """What a destination may hold of a run, as ``tell`` kept it; also when the run was erased since."""
        ...

    def tell(self, destination: str, run_id: str, what: Mapping[str, Json] | None) -> None:
        """Keep what a destination may hold of a run; None when it holds nothing any more."""
        ...

    def delete(self, run_id: str, *, at_ns: int) -> bool:
        """Erase a run with all of its traces and leave tombstones; False when there is no such run. Every destination
        that was told something of it gets an outbox row, in the same transaction."""
        ...

    def erase_all(self, owner: Owner, *, at_ns: int) -> list[str]:
        """Erase every run of a user or a session as ``delete`` does, and those whose first record came before this time
        as soon as they are landed; the ids of those that were there. Only a hash of the name is kept, until ``expire``
        comes to it."""
        ...

    def forget_destinations(self, configured: Collection[str]) -> Mapping[str, Unsent]:
        """Let go what waits for all other destinations, and what they were told of runs that are erased; by destination.
        What they were told of runs that are still there is kept, for the day they are configured again."""
        ...

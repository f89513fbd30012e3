"""What a proof says: its level, its steps, and the name of every refusal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from redfirst.replay.outcome import Result, Signature


class Level(StrEnum):
    """What was live when the agent was seen to fail."""

    RECORDED = "recorded"
    """The agent's code; model and tools from the tape."""
    LIVE = "live"
    """The agent's code and its model; tools from fixtures."""


class Refusal(StrEnum):
    """Why there is no proof."""

    TRACE_NOT_RED = "trace_not_red"
    DID_NOT_FAIL = "did_not_fail"
    OTHER_REASON = "other_reason"
    TOO_RARE = "too_rare"
    HARNESS_BROKEN = "harness_broken"
    CONTROL_NOT_GREEN = "control_not_green"
    NONDETERMINISTIC = "nondeterministic"
    INCONCLUSIVE = "inconclusive"
    OFF_TAPE = "off_tape"
    RECORDING_STALE = "recording_stale"
    CANNOT_REBUILD = "cannot_rebuild"
    NETWORK = "network"
    GRADER_READ = "grader_read"
    AGENT_NOT_CALLED = "agent_not_called"
    UNSEEN_CALL = "unseen_call"
    TIMED_OUT = "timed_out"
    CHILD_DIED = "child_died"
    OUR_FAULT = "our_fault"

    @property
    def exit_code(self) -> int:
        """1: it did not fail, or for another reason; 3: nothing can be said."""
        return 1 if self in _DID_NOT_FAIL else 3


_DID_NOT_FAIL = frozenset(
    {Refusal.TRACE_NOT_RED, Refusal.DID_NOT_FAIL, Refusal.OTHER_REASON, Refusal.TOO_RARE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of the protocol and what it showed."""

    name: str
    said: str
    ok: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The outcome of ``prove``: a proof, or a named refusal."""

    scenario: str
    agent: str
    """``module:factory`` of the agent under proof."""
    level: Level
    steps: tuple[Step, ...]
    refusal: Refusal | None = None
    because: str = ""
    signature: Signature = frozenset()
    control: str = ""
    """``agent REF``, ``passing run`` or ``derived``."""
    red: Result | None = None
    runs: tuple[Result, ...] = ()
    """Every execution of the agent under proof."""

    @property
    def proven(self) -> bool:
        """Whether the agent was seen to fail for the reason it failed in production."""
        return self.refusal is None

    @property
    def exit_code(self) -> int:
        """0 proven, 1 it did not fail or failed for another reason, 3 nothing can be said."""
        return 0 if self.refusal is None else self.refusal.exit_code

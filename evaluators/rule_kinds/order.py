"""Which of two calls came first, how far apart, and under the same agent: three-valued."""

from __future__ import annotations

from typing import Literal

from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.rule_kinds.happenings import Happening, Place, place_of
from redfirst.evaluators.trajectory import ToolCall, precedes

Scope = Literal["trace", "subtree", "agent"]


def before(earlier: ToolCall, later: ToolCall, order: str) -> Truth:
    """Whether one call happened before another; unknown when neither times nor turns tell."""
    here, there = place_of(earlier), place_of(later)
    if here is not there:
        return here < there
    if here is Place.EARLIER:
        return earlier.index < later.index
    if precedes(earlier, later, order=order):
        return True
    if precedes(later, earlier, order=order) or earlier is later:
        return False
    same_turn = earlier.turn is not None and earlier.turn == later.turn
    if same_turn and order == "decided":
        return False
    timed = all(time for call in (earlier, later) for time in (call.start_ns, call.end_ns))
    turned = None not in (earlier.turn, later.turn) and not same_turn
    return False if timed or turned else None


def within_time(earlier: ToolCall, later: ToolCall, limit_ns: int) -> Truth:
    """Whether the later call began at most so long after the earlier one ended."""
    if place_of(earlier) is Place.EARLIER or not (earlier.end_ns and later.start_ns):
        return None
    return later.start_ns - earlier.end_ns <= limit_ns


def within_turns(earlier: ToolCall, later: ToolCall, limit: int) -> Truth:
    """Whether the later call was asked for at most so many model turns after the earlier one."""
    if earlier.turn is None or later.turn is None:
        return None
    return later.turn - earlier.turn <= limit


def in_scope(other: ToolCall, call: ToolCall, scope: Scope) -> Truth:
    """Whether the other call belongs to the trace, the agent, or the span of the agent that made the call.

    What was said and reported belongs to every agent. ``subtree``: the other call was made under the same
    span of an agent, be it by an agent below. Without agents in the trace it is unknown.
    """
    if scope == "trace" or isinstance(other, Happening) or isinstance(call, Happening):
        return True
    if scope == "agent":
        return None if other.agent is None or call.agent is None else other.agent == call.agent
    if not other.agent_spans or not call.agent_spans:
        return None
    return other.agent_spans[: len(call.agent_spans)] == call.agent_spans

"""Which calls a rule speaks of, what stands at a path of one, and which came before which: three-valued."""

from __future__ import annotations

from dataclasses import dataclass, field

from redfirst.evaluators.canonical import INTENT, equal
from redfirst.evaluators.conditions import Where
from redfirst.evaluators.kleene import Truth, all_of
from redfirst.evaluators.paths import RESULT_OF, call_path, look_into_call, look_up, opened
from redfirst.evaluators.rule_kinds.lacking import lacks_calls, lacks_names
from redfirst.evaluators.trajectory import MISSING, CallStatus, ToolCall, Trajectory, precedes

EVERY_STATUS = frozenset(CallStatus)
RAN = EVERY_STATUS - {CallStatus.NOT_EXECUTED, CallStatus.DENIED}
"""A limit counts every call that was at least tried: a transfer that failed on the way may have arrived."""
SUCCEEDED = frozenset({CallStatus.OK})
"""A need is met by success alone."""


@dataclass(frozen=True, slots=True)
class CallPattern:
    """The calls to some tools, with a status and conditions."""

    tools: tuple[str, ...]
    statuses: frozenset[CallStatus]
    where: Where = field(default_factory=Where)

    def matches(self, call: ToolCall, run: Trajectory, order: str = "decided") -> Truth:
        """Whether this is such a call."""
        if call.name not in self.tools:
            return False
        return all_of((self.status_fits(call), self.where.holds(lambda path: look(path, call, run, order))))

    def status_fits(self, call: ToolCall) -> Truth:
        """Whether the call ended as asked; unknown when nothing says how it ended."""
        if call.status in self.statuses:
            return True
        return None if call.status is CallStatus.UNKNOWN else False

    def __str__(self) -> str:
        return " or ".join(self.tools)


def look(path: str, call: ToolCall, run: Trajectory, order: str) -> object:
    """The value at a path of a call, through an earlier result where the path begins with ``result_of``."""
    parts = call_path(path)
    if parts[0] == RESULT_OF:
        return _joined(parts[1], parts[2:], call, run, order)
    return look_into_call(call, parts)


def before(earlier: ToolCall, later: ToolCall, order: str) -> Truth:
    """Whether one call happened before another; unknown when neither times nor turns tell."""
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


def _joined(tool: str, parts: tuple[str, ...], call: ToolCall, run: Trajectory, order: str) -> object:
    """What the latest earlier success of the tool answered.

    Only calls count whose arguments agree with the judged call's wherever both have one of that name.
    Where it cannot be told which was the latest, or whether one of them succeeded, the value is missing.
    So it is where calls may be missing, of which one may have been later.
    """
    if lacks_calls(run) or lacks_names(run):
        return MISSING
    certain: list[ToolCall] = []
    possible: list[ToolCall] = []
    for other in run.calls_to(tool):
        fits = all_of(
            (
                CallPattern((tool,), SUCCEEDED).status_fits(other),
                before(other, call, order),
                _agrees(other, call),
            )
        )
        if fits is True:
            certain.append(other)
        if fits is not False:
            possible.append(other)
    latest = [one for one in possible if not any(before(one, newer, "executed") for newer in certain)]
    values = [look_up(opened(one.result), parts) for one in latest if one in certain]
    if (
        len(values) < len(latest)
        or not values
        or any(not _surely_equal(values[0], other) for other in values[1:])
    ):
        return MISSING
    return values[0]


def _agrees(other: ToolCall, call: ToolCall) -> Truth:
    if other.arguments is None or call.arguments is None:
        return None
    shared = (set(other.arguments) & set(call.arguments)) - INTENT.drop_keys
    return all_of(equal(other.arguments[name], call.arguments[name]) for name in shared)


def _surely_equal(left: object, right: object) -> bool:
    """Equality that also holds between values that are not there."""
    return left is right or equal(left, right) is True

"""Where in a run a rule has something to say, and what it reads there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redfirst.evaluators.conditions import Look, Where, parse_where
from redfirst.evaluators.declared_parts import calls_of, when_of
from redfirst.evaluators.paths import RESULT_OF, RESULTS_OF, call_path
from redfirst.evaluators.rule_base_shapes import OrderedShape
from redfirst.evaluators.rule_kinds.calls import EVERY_STATUS, RAN, look
from redfirst.evaluators.rule_kinds.keys import describe
from redfirst.evaluators.shapes import CallShape
from redfirst.evaluators.trajectory import ToolCall, Trajectory


def judged(call: CallShape, shape: OrderedShape, run: Trajectory) -> list[ToolCall]:
    """The calls that a rule surely speaks of."""
    if shape.when is not None and when_of(shape.when).holds(run) is not True:
        return []
    return [one for one in run.calls_to(*call.tool) if speaks_of(call, shape, one, run)]


def speaks_of(call: CallShape, shape: OrderedShape, one: ToolCall, run: Trajectory) -> bool:
    """Whether the rule surely judges this call of the run."""
    pattern = calls_of(call, EVERY_STATUS if shape.attempts else RAN)
    return pattern.matches(one, run, shape.order) is True


def conditions_of(call: CallShape) -> Where:
    """The conditions on a call."""
    return parse_where(call.where, call_path)


def value_at(path: str, call: ToolCall, run: Trajectory, order: str = "decided") -> object:
    """What the rule reads at a path."""
    return look(path, call, run, order)


def looking(call: ToolCall, run: Trajectory, order: str = "decided") -> Look:
    """What the rule reads at any path of the call."""
    return lambda path: look(path, call, run, order)


def argument(path: str) -> tuple[str, ...] | None:
    """The keys of a path below ``args``; ``None`` for any other path."""
    parts = call_path(path)
    return parts[1:] if parts[0] == "args" and len(parts) > 1 else None


def read_elsewhere(paths: Iterable[str]) -> set[str]:
    """The tools whose answers these paths read."""
    parsed = [call_path(path) for path in paths]
    return {parts[1] for parts in parsed if parts[0] in (RESULT_OF, RESULTS_OF)}


def told(calls: Sequence[ToolCall]) -> str:
    """The calls in words."""
    return ", ".join(describe(call) for call in calls[:2]) + (", …" if len(calls) > 2 else "")

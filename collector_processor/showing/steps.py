"""The steps of a run in order: turns of the model with the calls they asked for, and what happened in between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from redfirst.evaluators.trajectory import Handoff, ModelCall, RunEvent, ToolCall, Trajectory

Happening = tuple[int, int] | Handoff | RunEvent
"""Two neighbouring snapshots of the state, by place; a hand-off; an event of the run."""


@dataclass(slots=True)
class Step:
    """One turn of the model and the calls it asked for, or one call that no turn asked for."""

    turn: int | None = None
    model: ModelCall | None = None
    calls: list[ToolCall] = field(default_factory=list)
    after: dict[int, list[Happening]] = field(default_factory=lambda: defaultdict(list))
    """What happened after the call of that place; before any of them at -1."""

    @property
    def agent(self) -> str | None:
        """The agent whose step it is, where that was recorded."""
        return next((one.agent for one in (self.model, *self.calls) if one is not None and one.agent), None)

    def hands_over(self) -> list[Handoff]:
        """The hand-offs that followed it."""
        return [what for found in self.after.values() for what in found if isinstance(what, Handoff)]

    def points(self) -> Iterator[tuple[int, Step, int]]:
        """When its turn and its calls began, as far as that is known, with their places."""
        if self.model is not None and self.model.start_ns:
            yield self.model.start_ns, self, -1
        yield from ((call.start_ns, self, place) for place, call in enumerate(self.calls) if call.start_ns)


def steps_of(run: Trajectory) -> list[Step]:
    """Every step; what happened is put after the last call or turn that had begun by then."""
    turns = list(run.model_calls)
    steps: list[Step] = []

    def turn_up_to(last: int | None, start_ns: int) -> None:
        while turns and (turns[0].index <= last if last is not None else turns[0].start_ns <= start_ns):
            steps.append(Step(turn=turns[0].index, model=turns.pop(0)))

    for call in run.tool_calls:
        turn_up_to(call.turn, call.start_ns)
        if call.turn is None or not steps or steps[-1].turn != call.turn:
            steps.append(Step(turn=call.turn))
        steps[-1].calls.append(call)
    steps.extend(Step(turn=one.index, model=one) for one in turns)
    points = [point for step in steps for point in step.points()]
    for time_ns, what in _happenings(run):
        before = [point for point in points if point[0] <= time_ns]
        if not before and (not steps or steps[0].turn is not None or steps[0].calls):
            steps.insert(0, Step())
        _, step, place = before[-1] if before else (0, steps[0], -1)
        step.after[place].append(what)
    return steps


def _happenings(run: Trajectory) -> list[tuple[int, Happening]]:
    found: list[tuple[int, Happening]] = [
        (after.time_ns, (n, n + 1)) for n, after in enumerate(run.states[1:])
    ]
    found += [(item.start_ns, item) for item in run.handoffs]
    found += [(item.time_ns, item) for item in run.events]
    return sorted(found, key=lambda pair: pair[0])

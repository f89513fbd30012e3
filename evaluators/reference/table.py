"""A run beside one acceptable trajectory: which call fits which step, certainly or perhaps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from redfirst.evaluators.assignment import assign, heaviest
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time, logical_calls
from redfirst.evaluators.reference.in_order import along_chains, in_part
from redfirst.evaluators.reference.steps import Acceptable, Mode, Reference
from redfirst.evaluators.rule_kinds.calls import before
from redfirst.evaluators.trajectory import CallStatus, ToolCall, Trajectory

Attempts = tuple[ToolCall, ...]
Truths = dict[int, Truth]
"""Call → whether it fits; a call that surely does not fit is left out."""


@dataclass(frozen=True)
class Table:
    """The logical calls of a run, in time, against the steps of one acceptable trajectory."""

    run: Trajectory
    accepted: Acceptable
    mode: Mode
    order: str
    calls: tuple[Attempts, ...]

    @functools.cached_property
    def made(self) -> list[Truths]:
        """For each step the calls of its tools that ended ``ok``, whatever their arguments."""
        by_name: dict[str, list[int]] = {}
        for place, attempts in enumerate(self.calls):
            by_name.setdefault(attempts[-1].name, []).append(place)
        nameless = [place for place, attempts in enumerate(self.calls) if self.is_nameless(attempts)]
        rows: list[Truths] = []
        for step in self.accepted.steps:
            row: Truths = {}
            for tool in step.tools:
                for place in by_name.get(tool, ()):
                    status = self.calls[place][-1].status
                    if status is CallStatus.OK:
                        row[place] = True
                    elif status is CallStatus.UNKNOWN:
                        row[place] = None
            for place in nameless:
                row[place] = None
            rows.append(dict(sorted(row.items())) if len(step.tools) > 1 or nameless else row)
        return rows

    @functools.cached_property
    def right(self) -> list[Truths]:
        """For each step those of ``made`` whose arguments are valid too."""
        rows: list[Truths] = []
        for step, row in zip(self.accepted.steps, self.made, strict=True):
            fits = {place: step.arguments.fit(self.calls[place][-1]) for place in row}
            rows.append({place: row[place] and fits[place] for place in row if fits[place] is not False})
        return rows

    @functools.cached_property
    def unnamed(self) -> frozenset[str]:
        """The facts ``tool_calls[N].name`` that are missing."""
        return frozenset(gap.fact for gap in self.run.coverage.missing if gap.fact.endswith(".name"))

    def is_nameless(self, attempts: Attempts) -> bool:
        """Whether the name of the call was not recorded, so that it may be one of any tool."""
        return bool(self.unnamed) and any(f"tool_calls[{one.index}].name" in self.unnamed for one in attempts)

    @property
    def certain(self) -> bool:
        """Whether every pair is known to fit or not to fit."""
        return all(truth is not None for row in self.right for truth in row.values())

    def best(self, rows: Sequence[Truths], *, sure: bool) -> dict[int, int]:
        """Step to call, whatever the order: as many required steps as possible, and as many calls.

        One matching does both: required steps are served first, and who is served stays served.
        """
        required = self.accepted.required
        served = [*required, *(place for place in range(len(rows)) if place not in required)]
        found = assign([[call for call, truth in rows[step].items() if truth or not sure] for step in served])
        return {served[task]: call for task, call in found.items()}

    def matched(self, rows: Sequence[Truths], *, sure: bool) -> tuple[int, int]:
        """The most required steps, and the most calls, that a matching covers, whatever the order."""
        found = self.best(rows, sure=sure)
        return sum(step in found for step in self.accepted.required), len(found)

    def closeness(self) -> Fraction:
        """F1 of the tools: (required steps matched + calls matched) ÷ (required steps + calls made)."""
        steps, calls = self.matched(self.made, sure=False)
        total = len(self.accepted.required) + len(self.calls)
        return Fraction(steps + calls, total) if total else Fraction(0)

    def score(self, mode: Mode, *, sure: bool) -> int | None:
        """The steps and calls that the mode counts and the best matching covers, in order.

        ``None`` when the search for the best order was given up.
        """
        order = self.accepted.order(mode)
        weights = self._weights(mode, sure=sure)
        if order and self._is_chain() and _is_total(order, len(weights)):
            return along_chains(weights, len(self.calls))
        found = {step: call for step, call in self.best(self.right, sure=sure).items() if weights[step]}
        if all(
            self.came(found[one], found[other], sure=sure)
            for one, other in order
            if one in found and other in found
        ):
            return sum(weights[step][call] for step, call in found.items())
        return in_part(weights, order, lambda one, other: self.came(one, other, sure=sure))

    def full(self, mode: Mode) -> int:
        """What ``score`` is when nothing is wrong."""
        return len(self.accepted.required) * (mode != "subset") + len(self.calls) * (mode != "superset")

    def came(self, one: int, other: int, *, sure: bool) -> bool:
        """Whether a call came, or may have come, before another."""
        truth = before(self.calls[one][-1], self.calls[other][0], self.order)
        return truth is True or (truth is None and not sure)

    def pairs(self) -> dict[int, int]:
        """Step to call: as many tools as possible, of those as many valid arguments, of those the earliest calls."""
        calls = len(self.calls)
        scale = calls * calls + 1
        weights = [
            {
                place: ((1 + (not step.optional)) * (calls + 1) + (place in right)) * scale + calls - place
                for place in made
            }
            for step, made, right in zip(self.accepted.steps, self.made, self.right, strict=True)
        ]
        return heaviest(weights)

    def _weights(self, mode: Mode, *, sure: bool) -> list[dict[int, int]]:
        weights = []
        for step, row in zip(self.accepted.steps, self.right, strict=True):
            weight = (mode != "subset" and not step.optional) + (mode != "superset")
            weights.append({place: weight for place, truth in row.items() if weight and (truth or not sure)})
        return weights

    def _is_chain(self) -> bool:
        """Whether each call came before the next, by times alone or by turns alone, so that all are in order."""
        attempts = [one for call in self.calls for one in call]
        turns = [turn for call in self.calls for turn in {one.turn for one in call} if turn is not None]
        if len(set(turns)) < len(turns):
            return False
        timed = all(one.start_ns and one.end_ns for one in attempts)
        turned = all(one.turn is not None and not one.start_ns and not one.end_ns for one in attempts)
        return (timed or turned) and all(
            self.came(place, place + 1, sure=True) for place in range(len(self.calls) - 1)
        )


def _is_total(order: frozenset[tuple[int, int]], steps: int) -> bool:
    return len(order) == steps * (steps - 1) // 2 and all(one < other for one, other in order)


def tables(run: Trajectory, reference: Reference) -> list[Table]:
    """The run beside each acceptable trajectory."""
    calls = made_calls(run)
    return [Table(run, accepted, reference.mode, reference.order, calls) for accepted in reference.accepted]


def made_calls(run: Trajectory) -> tuple[Attempts, ...]:
    """The calls that ran, in time, retries joined to what they retry."""
    ran = [call for call in in_time(run.tool_calls) if call.ran]
    if all(call.status is not CallStatus.INFRA_ERROR for call in ran):
        return tuple((call,) for call in ran)  # nothing can be a retry
    return tuple(logical.attempts for logical in logical_calls(ran))

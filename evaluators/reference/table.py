"""A run beside one acceptable trajectory: which call fits which step, certainly or perhaps."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from redfirst.evaluators.assignment import assign, heaviest
from redfirst.evaluators.kleene import Truth
from redfirst.evaluators.logical import in_time, logical_calls
from redfirst.evaluators.reference.in_order import along_chains, in_part
from redfirst.evaluators.reference.steps import Acceptable, Mode, Reference
from redfirst.evaluators.rule_kinds.order import before
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
        nameless = (
            [place for place, attempts in enumerate(self.calls) if self.is_nameless(attempts)]
            if self.unnamed
            else []
        )
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
        for step, row in enumerate(self.made):
            fits = {place: self.fits(step, place) for place in row}
            rows.append({place: truth for place, truth in fits.items() if truth is not False})
        return rows

    def fits(self, step: int, place: int) -> Truth:
        """Whether a call of ``made`` has valid arguments too."""
        truth = self.accepted.steps[step].arguments.fit(self.calls[place][-1])
        return truth and self.made[step][place]

    @functools.cached_property
    def unnamed(self) -> frozenset[str]:
        """The facts ``tool_calls[N].name`` that are missing."""
        return frozenset(gap.fact for gap in self.run.coverage.missing if gap.fact.endswith(".name"))

    def is_nameless(self, attempts: Attempts) -> bool:
        """Whether the name of the call was not recorded, so that it may be one of any tool."""
        return any(f"tool_calls[{one.index}].name" in self.unnamed for one in attempts)

    @property
    def certain(self) -> bool:
        """Whether every pair is known to fit or not to fit."""
        return all(truth is not None for row in self.right for truth in row.values())

    def best(self, *, sure: bool, arguments: bool = False) -> dict[int, int]:
        """Step to call, whatever the order: as many required steps as possible, and as many calls.

        One matching does both: required steps are served first, and who is served stays served. ``sure``: by
        the pairs that certainly fit; ``arguments``: by those whose arguments are valid too.
        """
        served = self._first_come(sure=sure, arguments=arguments)
        if served is not None:
            return served
        rows = self.right if arguments else self.made
        order = self._required_first
        found = assign([[call for call, truth in rows[step].items() if truth or not sure] for step in order])
        return {order[task]: call for task, call in found.items()}

    @functools.cached_property
    def _required_first(self) -> tuple[int, ...]:
        required = self.accepted.required
        return (*required, *(step for step in range(len(self.accepted.steps)) if step not in required))

    def _first_come(self, *, sure: bool, arguments: bool) -> dict[int, int] | None:
        """Each step with the first call that fits and is free, where that is already the best.

        It is for runs that did what they should, and spares them looking at every pair.
        """
        found: dict[int, int] = {}
        taken: set[int] = set()
        for step in self._required_first:
            for place, truth in self.made[step].items():
                if place in taken:
                    continue
                truth = self.fits(step, place) if arguments else truth
                if truth or (truth is None and not sure):
                    found[step] = place
                    taken.add(place)
                    break
            else:
                if not self.accepted.steps[step].optional:
                    return None
        return found if len(taken) in (len(self.calls), len(self.accepted.steps)) else None

    def matched(self, *, sure: bool, arguments: bool = False) -> tuple[int, int]:
        """The most required steps, and the most calls, that a matching covers, whatever the order."""
        found = self.best(sure=sure, arguments=arguments)
        return sum(step in found for step in self.accepted.required), len(found)

    def closeness(self) -> Fraction:
        """F1 of the tools: (required steps matched + calls matched) ÷ (required steps + calls made)."""
        steps, calls = self.matched(sure=False)
        total = len(self.accepted.required) + len(self.calls)
        return Fraction(steps + calls, total) if total else Fraction(0)

    def score(self, mode: Mode, *, sure: bool) -> int | None:
        """The steps and calls that the mode counts and the best matching covers, in order.

        ``None`` when the search for the best order was given up.
        """
        order = self.accepted.order(mode)
        worth = [
            (mode != "subset" and not step.optional) + (mode != "superset") for step in self.accepted.steps
        ]

        made = self.made

        def weight(step: int, call: int) -> int:
            if not worth[step] or call not in made[step]:
                return 0
            truth = self.fits(step, call)
            return worth[step] if truth or (truth is None and not sure) else 0

        if order and self.accepted.is_chain(mode) and self._is_chain():
            return along_chains(weight, len(worth), len(self.calls), most=max(worth))
        found = {step: call for step, call in self.best(sure=sure, arguments=True).items() if worth[step]}
        if all(
            self.came(found[one], found[other], sure=sure)
            for one, other in order
            if one in found and other in found
        ):
            return sum(worth[step] for step in found)
        weights = [
            {call: heavy for call in row if (heavy := weight(step, call))}
            for step, row in enumerate(self.made)
        ]
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

    def _is_chain(self) -> bool:
        """Whether each call came before the next, by times alone or by turns alone, so that all are in order."""
        attempts = [one for call in self.calls for one in call]
        turns = [one.turn for one in attempts if one.turn is not None]
        if len(set(turns)) < len(turns):
            return False
        if all(one.start_ns and one.end_ns for one in attempts):
            return all(
                earlier[-1].end_ns <= later[0].start_ns > earlier[-1].start_ns
                for earlier, later in pairwise(self.calls)
            )
        return len(turns) == len(attempts) and not any(one.start_ns or one.end_ns for one in attempts)


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

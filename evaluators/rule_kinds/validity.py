"""How long an event counts for a later one: within a time, within model turns, until something happens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from redfirst.evaluators.conditions import Condition
from redfirst.evaluators.kleene import Truth, all_of, any_of, negated
from redfirst.evaluators.rule_kinds.calls import CallPattern, look
from redfirst.evaluators.rule_kinds.order import before, within_time, within_turns
from redfirst.evaluators.trajectory import ToolCall, Trajectory

_DURATION = re.compile(
    r"P(?:(?P<days>\d{1,5})D)?(?:T(?:(?P<hours>\d{1,5})H)?(?:(?P<minutes>\d{1,6})M)?(?:(?P<seconds>\d{1,8})S)?)?",
    re.ASCII,
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def duration_ns(text: str) -> int:
    """An ISO 8601 duration of days, hours, minutes and seconds (``P1D``, ``PT10M``) in nanoseconds.

    Raises:
        ValueError: it is none, or it is zero.
    """
    found = _DURATION.fullmatch(text)
    seconds = sum(int(found[name] or 0) * each for name, each in _SECONDS.items()) if found else 0
    if not seconds or text.endswith("T"):
        raise ValueError(f"within takes an ISO 8601 duration, as in PT10M, PT1H30M or P1D, not {text!r}")
    return seconds * 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Whether an earlier event still counts when the later one happens."""

    within: str | None = None
    """The later one begins at most so long after the earlier one ended: an ISO 8601 duration."""
    within_steps: int | None = None
    """It is asked for at most so many model turns later."""
    until: CallPattern | None = None
    """No such event lies between the two."""

    def holds(self, earlier: ToolCall, later: ToolCall, run: Trajectory, order: str) -> Truth:
        """Whether the earlier event counts for the later one, given that it came before."""
        return all_of(self._tests(earlier, later, run, order))

    def lack(self, run: Trajectory) -> str | None:
        """Why an event that ends the validity may be missing."""
        return None if self.until is None else self.until.lack(run)

    def enders(self, earlier: ToolCall, run: Trajectory, order: str) -> list[tuple[ToolCall, Truth]]:
        """What came after an event and perhaps ended its validity, and whether it surely did."""
        if self.until is None:
            return []
        found = [
            (one, all_of((before(earlier, one, order), self.until.matches(one, run, order))))
            for one in self.until.among(run, earlier=True)
            if one is not earlier
        ]
        return [(one, truth) for one, truth in found if truth is not False]

    def _tests(self, earlier: ToolCall, later: ToolCall, run: Trajectory, order: str) -> Iterator[Truth]:
        if self.within is not None:
            yield within_time(earlier, later, duration_ns(self.within))
        if self.within_steps is not None:
            yield within_turns(earlier, later, self.within_steps)
        yield negated(
            any_of(
                all_of((truth, before(one, later, order)))
                for one, truth in self.enders(earlier, run, order)
                if one is not later
            )
        )

    def __str__(self) -> str:
        parts = [f" within {self.within}" if self.within else ""]
        if self.within_steps is not None:
            parts.append(f" within {self.within_steps} model turn(s)")
        if self.until is not None:
            parts.append(f" with no {self.until} in between")
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class Cover:
    """What a need must be worth for the call that it serves: ``{result.max_amount: {ge: call.args.amount}}``."""

    path: str
    condition: Condition
    """Its values are of paths of the call."""

    def holds(self, need: ToolCall, call: ToolCall, run: Trajectory, order: str) -> Truth:
        """Whether the need is enough for the call."""
        value = look(self.path, need, run, order)
        return self.condition.holds(value, lambda path: look(path, call, run, order))

    def __str__(self) -> str:
        return f"{self.path} is {self.condition} of the call"

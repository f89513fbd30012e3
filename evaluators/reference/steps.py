"""What a reference asks for: steps with their tools and arguments, and which step comes after which."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from redfirst.evaluators.reference.matchers import Arguments

Mode = Literal["strict", "unordered", "subset", "superset"]
Edges = frozenset[tuple[int, int]]
"""Pairs (earlier, later) of places in a list of steps, closed under transitivity."""


@dataclass(frozen=True, slots=True)
class Step:
    """A call that a reference asks for, to any one of its tools."""

    tools: tuple[str, ...]
    arguments: Arguments = field(default_factory=Arguments)
    optional: bool = False

    def __str__(self) -> str:
        return " or ".join(self.tools)


@dataclass(frozen=True, slots=True)
class Acceptable:
    """One acceptable trajectory: steps, the order they are listed in, and the order that is demanded."""

    steps: tuple[Step, ...]
    listed: Edges = frozenset()
    """For the mode ``strict``."""
    demanded: Edges = frozenset()
    """What ``after`` says, for every mode."""
    tools: frozenset[str] = field(init=False)
    required: tuple[int, ...] = field(init=False)
    """The places of the steps that are not optional."""
    chained: tuple[bool, ...] = field(init=False)
    """Whether ``demanded``, and ``listed``, is the order of the list, of every two steps."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", frozenset(tool for step in self.steps for tool in step.tools))
        places = tuple(place for place, step in enumerate(self.steps) if not step.optional)
        object.__setattr__(self, "required", places)
        pairs = len(self.steps) * (len(self.steps) - 1) // 2
        orders = (self.demanded, self.listed)
        chained = tuple(len(order) == pairs and all(one < other for one, other in order) for order in orders)
        object.__setattr__(self, "chained", chained)

    def is_chain(self, mode: Mode) -> bool:
        """Whether the order that counts in a mode is that of the list, of every two steps."""
        return self.chained[mode == "strict"]

    def order(self, mode: Mode) -> Edges:
        """The order that counts in a mode."""
        return self.listed if mode == "strict" else self.demanded


@dataclass(frozen=True, slots=True)
class Reference:
    """A set of acceptable trajectories, and how a run is compared with one."""

    accepted: tuple[Acceptable, ...]
    mode: Mode
    order: str = "decided"


def closed(before: Sequence[Iterable[int]]) -> Edges:
    """The pairs (earlier, later) that follow from the places that stand before each place.

    Raises:
        ValueError: a place comes before itself.
    """
    earlier = [set(places) for places in before]
    for middle in range(len(earlier)):
        for place in range(len(earlier)):
            if middle in earlier[place]:
                earlier[place] |= earlier[middle]
    if any(place in places for place, places in enumerate(earlier)):
        raise ValueError("a step comes after itself")
    return frozenset((one, place) for place, places in enumerate(earlier) for one in places)

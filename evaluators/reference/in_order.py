"""The heaviest matching of steps and calls that keeps an order.

Of a chain of steps and a chain of calls it is a longest common subsequence (R. A. Wagner and M. J. Fischer
1974, with weights). Where either is ordered in part only, as parallel calls are, it is solved as an integer
program (``scipy.optimize.milp``): one binary variable for each pair that fits, and for a step s before a step
t, no two pairs (s, c) and (t, d) unless c came before d.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from redfirst.evaluators.reference.steps import Edges

MOST_NODES = 2_000
"""Of the search tree of an integer program."""
MOST_COMPARED = 200_000
"""Pairs of calls that are compared to write one down."""
Weights = Sequence[Mapping[int, int]]
"""Step → call → weight, a positive whole number, of the pairs that fit."""
Came = Callable[[int, int], bool]


def along_chains(weight: Callable[[int, int], int], steps: int, calls: int, *, most: int) -> int:
    """The weight of the heaviest matching that takes both steps and calls in their order.

    ``weight`` is that of a pair, 0 where a call does not fit a step, and ``most``, above 0, at most.
    """
    first = done = 0
    # A pair at the front of both lists is in some best matching if no pair weighs more.
    while first < min(steps, calls) and weight(first, first) == most:
        done += most
        first += 1
    best = [0] * (calls - first + 1)
    for step in range(first, steps):
        above = best
        best = [0] * len(above)
        for place in range(1, len(above)):
            pair = above[place - 1] + weight(step, first + place - 1)
            best[place] = max(above[place], best[place - 1], pair)
    return done + best[-1]


def in_part(weights: Weights, order: Edges, came_before: Came) -> int | None:
    """The weight of the heaviest matching that keeps the order; ``None`` when the search was given up."""
    if sum(len(weights[one]) * len(weights[other]) for one, other in order) > MOST_COMPARED:
        return None
    import numpy as np
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    pairs = [(step, call) for step, row in enumerate(weights) for call in sorted(row)]
    if not pairs:
        return 0
    number = {pair: place for place, pair in enumerate(pairs)}
    groups = [*_one_each(pairs), *_out_of_order(weights, order, came_before)]
    rows = [row for row, group in enumerate(groups) for _ in group]
    columns = [number[pair] for group in groups for pair in group]
    table = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(groups), len(pairs)))
    solved = milp(
        c=np.array([-weights[step][call] for step, call in pairs], dtype=float),
        constraints=LinearConstraint(table, ub=np.ones(len(groups))),
        integrality=np.ones(len(pairs)),
        bounds=Bounds(0, 1),
        options={"node_limit": MOST_NODES},
    )
    return round(-solved.fun) if solved.status == 0 else None


def _one_each(pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The pairs of each step, and of each call: of either at most one is taken."""
    groups: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for step, call in pairs:
        groups.setdefault(("step", step), []).append((step, call))
        groups.setdefault(("call", call), []).append((step, call))
    return list(groups.values())


def _out_of_order(weights: Weights, order: Edges, came_before: Came) -> list[list[tuple[int, int]]]:
    """For each step t and its call d, the pairs of an earlier step that exclude (t, d), and each other."""
    groups = []
    for earlier, later in sorted(order):
        for call in weights[later]:
            excluded = [(earlier, other) for other in weights[earlier] if not came_before(other, call)]
            if excluded:
                groups.append([*excluded, (later, call)])
    return groups

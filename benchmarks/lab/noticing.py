"""Which metrics a break moved, and whether by more than chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.playing import METRICS, Run
from redfirst.collector_processor.reliability.comparison import SIGNIFICANT, student_p
from redfirst.evaluators.statistics.paired import paired_difference


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of the metrics under a break."""

    caught: frozenset[str]
    """Moved by more than chance, after Holm (1979)."""
    moved: frozenset[str]
    """Moved at all: in runs of the same seeds, so by the break, but in too few scenarios to tell it from chance."""


def seen(healthy: Sequence[Run], broken: Sequence[Run]) -> Seen:
    """The metrics that a break moved."""
    found: dict[str, float] = {}
    for name, metric in METRICS.items():
        before, after = (_per_scenario(runs, metric) for runs in (healthy, broken))
        difference = paired_difference(list(after.values()), [before[key] for key in after])
        p = None if difference is None else student_p(difference, len(after))
        if p is not None and before != after:
            found[name] = p
    caught: set[str] = set()
    for rank, (name, p) in enumerate(sorted(found.items(), key=lambda item: item[1])):
        if p >= SIGNIFICANT / (len(METRICS) - rank):
            break
        caught.add(name)
    return Seen(frozenset(caught), frozenset(found) - caught)


def _per_scenario(runs: Sequence[Run], metric: Callable[[Run], float]) -> dict[str, float]:
    names = dict.fromkeys(run.scenario for run in runs)
    return {name: mean([metric(run) for run in runs if run.scenario == name]) for name in names}


def mean(values: Sequence[float]) -> float:
    """Of at least one value."""
    return sum(values) / len(values)

"""What a policy would have told, and when, on runs that were judged already."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from redfirst.collector_processor.alerting.detector import Change, Detector
from redfirst.collector_processor.alerting.policy import Policy
from redfirst.collector_processor.alerting.runs import Observations, observed
from redfirst.collector_processor.storing.store import StoredRun

STEP_NS = 60 * 1_000_000_000


def fullest_window(history: Iterable[Sequence[StoredRun]], policy: Policy) -> int:
    """The most runs that count for one stream within any window: with fewer than ``min_runs`` no objective is judged."""
    seen = Observations(policy.per_check)
    for versions in history:
        seen.take(observed(versions))
    return max(
        (
            place - bisect_right(times, end - policy.window_ns)
            for stream in seen.streams()
            if not stream.about and not stream.task
            for times in [[sample.at_ns for sample in seen.samples(stream)]]
            for place, end in enumerate(times, 1)
        ),
        default=0,
    )


def simulated(
    history: Iterable[Sequence[StoredRun]], policy: Policy, *, until_ns: int, step_ns: int = STEP_NS
) -> Iterator[Change]:
    """Every change, in order, as it would have been told: each version of a run is known from its own time on.

    ``history`` are the versions of each run, oldest first; streams are judged whenever something came, at most once a
    step, and at ``until_ns``.
    """
    runs = list(history)
    arrivals = sorted(
        (versions[place].judged_ns, number, place)
        for number, versions in enumerate(runs)
        for place in range(len(versions))
    )
    detector = Detector(policy)
    due: int | None = None
    for at_ns, number, place in arrivals:
        if due is not None and at_ns > due:
            yield from detector.tick(due)
            due = None
        detector.take(observed(runs[number][: place + 1]))
        if due is None:
            due = at_ns + step_ns
    yield from detector.tick(until_ns)

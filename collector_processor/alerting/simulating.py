"""What a policy would have told, and when, on runs that were judged already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from redfirst.collector_processor.alerting.detector import Change, Detector
from redfirst.collector_processor.alerting.policy import Policy
from redfirst.collector_processor.alerting.runs import observed
from redfirst.collector_processor.storing.store import StoredRun

STEP_NS = 60 * 1_000_000_000


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
    yield from detector.tick(until_ns if due is None else max(due, until_ns))

"""Traces that may be one run: which meetings are to be judged together, when, and which are at the scorer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.access import StoreAccess
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.store import Known, Store

MOST_TRACES = 512
"""Traces that are judged together; of more, the newest."""
_SLOWER = 32
"""So many traces wait one settle time more: each of them asks for all to be judged."""


@dataclass(frozen=True, slots=True)
class Joint:
    """What is at the scorer together."""

    meetings: Sequence[str]
    known: Mapping[str, Known]


class Joining:
    """Meetings that wait. For the pipeline's thread. Times are of the monotonic clock."""

    def __init__(self, store: Store, access: StoreAccess, metrics: Metrics, *, settle: float) -> None:
        self._store, self._patiently, self._metrics, self._settle = store, access.patiently, metrics, settle
        self._due: dict[str, float] = {}
        self._away: dict[str, Joint] = {}
        self._asked_again: set[str] = set()

    def __len__(self) -> int:
        return len(self._away)

    def look(self, now: float, now_ns: int) -> None:
        """Take up what the store says is waiting."""
        for name, due_ns in self._patiently(self._store.joins).items():
            wait = min(max(0.0, (due_ns - now_ns) / 1e9), self._settle * (1 + MOST_TRACES // _SLOWER))
            self._due.setdefault(name, now + wait)

    def others(self, meetings: Iterable[str], trace_id: str) -> int:
        """How many other traces are stored that a trace meets."""
        wanted = sorted(meetings)
        if not wanted:
            return 0
        traces, _ = self._patiently(lambda: self._store.meeting(wanted, MOST_TRACES + 1))
        return len(set(traces) - {trace_id})

    def ask(self, meetings: Iterable[str], others: int, now: float, now_ns: int) -> None:
        """Have these judged together soon, durably."""
        wanted = sorted(meetings)
        wait = self._settle * (1 + others // _SLOWER)
        self._patiently(lambda: self._store.join_later(wanted, now_ns + int(wait * 1e9)))
        for name in wanted:
            self._due.setdefault(name, now + wait)
            self._asked_again.add(name)

    def next_due(self) -> float | None:
        """When there may be something to do."""
        return min(self._due.values(), default=None)

    def due(self, now: float) -> Iterator[Job]:
        """The jobs to judge now."""
        for name in [name for name, at in self._due.items() if at <= now]:
            if name not in self._due:
                continue  # it was among those that another met
            job = self._job(name, now)
            if job is not None:
                yield job

    def came_back(self, job: Job) -> tuple[Joint, list[str]]:
        """What was judged, and the meetings for which nothing came meanwhile."""
        joint = self._away.pop(job.run_id)
        return joint, [name for name in joint.meetings if name not in self._asked_again]

    def is_joint(self, job: Job) -> bool:
        """Whether a job is one of these."""
        return job.run_id in self._away

    def _job(self, name: str, now: float) -> Job | None:
        traces, meetings = self._patiently(lambda: self._store.meeting([name], MOST_TRACES + 1))
        meetings = sorted({name, *meetings})
        if any(other in joint.meetings for joint in self._away.values() for other in meetings):
            self._due[name] = now + self._settle
            return None
        for other in meetings:
            self._due.pop(other, None)
            self._asked_again.discard(other)
        too_many = len(traces) > MOST_TRACES
        if too_many:
            self._metrics.add("redfirst_joins_truncated_total")
        known = self._patiently(lambda: self._known(traces[:MOST_TRACES]))
        if not known:
            self._patiently(lambda: self._store.land([], cursor=None, joined=meetings))
            return None
        job = Job(
            run_id=f"join {name}",
            positions=(),
            traces={trace: sorted(found.positions) for trace, found in known.items()},
            older_left_out=too_many,
        )
        self._away[job.run_id] = Joint(meetings, known)
        return job

    def _known(self, traces: Sequence[str]) -> dict[str, Known]:
        found = {trace: self._store.known(trace) for trace in traces}
        return {trace: known for trace, known in found.items() if known is not None and known.positions}

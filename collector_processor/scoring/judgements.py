"""What becomes of a released trace, and what is stored of a scorer's answer. For the pipeline's thread."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.access import StoreAccess
from redfirst.collector_processor.scoring.assembly import Assembly, Cut, CutReason, Judged
from redfirst.collector_processor.scoring.joining import Joining
from redfirst.collector_processor.scoring.landing import (
    joint_landings,
    landing_of,
    only_positions,
    part_landing,
    unscored_parts,
)
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.store import Known, Landing, Recent, RunState, Store
from redfirst.evaluators.trajectory import Stop

Json = Any

_NOTHING = frozenset({"stored_before", RunState.DELETED.value, RunState.EXPIRED.value})
"""What becomes of spans of which not even the place is kept."""


NOT_JUDGED_AGAIN = "not_judged_again"
"""What becomes of a run that its spans are there for, and that could not be judged by other checks all the same."""


@dataclass(frozen=True, slots=True)
class Away:
    """A run at the scorer, with what the store had of it."""

    cut: Cut
    known: Known | None
    late: int


@dataclass(frozen=True, slots=True)
class Found:
    """What is to be stored of a run, and what it ends; without a run, the meetings that were judged."""

    landing: Landing | None = None
    cut: Cut | None = None
    joined: Sequence[str] = ()


class Judgements:
    """The runs at the scorer, and what was found and is not stored yet."""

    def __init__(
        self,
        assembly: Assembly,
        joining: Joining,
        store: Store,
        access: StoreAccess,
        metrics: Metrics,
        *,
        clock: Callable[[], float],
        wall_ns: Callable[[], int],
    ) -> None:
        self.away: dict[str, Away] = {}
        self.found: list[Found] = []
        self.gathering_since = 0.0
        self._again: dict[str, Known] = {}
        self._assembly, self._joining, self._store = assembly, joining, store
        self._access, self._metrics = access, metrics
        self._clock, self._wall_ns = clock, wall_ns

    @property
    def judging_again(self) -> bool:
        """Whether runs are at the scorer because the checks are others."""
        return bool(self._again)

    @property
    def busy(self) -> bool:
        """Whether anything is at the scorer or not stored yet."""
        return bool(self.away or self._again or self.found)

    def due_times(self) -> list[float]:
        """When the runs at the scorer were due."""
        return [away.cut.due_at for away in list(self.away.values())]

    def again(self, limit: int) -> list[Job]:
        """Runs that were noted to be judged again; those whose newer spans are being judged are so already."""
        newer = {one.landing.run_id for one in self.found if one.landing is not None} | self.away.keys()
        for run_id in self._access.patiently(lambda: self._store.to_judge_again(limit)):
            known = self._access.patiently(lambda run_id=run_id: self._store.known(run_id))  # type: ignore[misc]
            if known is not None and run_id not in newer:
                self._again[run_id] = known
        return [
            Job(
                run_id=run_id,
                positions=sorted(known.positions),
                spans=len(known.positions),
                abandoned=known.cut == CutReason.ABANDONED,
                again=True,
            )
            for run_id, known in self._again.items()
        ]

    def standing(self, run: Recent | Known, now: float, now_ns: int) -> Judged:
        """How a run that was judged before stands to what still comes for it."""
        parked = run.ending == Stop.PARKED
        since = max(0.0, (now_ns - run.judged_ns) / 1e9)
        return Judged(
            late=run.late,
            parked_until=now + self._assembly.limits.park - since if parked else 0.0,
            aged=run.cut == CutReason.TOO_OLD,
        )

    def job(self, cut: Cut) -> Job | None:
        """What to ask the scorer of a released trace; None when it is not judged."""
        run_id = cut.trace_id.hex()
        known = self._access.patiently(lambda: self._store.known(run_id))
        late = 0
        positions = set(cut.positions)
        if known is not None:
            what, late = self._becomes(cut, known)
            if what is not None:
                self._metrics.add("redfirst_late_total", outcome=what)
                if what in _NOTHING:
                    self._assembly.landed(cut.trace_id, Judged(late=known.late))
                else:
                    self.found.append(Found(only_positions(cut), cut))
                return None
            if cut.reason is not CutReason.ABANDONED:
                self._metrics.add("redfirst_late_total", outcome="rescored")
            positions |= known.positions
        elif cut.reason is CutReason.ABANDONED:
            self._assembly.landed(cut.trace_id, Judged())
            return None
        self._again.pop(run_id, None)
        self.away[run_id] = Away(cut, known, late)
        return Job(
            run_id=run_id,
            positions=sorted(positions),
            spans=max(cut.spans, len(positions)),
            abandoned=cut.reason is CutReason.ABANDONED,
        )

    def _becomes(self, cut: Cut, known: Known) -> tuple[str | None, int]:
        """What becomes of spans for a run that the store knows, when it is not judged again; and how often it was
        judged again because of late ones."""
        limits = self._assembly.limits
        if known.state in (RunState.DELETED, RunState.EXPIRED):
            return known.state.value, known.late
        if cut.reason is CutReason.ABANDONED:
            return (None if known.positions else "stored_before"), known.late
        if set(cut.positions) <= known.positions:
            return "stored_before", known.late
        silent = (self._wall_ns() - known.judged_ns) / 1e9
        if silent > limits.seal:
            return "sealed", known.late
        if (known.ending == Stop.PARKED and silent < limits.park) or known.cut == CutReason.TOO_OLD:
            return None, known.late
        if known.late >= len(limits.again) - 1:
            return "version_cap", known.late
        return None, known.late + 1

    def take(self, job: Job, answer: Mapping[str, Json]) -> None:
        """An answer of the scorer."""
        if self._joining.is_joint(job):
            self._take_joint(job, answer)
        elif job.again:
            self._take_again(job, answer)
        else:
            self._take_one(job, answer)

    def _take_one(self, job: Job, answer: Mapping[str, Json]) -> None:
        away = self.away.pop(job.run_id)
        cut, known = away.cut, away.known
        if answer.get("reason") == "spans_gone" and known is not None and known.state is RunState.SCORED:
            self._metrics.add("redfirst_late_total", outcome="spans_gone")
            self._add(Found(only_positions(cut), cut))
            return
        now_ns = self._wall_ns()
        age_ns = int((self._clock() - cut.first_at) * 1e9)
        landing = self._landing(cut, job, answer, now_ns, known, arrived_ns=now_ns - age_ns, late=away.late)
        self._add(Found(landing, cut))

    def _take_again(self, job: Job, answer: Mapping[str, Json]) -> None:
        """A run under other checks; one that cannot be judged by them keeps the verdict that it has."""
        known = self._again.pop(job.run_id, None)
        if known is None:
            return  # spans came meanwhile: this answer knows less than the one that is stored or still to come
        now_ns = self._wall_ns()
        cut = Cut(
            trace_id=bytes.fromhex(job.run_id),
            reason=CutReason(known.cut),
            positions=(),
            spans=0,
            first_at=0.0,
            last_at=0.0,
            due_at=0.0,
        )
        if answer["state"] == RunState.UNSCORED:
            gone = answer.get("reason") == "spans_gone"
            self._metrics.add("redfirst_late_total", outcome="spans_gone" if gone else NOT_JUDGED_AGAIN)
            self._add(Found(only_positions(cut)))
            return
        landing = self._landing(cut, job, answer, now_ns, known, arrived_ns=known.arrived_ns, late=known.late)
        self._add(Found(landing))

    def _landing(
        self,
        cut: Cut,
        job: Job,
        answer: Mapping[str, Json],
        now_ns: int,
        known: Known | None,
        *,
        arrived_ns: int,
        late: int,
    ) -> Landing:
        """What is stored of a trace that was judged by itself; where others may belong to the same run, only that they
        do, and they are judged together soon."""
        meetings = answer.get("meetings") or ()
        before = known.meetings if known is not None else frozenset()
        common: dict[str, Any] = {"late": late, "meetings": sorted(meetings)}
        wanted = {*meetings, *before}
        others = self._joining.others(wanted, job.run_id) + self._unstored(wanted, job.run_id)
        if others:
            self._joining.ask(wanted, others, self._clock(), now_ns)
        if others and meetings:
            return part_landing(
                job.run_id,
                part_of=known.part_of if known is not None else None,
                tenant=answer.get("tenant") or "default",
                judged_ns=now_ns,
                arrived_ns=arrived_ns,
                spans=answer.get("spans", 0),
                span_set_hash=answer.get("hash", ""),
                positions=job.positions,
                cut=cut.reason.value,
                **common,
            )
        rootless = answer.get("rootless") and cut.reason is not CutReason.ABANDONED
        due_ns = now_ns + int(self._assembly.limits.abandon * 1e9) if rootless else None
        return landing_of(
            cut,
            job,
            answer,
            arrived_ns=arrived_ns,
            judged_ns=now_ns,
            revision=answer.get("revision", ""),
            due_ns=due_ns,
            **common,
        )

    def _unstored(self, meetings: Container[str], run_id: str) -> int:
        """How many traces that share one of these are being stored at this moment."""
        return sum(
            one.landing is not None
            and one.landing.run_id != run_id
            and any(name in meetings for name in one.landing.meetings or ())
            for one in self.found
        )

    def _take_joint(self, job: Job, answer: Mapping[str, Json]) -> None:
        joint, done = self._joining.came_back(job)
        now_ns = self._wall_ns()
        if answer["state"] != "joined":  # the scorer died of it: no part is left without a word
            landings = list(unscored_parts(answer, joint.known, judged_ns=now_ns))
        else:
            landings = list(joint_landings(answer, joint.known, judged_ns=now_ns))
        for landing in landings:
            self._add(Found(landing))
        self._add(Found(joined=done))

    def _add(self, found: Found) -> None:
        if not self.found:
            self.gathering_since = self._clock()
        self.found.append(found)

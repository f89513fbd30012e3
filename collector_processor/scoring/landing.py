"""A scorer's answer as what the store is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redfirst.collector_processor.scoring.assembly import Cut
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.store import Landing, RunState

Json = Any


def landing_of(cut: Cut, job: Job, answer: Mapping[str, Json], *, arrived_ns: int, judged_ns: int) -> Landing:
    """The outcome of a cut that was judged, or that could not be."""
    return Landing(
        run_id=job.run_id,
        state=RunState(answer["state"]),
        tenant=answer.get("tenant") or "default",
        spans=answer.get("spans", 0) or cut.spans,
        span_set_hash=answer.get("hash", ""),
        positions=job.positions,
        cut=cut.reason.value,
        arrived_ns=arrived_ns,
        judged_ns=judged_ns,
        record=answer.get("record"),
        agent=answer.get("agent"),
        service=answer.get("service", ""),
        request_hash=answer.get("request_hash"),
        flagged=bool(answer.get("flagged")),
        ending=answer.get("ending", "unknown"),
        because=answer.get("because", ""),
        verdicts=answer.get("verdicts") or (),
    )


def only_positions(cut: Cut) -> Landing:
    """What came for a run that is not judged again."""
    return Landing(
        run_id=cut.trace_id.hex(),
        state=RunState.SCORED,
        spans=0,
        span_set_hash="",
        positions=cut.positions,
        cut=cut.reason.value,
        arrived_ns=0,
        judged_ns=0,
        only_positions=True,
    )

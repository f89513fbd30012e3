"""A scorer's answer as what the store is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from redfirst.collector_processor.scoring.assembly import Cut
from redfirst.collector_processor.scoring.process import Job
from redfirst.collector_processor.storing.store import Known, Landing, RunState

Json = Any


def landing_of(
    cut: Cut, job: Job, answer: Mapping[str, Json], *, arrived_ns: int, judged_ns: int, **more: Any
) -> Landing:
    """The outcome of a cut that was judged, or that could not be; ``more`` are further fields of it."""
    return Landing(
        run_id=job.run_id,
        state=RunState(answer["state"]),
        spans=answer.get("spans", 0) or cut.spans,
        span_set_hash=answer.get("hash", ""),
        positions=job.positions,
        cut=cut.reason.value,
        arrived_ns=arrived_ns,
        judged_ns=judged_ns,
        **_said(answer),
        **more,
    )


def part_landing(
    trace_id: str, *, part_of: str | None, known: Known | None = None, judged_ns: int, **more: Any
) -> Landing:
    """A trace that belongs to a run of several."""
    given: dict[str, Any] = {
        "spans": 0,
        "span_set_hash": "",
        "positions": (),
        "cut": known.cut if known else "",
        "late": known.late if known else 0,
        "arrived_ns": known.arrived_ns if known else judged_ns,
    }
    return Landing(
        run_id=trace_id, state=RunState.PART, part_of=part_of, judged_ns=judged_ns, **{**given, **more}
    )


def joint_landings(
    answer: Mapping[str, Json], known: Mapping[str, Known], *, judged_ns: int
) -> Iterator[Landing]:
    """The runs that traces are together, their parts, and what was a run before and is none now. A run of which a trace is
    no longer whole keeps what was said of it."""
    kept = {known[name].part_of for name in answer["lost"]} - {None}
    runs: Sequence[Mapping[str, Json]] = answer["runs"]
    names = {run["run_id"] for run in runs}
    before: dict[str, str] = {}
    for run in runs:
        run_id, traces = run["run_id"], [name for name in run["traces"] if name in known]
        if all(known[name].part_of in kept for name in traces):
            continue
        yield Landing(
            run_id=run_id,
            state=RunState(run["state"]),
            spans=run["spans"],
            span_set_hash=run["hash"],
            positions=(),
            cut="joined" if len(traces) > 1 else known[run_id].cut if run_id in known else "joined",
            arrived_ns=min((known[name].arrived_ns for name in traces), default=judged_ns),
            judged_ns=judged_ns,
            revision=answer.get("revision", ""),
            late=known[run_id].late if run_id in known else 0,
            **_said(run),
        )
        for name in traces:
            if name != run_id:
                yield part_landing(
                    name,
                    part_of=run_id,
                    known=known[name],
                    judged_ns=judged_ns,
                    span_set_hash=answer["hashes"][name],
                    tenant=run.get("tenant") or "default",
                )
            old = known[name].part_of
            if old is not None:
                before.setdefault(old, run_id)
    for old, now in before.items():
        if old not in names and old not in known and old not in kept:
            yield part_landing(old, part_of=now, judged_ns=judged_ns)


def unscored_parts(
    answer: Mapping[str, Json], known: Mapping[str, Known], *, judged_ns: int
) -> Iterator[Landing]:
    """The traces that have no verdict yet and get none, since the scorer could not judge them together."""
    for name, one in known.items():
        if one.state is RunState.PART and one.part_of is None:
            yield Landing(
                run_id=name,
                state=RunState.UNSCORED,
                spans=0,
                span_set_hash="",
                positions=(),
                cut=one.cut,
                arrived_ns=one.arrived_ns,
                judged_ns=judged_ns,
                late=one.late,
                **_said(answer),
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


def _said(answer: Mapping[str, Json]) -> dict[str, Any]:
    return {
        "record": answer.get("record"),
        "tenant": answer.get("tenant") or "default",
        "agent": answer.get("agent"),
        "service": answer.get("service", ""),
        "request_hash": answer.get("request_hash"),
        "flagged": bool(answer.get("flagged")),
        "ending": answer.get("ending", "unknown"),
        "because": answer.get("because", ""),
        "reason": answer.get("reason", ""),
        "verdicts": answer.get("verdicts") or (),
        "session": answer.get("session"),
        "user": answer.get("user"),
    }

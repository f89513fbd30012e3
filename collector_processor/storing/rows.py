"""A stored run as the one object that ``traces --json`` and the API print."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from redfirst.collector_processor.storing.store import Label, StoredRun

Json = Any


def row(run: StoredRun) -> dict[str, Json]:
    """What is said of a run in a list."""
    return {
        "trace_id": run.run_id,
        "state": run.state.value,
        "spans": run.spans,
        "agent": run.agent,
        "tenant": run.tenant,
        "flagged": run.flagged,
        "failed": list(run.failed),
        "labels": [labelled(label) for label in run.labels],
        "version": run.version,
        "cut": run.cut,
        "because": run.because or None,
        "reason": run.reason or None,
        "part_of": run.part_of,
        "arrived": moment(run.arrived_ns),
        "judged": moment(run.judged_ns),
        "judged_ns": run.judged_ns,
    }


def labelled(label: Label) -> dict[str, Json]:
    """What a person said; an empty check is the run as a whole."""
    return {"check": label.check, "right": label.right, "note": label.note}


def moment(time_ns: int) -> str:
    """Unix nanoseconds as UTC in ISO 8601."""
    at = datetime.fromtimestamp(time_ns // 10**9, UTC).replace(microsecond=time_ns % 10**9 // 1000)
    return at.isoformat().replace("+00:00", "Z")

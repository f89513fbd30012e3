"""Traces that no stored verdict covers yet, read from the journal; works whether or not a service runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.format import START, Position
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.receiving.request import HEAD, heads_of
from redfirst.collector_processor.storing.rows import moment
from redfirst.collector_processor.storing.sqlite import ASSEMBLY
from redfirst.collector_processor.storing.store import Query, RunState, StoreReader
from redfirst.evaluators.errors import UnreadableInput

Json = Any


@dataclass(slots=True)
class _Waiting:
    arrived_ns: int
    spans: set[bytes] = field(default_factory=set)
    positions: set[Position] = field(default_factory=set)


def open_runs(home: Home, reader: StoreReader) -> Iterator[dict[str, Json]]:
    """One row per trace that is open; a run that was judged and got more spans since has its version."""
    waiting: dict[str, _Waiting] = {}
    files = JournalFiles(home.journal)
    for placed in files.scan(reader.cursor(ASSEMBLY) or START):
        try:
            heads = heads_of(placed.record.body, placed.record.signal)
        except UnreadableInput:
            continue  # the service counts it; there is nothing to show of it
        for trace_id, packed in heads.items():
            found = waiting.setdefault(trace_id.hex(), _Waiting(placed.record.arrival_ns))
            found.spans.update(span_id for span_id, _, _ in HEAD.iter_unpack(packed))
            found.positions.add(placed.position)
    files.close()
    for run_id, found in waiting.items():
        if found.positions <= set(reader.positions(run_id)):
            continue
        stored = reader.runs(Query(prefix=run_id, states=tuple(RunState)))
        yield {
            "trace_id": run_id,
            "state": "open",
            "spans": len(found.spans),
            "agent": stored[0].agent if stored else None,
            "flagged": False,
            "failed": [],
            "labels": [],
            "version": stored[0].version if stored else 0,
            "cut": None,
            "because": None,
            "reason": None,
            "part_of": stored[0].part_of if stored else None,
            "arrived": moment(found.arrived_ns),
            "judged": None,
            "judged_ns": None,
        }

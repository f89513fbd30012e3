"""Every run that there is, in files or in a store, for the commands that learn from all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.recorded.files import read_files
from redfirst.collector_processor.scoring.span_source import SpanSource, stored_spans
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState
from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.reading import read
from redfirst.evaluators.trajectory import Trajectory

_MOST = 2000
"""Runs of a store that are looked at, the newest."""


def runs_of(home: Home, traces: Sequence[str] | None) -> list[Trajectory]:
    """The runs of the given files; without any, those of the store; none where there is no store.

    Raises:
        UnreadableInput: a file is not OTLP.
        StoreRefused: the store cannot be opened.
    """
    if traces:
        stream = read_files(traces)
        return list(read(stream.spans, stream.logs).runs)
    return list(_stored(home)) if home.store.exists() else []


def _stored(home: Home) -> Iterator[Trajectory]:
    """The newest runs of the store, as far as the journal still holds their spans."""
    reader, source = SqliteReader(home.store), SpanSource(home.journal)
    gone = 0
    try:
        for run in reader.runs(Query(states=(RunState.SCORED,), limit=_MOST)):
            try:
                found = stored_spans(reader, source, run.run_id)
            except (RecordLost, UnreadableInput):
                gone += 1
                continue
            runs = read(found.spans, found.logs).runs
            yield from [one for one in runs if one.run_id == run.run_id] or runs
    finally:
        reader.close()
        source.close()
    if gone:
        print(
            f"redfirst: {gone} run(s) left out: the journal no longer holds all of their spans",
            file=sys.stderr,
        )

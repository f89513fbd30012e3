"""Runs of the store with their spans, read as they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.scoring.span_source import SpanSource, stored_spans
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Label, Query, RunState, request_hash
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.errors import ConfigurationError, UnreadableInput
from redfirst.evaluators.reading import read
from redfirst.replay.freezing import RecordedRun, same_task

_LOOKED_THROUGH = 1000
"""Newest runs that samples are taken from."""
_ALIKE = 50
"""Runs with the same request that are looked at, the newest."""


class RunsInStore:
    """Runs of a home, also while a service writes it."""

    def __init__(self, home: Home, checks: Sequence[Check]) -> None:
        """Open the store read-only.

        Raises:
            StoreRefused: it cannot be opened.
        """
        self._reader = SqliteReader(home.store)
        self._source = SpanSource(home.journal)
        self._checks = checks

    def named(self, wanted: str) -> RecordedRun:
        """The run whose id begins so.

        Raises:
            ConfigurationError: none does, or more than one, or there is no run in its trace.
            RecordLost: the journal no longer holds all of its spans.
        """
        prefix = wanted.lower()
        found = self._reader.runs(Query(prefix=prefix, states=tuple(RunState), limit=5)) if prefix else []
        if len(found) > 1:
            some = ", ".join(run.run_id[:12] for run in found[:4])
            raise ConfigurationError(f"run {wanted}: several runs begin so ({some} …); give more of the id.")
        if not found:
            raise ConfigurationError(
                f"run {wanted}: not in the store {self._reader.path}; --traces PATH reads files.{self._flagged()}"
            )
        run_id = found[0].part_of or found[0].run_id
        recorded = self._load(run_id)
        if recorded is None:
            raise ConfigurationError(f"run {run_id[:12]}: its trace holds no agent, model or tool call.")
        return recorded

    def labels(self, run_id: str) -> Sequence[Label]:
        """What people said of a run."""
        return self._reader.labels_of(run_id)

    def newest(self) -> Iterator[RecordedRun]:
        """Unflagged runs, the newest first."""
        for stored in self._reader.runs(
            Query(flagged=False, states=(RunState.SCORED,), limit=_LOOKED_THROUGH)
        ):
            try:
                found = self._load(stored.run_id)
            except (RecordLost, UnreadableInput):
                continue  # retention took it: there are others
            if found is not None:
                yield found

    def same_task(self, incident: RecordedRun) -> Iterator[RecordedRun]:
        """Other unflagged runs that began with the same words in the same state, the newest first."""
        request = incident.run.request
        if request is None:
            return
        alike = Query(
            flagged=False,
            states=(RunState.SCORED,),
            agent=next(iter(incident.run.agents), None),
            request_hash=request_hash(request),
            limit=_ALIKE,
        )
        for stored in self._reader.runs(alike):
            try:
                other = self._load(stored.run_id)
            except (RecordLost, UnreadableInput):
                continue  # retention took it: there may be others
            if other is None or other.run.run_id == incident.run.run_id:
                continue
            if same_task(incident.run, other.run):
                yield other

    def _load(self, run_id: str) -> RecordedRun | None:
        found = stored_spans(self._reader, self._source, run_id)
        runs = read(found.spans, found.logs).runs
        if not runs:
            return None
        run = next((one for one in runs if one.run_id == run_id), runs[0])
        return RecordedRun(run=run, spans=found.spans, logs=found.logs, verdicts=judge(run, self._checks))

    def _flagged(self) -> str:
        found = self._reader.runs(Query(flagged=True, limit=5))
        names = ", ".join(run.run_id[:12] for run in found[:4])
        return f" Flagged: {names}{' …' if len(found) > 4 else ''}." if found else ""

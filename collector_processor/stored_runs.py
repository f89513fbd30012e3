"""Runs of the store with their spans, for the commands that show, freeze and compare recorded runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.span_source import SpanSource, decoded
from redfirst.collector_processor.sqlite_reading import SqliteReader
from redfirst.collector_processor.store import Query, RunState, StoredRun, request_hash
from redfirst.evaluators.check import Check, judge
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.reading import read
from redfirst.replay.freezing import RecordedRun

_ALIKE = 50
"""Runs with the same request that are offered as a control."""


class StoredRuns(Sequence[RecordedRun]):
    """The unflagged runs of a store, read one by one as they are asked for; after ``named``, those that began with
    the same words as that run."""

    def __init__(self, home: Home, checks: Sequence[Check]) -> None:
        """Open the store read-only.

        Raises:
            StoreRefused: it cannot be opened.
        """
        self._reader = SqliteReader(home.store)
        self._source = SpanSource(home.journal)
        self._checks = checks
        self._query = Query(flagged=False, states=(RunState.SCORED,))
        self._found: list[StoredRun] | None = None

    def named(self, wanted: str) -> RecordedRun:
        """The run whose id begins so.

        Raises:
            ConfigurationError: none does, or more than one, or there is no run in its trace.
        """
        prefix = wanted.lower()
        found = self._reader.runs(Query(prefix=prefix, states=tuple(RunState), limit=5)) if prefix else []
        if len(found) > 1:
            some = ", ".join(run.run_id[:12] for run in found[:4])
            raise ConfigurationError(f"run {wanted}: several runs begin so ({some} …); give more of the id.")
        if not found:
            raise ConfigurationError(f"run {wanted}: not in the store {self._reader.path}.{self._flagged()}")
        record = self._reader.versions(found[0].run_id)[-1].record or {}
        self._query = Query(
            flagged=False,
            states=(RunState.SCORED,),
            agent=found[0].agent,
            request_hash=None if record.get("request") is None else request_hash(str(record["request"])),
            limit=_ALIKE,
        )
        self._found = None
        return self._load(found[0].run_id)

    def __len__(self) -> int:
        return len(self._rows())

    @overload
    def __getitem__(self, index: int) -> RecordedRun: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordedRun]: ...

    def __getitem__(self, index: int | slice) -> RecordedRun | Sequence[RecordedRun]:
        rows = self._rows()
        if isinstance(index, slice):
            return [self._load(run.run_id) for run in rows[index]]
        return self._load(rows[index].run_id)

    def _rows(self) -> list[StoredRun]:
        if self._found is None:
            self._found = self._reader.runs(self._query)
        return self._found

    def _load(self, run_id: str) -> RecordedRun:
        pieces = self._source.slices(bytes.fromhex(run_id), self._reader.positions(run_id))
        found = decoded(pieces)
        runs = read(found.spans, found.logs).runs
        if not runs:
            raise ConfigurationError(f"run {run_id[:12]}: its trace holds no agent, model or tool call.")
        return RecordedRun(
            run=runs[0], spans=found.spans, logs=found.logs, verdicts=judge(runs[0], self._checks)
        )

    def _flagged(self) -> str:
        found = self._reader.runs(Query(flagged=True, limit=5))
        names = ", ".join(run.run_id[:12] for run in found[:4])
        return f" Flagged: {names}{' …' if len(found) > 4 else ''}." if found else ""

"""Reading a SQLite store, from any process and while a service writes it."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.storing.sqlite_schema import open_database
from redfirst.collector_processor.storing.store import Label, Query, RunState, StoredRun

_COLUMNS = (
    "run_id, version, state, tenant, agent, flagged, spans, span_set_hash, cut, arrived_ns, judged_ns, because, "
    "reason, part_of, (SELECT json_group_array(check_id) FROM verdicts WHERE verdicts.run_id = runs.run_id "
    "AND verdicts.version = runs.version AND outcome = 'failed' AND severity IN ('flag', 'page'))"
)

_LABELS = "SELECT run_id, check_id, right, note, at_ns FROM labels"


class SqliteReader:
    """A ``StoreReader`` over a SQLite file."""

    def __init__(self, path: Path, *, read_only: bool = True) -> None:
        """Open the store.

        Raises:
            StoreRefused: it is of another version, or cannot be read.
        """
        self.path = path
        self._lock = threading.RLock()
        self._database = open_database(path, read_only=read_only)

    def runs(self, query: Query) -> list[StoredRun]:
        """The latest versions that the query asks for."""
        where, values = _conditions(query)
        record = ", record" if query.records else ""
        limit = "" if query.limit is None else f" LIMIT {int(query.limit)}"
        sql = f"SELECT {_COLUMNS}{record} FROM runs WHERE {where} ORDER BY judged_ns DESC, run_id{limit}"  # noqa: S608
        rows = self._all(sql, values)
        labels: dict[str, list[Label]] = {}
        for label in self.labels() if rows else ():
            labels.setdefault(label.run_id, []).append(label)
        return [_run(row, labels.get(row[0], ())) for row in rows]

    def versions(self, run_id: str) -> list[StoredRun]:
        """Every version of a run, oldest first."""
        labels = self.labels_of(run_id)
        rows = self._all(f"SELECT {_COLUMNS}, record FROM runs WHERE run_id = ? ORDER BY version", (run_id,))  # noqa: S608
        return [_run(row, labels) for row in rows]

    def labels(self) -> list[Label]:
        """What people said of verdicts."""
        return [_label(row) for row in self._all(_LABELS)]

    def labels_of(self, run_id: str) -> list[Label]:
        """What people said of one run."""
        return [_label(row) for row in self._all(f"{_LABELS} WHERE run_id = ? ORDER BY check_id", (run_id,))]

    def positions(self, run_id: str) -> list[Position]:
        """The journal records of a run."""
        sql = "SELECT segment, offset FROM slices WHERE run_id = ? ORDER BY segment, offset"
        return [Position(*row) for row in self._all(sql, (run_id,))]

    def traces_of(self, run_id: str) -> list[str]:
        """The traces that a run is made of, in order of arrival."""
        rows = self._all(
            "SELECT run_id FROM runs WHERE latest AND (part_of = ?1 OR run_id = ?1) "
            "AND EXISTS (SELECT 1 FROM slices WHERE slices.run_id = runs.run_id) ORDER BY arrived_ns, run_id",
            (run_id,),
        )
        return [row[0] for row in rows]

    def pinned_segments(self) -> frozenset[int]:
        """Journal segments that flagged runs lie in."""
        sql = (
            "SELECT DISTINCT s.segment FROM runs r INDEXED BY runs_flagged CROSS JOIN slices s ON s.run_id = r.run_id "
            "WHERE r.latest AND r.flagged "
            "UNION SELECT s.segment FROM runs p JOIN runs r ON r.run_id = p.part_of "
            "JOIN slices s ON s.run_id = p.run_id WHERE p.latest AND p.part_of IS NOT NULL AND r.latest AND r.flagged"
        )
        return frozenset(row[0] for row in self._all(sql))

    def cursor(self, name: str) -> Position | None:
        """Where a reader goes on."""
        rows = self._all("SELECT segment, offset FROM cursors WHERE name = ?", (name,))
        return Position(*rows[0]) if rows else None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._database.close()

    def _all(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._database.execute(sql, tuple(values)).fetchall()


def _conditions(query: Query) -> tuple[str, list[object]]:
    parts = ["latest", f"state IN ({', '.join('?' * len(query.states))})"]
    values: list[object] = [state.value for state in query.states]
    if query.flagged is not None:
        parts.append("flagged" if query.flagged else "NOT flagged")
    for column, value in (("agent", query.agent), ("request_hash", query.request_hash)):
        if value is not None:
            parts.append(f"{column} = ?")
            values.append(value)
    for column, value in (("session", query.session), ("user", query.user), ("tenant", query.tenant)):
        if value is not None:
            parts.append(f"{column} = ?")
            values.append(value)
    if query.text:
        parts.append("id IN (SELECT rowid FROM words WHERE words MATCH ?)")
        values.append(_matched(query.text))
    if query.prefix:
        parts.append("run_id >= ? AND run_id < ?")
        values += [query.prefix, query.prefix + "\x7f"]
    if query.before_ns is not None:
        parts.append("judged_ns < ?")
        values.append(query.before_ns)
    if query.since_ns is not None:
        parts.append("judged_ns >= ?")
        values.append(query.since_ns)
    return " AND ".join(parts), values


def _matched(text: str) -> str:
    """The words as the index is asked for them: nothing that a person writes is taken for its syntax."""
    readable = text.replace("\0", " ")  # the index takes it for the end of what it is asked
    found = [phrase or word for phrase, word in re.findall(r'"([^"]*)"|([^\s"]+)', readable)]
    return " ".join(f'"{part}"' for part in found if part) or '""'


def _label(row: Sequence[Any]) -> Label:
    run_id, check, right, note, at_ns = row
    return Label(run_id=run_id, check=check, right=bool(right), note=note, at_ns=at_ns)


def _run(row: Sequence[Any], labels: Sequence[Label] = ()) -> StoredRun:
    record = row[15] if len(row) > 15 else None
    return StoredRun(
        run_id=row[0],
        version=row[1],
        state=RunState(row[2]),
        tenant=row[3],
        agent=row[4],
        flagged=bool(row[5]),
        spans=row[6],
        span_set_hash=row[7],
        cut=row[8],
        arrived_ns=row[9],
        judged_ns=row[10],
        because=row[11],
        reason=row[12],
        part_of=row[13],
        failed=tuple(orjson.loads(row[14])),
        record=None if record is None else orjson.loads(record),
        labels=labels,
    )

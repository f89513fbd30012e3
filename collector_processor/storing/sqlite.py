"""The SQLite store's one writer: write-ahead log, every change one transaction that is durable on return."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Known, Label, Landed, Landing, OutboxRow, RunState

ASSEMBLY = "assembly"
"""Name of the assembler's cursor."""
FILE = "store.sqlite3"


class SqliteStore(SqliteReader):
    """A ``Store`` over a SQLite file. The home's lock makes sure that there is one."""

    def __init__(self, path: Path) -> None:
        """Open the store and bring it up to this version.

        Raises:
            StoreRefused: it is of a newer version, or cannot be opened.
        """
        super().__init__(path, read_only=False)

    def known(self, run_id: str) -> Known | None:
        """What there is of a run, erased ones too."""
        rows = self._all("SELECT state, version FROM runs WHERE run_id = ? AND latest", (run_id,))
        if not rows:
            gone = self._all("SELECT version FROM tombstones WHERE run_id = ?", (run_id,))
            return Known(state=RunState.DELETED, version=gone[0][0], positions=frozenset()) if gone else None
        state, version = rows[0]
        return Known(state=RunState(state), version=version, positions=frozenset(self.positions(run_id)))

    def land(
        self, landings: Sequence[Landing], *, cursor: Position, outbox: Sequence[str] = ()
    ) -> list[Landed]:
        """Store what was found, the assembler's cursor and the outbox in one transaction."""
        with self._transaction() as database:
            landed = [_land(database, landing, outbox) for landing in landings]
            _save_cursor(database, ASSEMBLY, cursor)
        return landed

    def save_cursor(self, name: str, position: Position) -> None:
        """Keep where a reader goes on."""
        with self._transaction() as database:
            _save_cursor(database, name, position)

    def cursors(self) -> Mapping[str, Position]:
        """Every reader's position."""
        rows = self._all("SELECT name, segment, offset FROM cursors")
        return {name: Position(segment, offset) for name, segment, offset in rows}

    def recent(self, limit: int) -> list[tuple[str, int]]:
        """The runs judged last and their versions, oldest first."""
        rows = self._all(
            "SELECT run_id, version FROM runs WHERE latest ORDER BY judged_ns DESC LIMIT ?", (limit,)
        )
        return [(run_id, version) for run_id, version in reversed(rows)]

    def pinned_segments(self) -> frozenset[int]:
        """Journal segments that flagged runs lie in."""
        sql = (
            "SELECT DISTINCT s.segment FROM runs r JOIN slices s USING (run_id) WHERE r.latest AND r.flagged"
        )
        return frozenset(row[0] for row in self._all(sql))

    def outbox_due(self, destination: str, now_ns: int, limit: int) -> list[OutboxRow]:
        """What that destination should be sent now, oldest first."""
        rows = self._all(
            "SELECT seq, destination, run_id, version, body, attempts, created_ns FROM outbox "
            "WHERE destination = ? AND next_ns <= ? ORDER BY seq LIMIT ?",
            (destination, now_ns, limit),
        )
        return [
            OutboxRow(
                seq=row[0],
                destination=row[1],
                run_id=row[2],
                version=row[3],
                body=json.loads(row[4]),
                attempts=row[5],
                created_ns=row[6],
            )
            for row in rows
        ]

    def outbox_done(self, seqs: Sequence[int]) -> None:
        """These were delivered."""
        with self._transaction() as database:
            database.executemany("DELETE FROM outbox WHERE seq = ?", [(seq,) for seq in seqs])

    def outbox_later(self, seq: int, next_ns: int, error: str) -> None:
        """This one failed and is tried again."""
        with self._transaction() as database:
            database.execute(
                "UPDATE outbox SET attempts = attempts + 1, next_ns = ?, error = ? WHERE seq = ?",
                (next_ns, error, seq),
            )

    def label(self, label: Label) -> bool:
        """Keep what a person said of a verdict; what was said before is replaced."""
        with self._transaction() as database:
            if not database.execute(
                "SELECT 1 FROM runs WHERE run_id = ? LIMIT 1", (label.run_id,)
            ).fetchall():
                return False
            database.execute(
                "INSERT OR REPLACE INTO labels (run_id, check_id, right, note, at_ns) VALUES (?, ?, ?, ?, ?)",
                (label.run_id, label.check, label.right, label.note, label.at_ns),
            )
        return True

    def delete(self, run_id: str, *, at_ns: int) -> bool:
        """Erase a run everywhere in the store and leave a tombstone."""
        with self._transaction() as database:
            rows = database.execute(
                "SELECT version, spans FROM runs WHERE run_id = ? AND latest", (run_id,)
            ).fetchall()
            if not rows:
                return False
            database.execute(
                "INSERT OR REPLACE INTO tombstones (run_id, version, spans, at_ns) VALUES (?, ?, ?, ?)",
                (run_id, *rows[0], at_ns),
            )
            for table in ("runs", "verdicts", "slices", "labels", "outbox"):
                database.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))  # noqa: S608 - our own names
        return True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise


def _land(database: sqlite3.Connection, landing: Landing, outbox: Sequence[str]) -> Landed:
    run_id = landing.run_id
    if database.execute("SELECT 1 FROM tombstones WHERE run_id = ?", (run_id,)).fetchone():
        return Landed(run_id=run_id, version=0, new=False)
    database.executemany(
        "INSERT OR IGNORE INTO slices (run_id, segment, offset) VALUES (?, ?, ?)",
        [(run_id, *position) for position in landing.positions],
    )
    before = database.execute(
        "SELECT version, span_set_hash, flagged, state FROM runs WHERE run_id = ? AND latest", (run_id,)
    ).fetchone()
    same = before is not None and before[1] == landing.span_set_hash and before[3] != RunState.UNSCORED
    if before is not None and (same or landing.only_positions):
        return Landed(run_id=run_id, version=before[0], new=False, was_flagged=bool(before[2]))
    version = 1 if before is None else before[0] + 1
    database.execute("UPDATE runs SET latest = 0 WHERE run_id = ? AND latest", (run_id,))
    database.execute(
        "INSERT INTO runs (run_id, version, latest, state, tenant, agent, request_hash, flagged, spans, span_set_hash,"
        " cut, arrived_ns, judged_ns, because, record) VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run_id, version, landing.state.value, landing.tenant, landing.agent, landing.request_hash),
            *(landing.flagged, landing.spans, landing.span_set_hash, landing.cut, landing.arrived_ns),
            *(landing.judged_ns, landing.because, landing.record),
        ),
    )
    _verdicts(database, landing, version)
    was_flagged = None if before is None else bool(before[2])
    if landing.state is not RunState.NOT_A_RUN:
        _outbox(database, landing, version, was_flagged, outbox)
    return Landed(run_id=run_id, version=version, new=True, was_flagged=was_flagged)


def _verdicts(database: sqlite3.Connection, landing: Landing, version: int) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO verdicts (run_id, check_id, revision, span_set_hash, version, outcome, class,"
        " severity, score, numerator, denominator, because) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                *(landing.run_id, verdict["check"], verdict["revision"], landing.span_set_hash, version),
                *(verdict["outcome"], verdict["class"], verdict["severity"], verdict["score"]),
                *(verdict["numerator"], verdict["denominator"], verdict["because"]),
            )
            for verdict in landing.verdicts
        ],
    )


def _outbox(
    database: sqlite3.Connection,
    landing: Landing,
    version: int,
    was_flagged: bool | None,
    destinations: Sequence[str],
) -> None:
    if not destinations:
        return
    body = json.dumps(
        {
            "run_id": landing.run_id,
            "version": version,
            "supersedes": version - 1 or None,
            "state": landing.state.value,
            "agent": landing.agent,
            "flagged": landing.flagged,
            "was_flagged": was_flagged,
            "tenant": landing.tenant,
            "judged_ns": landing.judged_ns,
            "verdicts": {verdict["check"]: verdict["outcome"] for verdict in landing.verdicts},
        }
    )
    database.executemany(
        "INSERT INTO outbox (destination, run_id, version, body, created_ns) VALUES (?, ?, ?, ?, ?)",
        [(name, landing.run_id, version, body, landing.judged_ns) for name in destinations],
    )


def _save_cursor(database: sqlite3.Connection, name: str, position: Position) -> None:
    database.execute(
        "INSERT OR REPLACE INTO cursors (name, segment, offset) VALUES (?, ?, ?)", (name, *position)
    )

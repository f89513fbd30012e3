"""The SQLite store's one writer: write-ahead log, every change one transaction that is durable on return."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.storing.sqlite_landing import erase, land, owner_hash
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import (
    Json,
    Known,
    Label,
    Landed,
    Landing,
    OutboxRow,
    Owner,
    Query,
    Recent,
    RunState,
    ToJudgeAgain,
    Unsent,
)

_HELD_OF_ERASED = "DELETE FROM told WHERE destination = ? AND run_id NOT IN (SELECT run_id FROM runs)"
_ERASABLE = (RunState.SCORED, RunState.UNSCORED, RunState.NOT_A_RUN)
_ERASED_AT_ONCE = 500
"""Runs in one transaction: verdicts that are to be stored wait for it."""

_CONNECTED = """
    WITH RECURSIVE found (meeting) AS (
        SELECT value FROM json_each(?)
        UNION
        SELECT other.meeting FROM found
            JOIN meetings mine ON mine.meeting = found.meeting
            JOIN meetings other ON other.trace_id = mine.trace_id
    )
    SELECT m.meeting, m.trace_id FROM found JOIN meetings m USING (meeting)
        JOIN runs r ON r.run_id = m.trace_id AND r.latest ORDER BY r.arrived_ns DESC, m.trace_id
"""

_OUTDATED = (
    "SELECT r.run_id FROM runs r WHERE r.latest AND r.state IN ('scored', 'unscored') AND r.judged_ns >= ? "
    "AND r.revision <> ?"
)
_WHOLE = """
    CREATE TEMP TABLE whole AS SELECT o.run_id FROM outdated o WHERE NOT EXISTS (
        SELECT 1 FROM slices s WHERE s.segment NOT IN (SELECT value FROM json_each(?)) AND s.run_id IN (
            SELECT o.run_id UNION ALL SELECT p.run_id FROM runs p WHERE p.part_of = o.run_id AND p.latest
        )
    )
"""
_AGAIN = (
    "INSERT OR IGNORE INTO again (run_id) SELECT r.run_id FROM whole JOIN runs r USING (run_id) "
    "WHERE r.latest AND r.cut <> 'joined' AND NOT EXISTS (SELECT 1 FROM meetings WHERE trace_id = r.run_id)",
    "INSERT OR IGNORE INTO joins (meeting, due_ns) SELECT DISTINCT m.meeting, 0 FROM whole "
    "JOIN runs p ON p.latest AND (p.run_id = whole.run_id OR p.part_of = whole.run_id) "
    "JOIN meetings m ON m.trace_id = p.run_id",
)
"""What is judged again by itself, and what together."""
_LEFT = """
    SELECT (SELECT count(*) FROM again) + (
        SELECT count(DISTINCT coalesce(p.part_of, p.run_id)) FROM joins j JOIN meetings m USING (meeting)
        JOIN runs p ON p.run_id = m.trace_id AND p.latest WHERE j.due_ns = 0
    ), EXISTS (SELECT 1 FROM joins WHERE due_ns = 0)
"""

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
        sql = (
            "SELECT state, version, late, arrived_ns, judged_ns, ending, cut, part_of FROM runs "
            "WHERE run_id = ? AND latest"
        )
        rows = self._all(sql, (run_id,))
        if not rows:
            gone = self._all("SELECT version, why FROM tombstones WHERE run_id = ?", (run_id,))
            if not gone:
                return None
            return Known(state=RunState(gone[0][1]), version=gone[0][0], positions=frozenset())
        state, version, late, arrived_ns, judged_ns, ending, cut, part_of = rows[0]
        meetings = self._all("SELECT meeting FROM meetings WHERE trace_id = ?", (run_id,))
        return Known(
            state=RunState(state),
            version=version,
            positions=frozenset(self.positions(run_id)),
            late=late,
            arrived_ns=arrived_ns,
            judged_ns=judged_ns,
            ending=ending,
            cut=cut,
            part_of=part_of,
            meetings=frozenset(row[0] for row in meetings),
        )

    def land(
        self,
        landings: Sequence[Landing],
        *,
        cursor: Position | None,
        outbox: Sequence[str] = (),
        joined: Sequence[str] = (),
    ) -> list[Landed]:
        """Store what was found, the assembler's cursor and the outbox in one transaction."""
        with self._transaction() as database:
            landed = [land(database, landing, outbox) for landing in landings]
            database.executemany("DELETE FROM joins WHERE meeting = ?", [(name,) for name in joined])
            if cursor is not None:
                _save_cursor(database, ASSEMBLY, cursor)
        return landed

    def join_later(self, meetings: Sequence[str], due_ns: int) -> None:
        """These are to be judged together at that time; one that waits already keeps its time."""
        with self._transaction() as database:
            sql = "INSERT OR IGNORE INTO joins (meeting, due_ns) VALUES (?, ?)"
            database.executemany(sql, [(name, due_ns) for name in meetings])

    def joins(self) -> Mapping[str, int]:
        """The meetings that are to be judged, and when."""
        return dict(self._all("SELECT meeting, due_ns FROM joins"))

    def meeting(self, meetings: Sequence[str], limit: int) -> tuple[list[str], list[str]]:
        """All traces and all meetings that are connected with these, the newest traces first."""
        rows = self._all(_CONNECTED, (json.dumps(list(meetings)),))
        names = {row[0] for row in rows}
        traces = list(dict.fromkeys(row[1] for row in rows))
        return traces[:limit], sorted(names)

    def rootless(self) -> list[tuple[str, int]]:
        """The runs that are to be told abandoned, and when."""
        return self._all("SELECT run_id, due_ns FROM runs WHERE latest AND due_ns IS NOT NULL")

    def judge_again(self, *, since_ns: int, revision: str, segments: Collection[int]) -> ToJudgeAgain:
        """Note every run judged since then by other checks than these whose spans lie in these segments."""
        with self._transaction() as database:
            database.execute(f"CREATE TEMP TABLE outdated AS {_OUTDATED}", (since_ns, revision))
            database.execute(_WHOLE, (json.dumps(sorted(segments)),))
            for sql in _AGAIN:
                database.execute(sql)
            counts = "SELECT (SELECT count(*) FROM outdated) - (SELECT count(*) FROM whole)"
            (gone,) = database.execute(counts).fetchone()
            for table in ("outdated", "whole"):
                database.execute(f"DROP TABLE temp.{table}")
        return ToJudgeAgain(noted=self.left_to_judge_again(), spans_gone=gone)

    def outdated(self, *, since_ns: int, revision: str) -> int:
        """How many runs were judged since then by other checks than these."""
        return len(self._all(_OUTDATED, (since_ns, revision)))

    def left_to_judge_again(self) -> int:
        """How many runs are noted, those of several traces too."""
        runs, meetings = self._all(_LEFT)[0]
        return max(int(runs), int(meetings))  # one of which nothing is left is looked at, too

    def to_judge_again(self, limit: int) -> list[str]:
        """Some of the runs that were noted."""
        return [row[0] for row in self._all("SELECT run_id FROM again ORDER BY run_id LIMIT ?", (limit,))]

    def expire(self, before_ns: int, *, at_ns: int, limit: int) -> int:
        """Leave a tombstone for runs judged last before then; how many there were, at most ``limit``."""
        sql = "SELECT run_id FROM runs WHERE latest AND judged_ns < ? ORDER BY judged_ns LIMIT ?"
        with self._transaction() as database:
            found = [row[0] for row in database.execute(sql, (before_ns, limit)).fetchall()]
            for run_id in found:
                erase(database, run_id, why=RunState.EXPIRED, at_ns=at_ns)
            database.execute("DELETE FROM erasures WHERE at_ns < ?", (before_ns,))
        return len(found)

    def save_cursor(self, name: str, position: Position) -> None:
        """Keep where a reader goes on."""
        with self._transaction() as database:
            _save_cursor(database, name, position)

    def cursors(self) -> Mapping[str, Position]:
        """Every reader's position."""
        rows = self._all("SELECT name, segment, offset FROM cursors")
        return {name: Position(segment, offset) for name, segment, offset in rows}

    def recent(self, limit: int) -> list[Recent]:
        """The runs judged last, oldest first."""
        rows = self._all(
            "SELECT run_id, late, ending, cut, judged_ns FROM runs WHERE latest ORDER BY judged_ns DESC LIMIT ?",
            (limit,),
        )
        return [
            Recent(run_id=run_id, late=late, ending=ending, cut=cut, judged_ns=judged_ns)
            for run_id, late, ending, cut, judged_ns in reversed(rows)
        ]

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

    def told(self, destination: str, run_id: str) -> Mapping[str, Json] | None:
        """What a destination may hold of a run."""
        rows = self._all("SELECT body FROM told WHERE destination = ? AND run_id = ?", (destination, run_id))
        return dict(json.loads(rows[0][0])) if rows else None

    def tell(self, destination: str, run_id: str, what: Mapping[str, Json] | None) -> None:
        """Keep what a destination may hold of a run."""
        with self._transaction() as database:
            database.execute("DELETE FROM told WHERE destination = ? AND run_id = ?", (destination, run_id))
            if what is not None:
                database.execute(
                    "INSERT INTO told (destination, run_id, body) VALUES (?, ?, ?)",
                    (destination, run_id, json.dumps(what)),
                )

    def delete(self, run_id: str, *, at_ns: int) -> bool:
        """Erase a run and its traces everywhere in the store and leave tombstones."""
        with self._transaction() as database:
            return _delete(database, run_id, at_ns)

    def erase_all(self, owner: Owner, *, at_ns: int) -> list[str]:
        """Erase every run of a user or a session, and those that are still open once they land."""
        with self._transaction() as database:  # first: what lands from now on is erased by this
            database.execute(
                "INSERT OR REPLACE INTO erasures (what, name, tenant, at_ns) VALUES (?, ?, ?, ?)",
                (owner.what, owner_hash(owner.name), owner.tenant or "", at_ns),
            )
        query = Query(**{owner.what: owner.name}, tenant=owner.tenant, states=_ERASABLE)  # type: ignore[arg-type]
        found = [run.run_id for run in self.runs(query)]
        erased = []
        for first in range(0, len(found), _ERASED_AT_ONCE):
            with self._transaction() as database:
                some = found[first : first + _ERASED_AT_ONCE]
                erased += [run_id for run_id in some if _delete(database, run_id, at_ns)]
        return erased

    def forget_destinations(self, configured: Collection[str]) -> Mapping[str, Unsent]:
        """Let go what waits for destinations that are not these."""
        found: dict[str, Unsent] = {}
        with self._transaction() as database:
            known = database.execute("SELECT destination FROM outbox UNION SELECT destination FROM told")
            for (name,) in sorted(known.fetchall()):
                if name in configured:
                    continue
                rows = database.execute("DELETE FROM outbox WHERE destination = ?", (name,)).rowcount
                erased = database.execute(_HELD_OF_ERASED, (name,)).rowcount
                if rows or erased:
                    found[name] = Unsent(rows=rows, erased=erased)
        return found

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


def _delete(database: sqlite3.Connection, run_id: str, at_ns: int) -> bool:
    names = [*_parts(database, run_id), run_id]
    meetings = [
        row[0]
        for name in names
        for row in database.execute("SELECT meeting FROM meetings WHERE trace_id = ?", (name,))
    ]
    erased = [erase(database, name, why=RunState.DELETED, at_ns=at_ns) for name in names]
    sql = "INSERT OR IGNORE INTO joins (meeting, due_ns) SELECT DISTINCT meeting, 0 FROM meetings WHERE meeting = ?"
    database.executemany(sql, [(name,) for name in meetings])  # the others are a run without it
    return any(erased)


def _parts(database: sqlite3.Connection, run_id: str) -> list[str]:
    rows = database.execute("SELECT run_id FROM runs WHERE part_of = ? AND latest", (run_id,)).fetchall()
    return [row[0] for row in rows]


def _save_cursor(database: sqlite3.Connection, name: str, position: Position) -> None:
    database.execute(
        "INSERT OR REPLACE INTO cursors (name, segment, offset) VALUES (?, ?, ?)", (name, *position)
    )

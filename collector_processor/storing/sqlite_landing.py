"""What one judged run changes in the SQLite store, and what its erasure does; each within the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from redfirst.collector_processor.storing.store import Landed, Landing, RunState
from redfirst.evaluators.canonical import digest

_TEXTS = "substr(json_extract(record, '$.request'), 1, 16384), substr(json_extract(record, '$.answer'), 1, 16384) FROM runs"


def land(database: sqlite3.Connection, landing: Landing, outbox: Sequence[str]) -> Landed:
    run_id = landing.run_id
    if database.execute("SELECT 1 FROM tombstones WHERE run_id = ?", (run_id,)).fetchone():
        return Landed(run_id=run_id, version=0, new=False)
    if _was_to_be_erased(database, landing):
        _erase_unseen(database, landing)
        return Landed(run_id=run_id, version=0, new=False, erased=True)
    database.executemany(
        "INSERT OR IGNORE INTO slices (run_id, segment, offset) VALUES (?, ?, ?)",
        [(run_id, *position) for position in landing.positions],
    )
    if landing.meetings is not None:
        _meet(database, run_id, landing.meetings)
    before = database.execute(
        "SELECT id, version, span_set_hash, flagged, state, revision, part_of FROM runs WHERE run_id = ? AND latest",
        (run_id,),
    ).fetchone()
    database.execute("DELETE FROM again WHERE run_id = ?", (run_id,))
    if before is not None and (landing.only_positions or _same(landing, *before[2:])):
        return Landed(run_id=run_id, version=before[1], new=False, was_flagged=bool(before[3]))
    version = 1 if before is None else before[1] + 1
    if before is not None:
        _forget_words(database, before[0])
        database.execute("UPDATE runs SET latest = 0, due_ns = NULL WHERE id = ?", (before[0],))
    added = database.execute(
        "INSERT INTO runs (run_id, version, latest, state, tenant, agent, request_hash, flagged, spans, span_set_hash,"
        " cut, arrived_ns, judged_ns, because, record, revision, reason, ending, late, part_of, due_ns, session, user)"
        " VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(run_id, version, landing.state.value, landing.tenant, landing.agent, landing.request_hash),
            *(landing.flagged, landing.spans, landing.span_set_hash, landing.cut, landing.arrived_ns),
            *(landing.judged_ns, landing.because, landing.record, landing.revision, landing.reason),
            *(landing.ending, landing.late, landing.part_of, landing.due_ns, landing.session, landing.user),
        ),
    ).lastrowid
    if landing.record is not None:
        database.execute(
            f"INSERT INTO words (rowid, request, answer) SELECT id, {_TEXTS} WHERE id = ?", (added,)
        )
    _verdicts(database, landing, version)
    was_flagged = None if before is None else bool(before[3])
    if landing.state is not RunState.NOT_A_RUN:
        _outbox(database, landing, version, was_flagged, outbox)
    return Landed(run_id=run_id, version=version, new=True, was_flagged=was_flagged)


def owner_hash(name: str) -> str:
    """What stands for a user or a session that was erased."""
    return digest(["erased", name])


def _was_to_be_erased(database: sqlite3.Connection, landing: Landing) -> bool:
    """Whether the run was open when its user or session was erased, or is part of a run that a person erased."""
    if landing.part_of is not None:
        sql = "SELECT 1 FROM tombstones WHERE run_id = ? AND why = ?"
        return database.execute(sql, (landing.part_of, RunState.DELETED)).fetchone() is not None
    sql = "SELECT 1 FROM erasures WHERE what = ? AND name = ? AND tenant IN ('', ?) AND at_ns >= ?"
    return any(
        name is not None
        and database.execute(sql, (what, owner_hash(name), landing.tenant, landing.arrived_ns)).fetchone()
        for what, name in (("user", landing.user), ("session", landing.session))
    )


def _erase_unseen(database: sqlite3.Connection, landing: Landing) -> None:
    if not erase(database, landing.run_id, why=RunState.DELETED, at_ns=landing.judged_ns):
        _bury(
            database, landing.run_id, (1, landing.spans, landing.flagged), RunState.DELETED, landing.judged_ns
        )


def _bury(
    database: sqlite3.Connection, run_id: str, about: Sequence[object], why: RunState, at_ns: int
) -> None:
    database.execute(
        "INSERT OR REPLACE INTO tombstones (run_id, version, spans, flagged, why, at_ns) VALUES (?, ?, ?, ?, ?, ?)",
        (run_id, *about, why.value, at_ns),
    )


def erase(database: sqlite3.Connection, run_id: str, *, why: RunState, at_ns: int) -> bool:
    """Remove everything of a run but a tombstone; False when there is no such run."""
    rows = database.execute(
        "SELECT id, version, spans, flagged FROM runs WHERE run_id = ? AND latest", (run_id,)
    ).fetchall()
    if not rows:
        return False
    number, *about = rows[0]
    _forget_words(database, number)
    _bury(database, run_id, about, why, at_ns)
    for table in ("runs", "verdicts", "slices", "labels", "again"):
        database.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))  # noqa: S608 - our own names
    database.execute("DELETE FROM meetings WHERE trace_id = ?", (run_id,))
    if why is RunState.DELETED:
        database.execute("DELETE FROM outbox WHERE run_id = ?", (run_id,))
        body = json.dumps({"run_id": run_id, "state": why.value})
        database.execute(
            "INSERT INTO outbox (destination, run_id, version, body, created_ns) "
            "SELECT destination, run_id, ?, ?, ? FROM told WHERE run_id = ?",
            (about[0], body, at_ns, run_id),
        )
    else:  # what is only too old to be kept here stays where it was told, and is told where it was not yet
        database.execute("DELETE FROM told WHERE run_id = ?", (run_id,))
    return True


def _same(
    landing: Landing, span_set_hash: str, _: int, state: str, revision: str, part_of: str | None
) -> bool:
    """Whether the stored version says what this one does."""
    if state == RunState.UNSCORED or (state == RunState.PART) != (landing.state is RunState.PART):
        return False
    if state == RunState.PART:
        return span_set_hash == landing.span_set_hash and part_of == landing.part_of
    return span_set_hash == landing.span_set_hash and (revision == landing.revision or not landing.revision)


def _meet(database: sqlite3.Connection, trace_id: str, meetings: Sequence[str]) -> None:
    database.execute("DELETE FROM meetings WHERE trace_id = ?", (trace_id,))
    database.executemany(
        "INSERT INTO meetings (meeting, trace_id) VALUES (?, ?)", [(name, trace_id) for name in meetings]
    )


def _forget_words(database: sqlite3.Connection, number: int) -> None:
    """A contentless index is told what it held."""
    database.execute(
        f"INSERT INTO words (words, rowid, request, answer) SELECT 'delete', id, {_TEXTS}"
        " WHERE id = ? AND record IS NOT NULL",
        (number,),
    )


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

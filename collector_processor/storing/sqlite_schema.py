"""The tables of the SQLite store, as numbered migrations that are never edited once released."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from redfirst.collector_processor.storing.store import StoreRefused

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE runs (
        run_id TEXT NOT NULL, version INTEGER NOT NULL, latest INTEGER NOT NULL, state TEXT NOT NULL,
        tenant TEXT NOT NULL, agent TEXT, request_hash TEXT, flagged INTEGER NOT NULL, spans INTEGER NOT NULL,
        span_set_hash TEXT NOT NULL, cut TEXT NOT NULL, arrived_ns INTEGER NOT NULL, judged_ns INTEGER NOT NULL,
        because TEXT NOT NULL, record TEXT,
        PRIMARY KEY (run_id, version)
    );
    CREATE INDEX runs_judged ON runs (judged_ns) WHERE latest;
    CREATE INDEX runs_flagged ON runs (judged_ns) WHERE latest AND flagged;
    CREATE INDEX runs_alike ON runs (agent, request_hash) WHERE latest;
    CREATE TABLE verdicts (
        run_id TEXT NOT NULL, check_id TEXT NOT NULL, revision TEXT NOT NULL, span_set_hash TEXT NOT NULL,
        version INTEGER NOT NULL, outcome TEXT NOT NULL, class TEXT NOT NULL, severity TEXT NOT NULL,
        score REAL, numerator INTEGER, denominator INTEGER, because TEXT NOT NULL,
        PRIMARY KEY (run_id, check_id, revision, span_set_hash)
    ) WITHOUT ROWID;
    CREATE TABLE slices (
        run_id TEXT NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL,
        PRIMARY KEY (run_id, segment, offset)
    ) WITHOUT ROWID;
    CREATE TABLE cursors (name TEXT PRIMARY KEY, segment INTEGER NOT NULL, offset INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, run_id TEXT NOT NULL,
        version INTEGER NOT NULL, body TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
        created_ns INTEGER NOT NULL, next_ns INTEGER NOT NULL DEFAULT 0, error TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX outbox_due ON outbox (destination, next_ns, seq);
    CREATE TABLE labels (
        run_id TEXT NOT NULL, check_id TEXT NOT NULL, right INTEGER NOT NULL, note TEXT NOT NULL,
        at_ns INTEGER NOT NULL,
        PRIMARY KEY (run_id, check_id)
    ) WITHOUT ROWID;
    CREATE TABLE tombstones (
        run_id TEXT PRIMARY KEY, version INTEGER NOT NULL, spans INTEGER NOT NULL, at_ns INTEGER NOT NULL
    ) WITHOUT ROWID;
    """,
)


def open_database(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection to a store of this version; one that is opened for writing is brought up to it.

    Raises:
        StoreRefused: it is of a newer version, damaged, or cannot be read.
    """
    try:
        if read_only:
            database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA busy_timeout = 10000")
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
    except (sqlite3.Error, OSError) as problem:
        raise StoreRefused(f"Store {path}: cannot be opened: {problem}.") from problem
    if version > len(MIGRATIONS):
        database.close()
        raise StoreRefused(
            f"Store {path} was written by a newer redfirst (store version {version}; this one knows "
            f"{len(MIGRATIONS)}): upgrade redfirst, or point REDFIRST_HOME elsewhere."
        )
    if not read_only:
        _prepare(database, path, version)
    elif version < len(MIGRATIONS):
        database.close()
        raise StoreRefused(f"Store {path} is of version {version}: start redfirst serve once to bring it up.")
    return database


def _prepare(database: sqlite3.Connection, path: Path, version: int) -> None:
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        for number, script in enumerate(MIGRATIONS[version:], version + 1):
            database.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")
    except sqlite3.Error as problem:
        database.close()
        raise StoreRefused(f"Store {path}: cannot be brought up to date: {problem}.") from problem

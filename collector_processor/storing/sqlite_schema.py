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
    """
    CREATE TABLE judged_runs (
        id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, version INTEGER NOT NULL, latest INTEGER NOT NULL,
        state TEXT NOT NULL, tenant TEXT NOT NULL, agent TEXT, request_hash TEXT, flagged INTEGER NOT NULL,
        spans INTEGER NOT NULL, span_set_hash TEXT NOT NULL, cut TEXT NOT NULL, arrived_ns INTEGER NOT NULL,
        judged_ns INTEGER NOT NULL, because TEXT NOT NULL, record TEXT,
        revision TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', ending TEXT NOT NULL DEFAULT 'unknown',
        late INTEGER NOT NULL DEFAULT 0, part_of TEXT, due_ns INTEGER, session TEXT, user TEXT,
        UNIQUE (run_id, version)
    );
    INSERT INTO judged_runs (run_id, version, latest, state, tenant, agent, request_hash, flagged, spans,
        span_set_hash, cut, arrived_ns, judged_ns, because, record, ending, late, session)
        SELECT run_id, version, latest, state, tenant, agent, request_hash, flagged, spans, span_set_hash, cut,
            arrived_ns, judged_ns, because, record,
            coalesce(json_extract(record, '$.termination.reason'), 'unknown'), version - 1,
            json_extract(record, '$.session_id')
        FROM runs ORDER BY judged_ns;
    DROP TABLE runs;
    ALTER TABLE judged_runs RENAME TO runs;
    CREATE INDEX runs_judged ON runs (judged_ns DESC, run_id) WHERE latest;
    CREATE INDEX runs_flagged ON runs (judged_ns DESC, run_id) WHERE latest AND flagged;
    CREATE INDEX runs_alike ON runs (agent, request_hash) WHERE latest;
    CREATE INDEX runs_parts ON runs (part_of) WHERE latest AND part_of IS NOT NULL;
    CREATE INDEX runs_due ON runs (due_ns) WHERE latest AND due_ns IS NOT NULL;
    CREATE INDEX runs_session ON runs (session) WHERE session IS NOT NULL;
    CREATE INDEX runs_user ON runs (user) WHERE user IS NOT NULL;
    CREATE VIRTUAL TABLE words USING fts5(request, answer, content='');
    INSERT INTO words (rowid, request, answer)
        SELECT id, substr(json_extract(record, '$.request'), 1, 16384), substr(json_extract(record, '$.answer'), 1, 16384)
        FROM runs WHERE latest AND record IS NOT NULL;
    CREATE TABLE meetings (
        meeting TEXT NOT NULL, trace_id TEXT NOT NULL, PRIMARY KEY (meeting, trace_id)
    ) WITHOUT ROWID;
    CREATE INDEX meetings_of ON meetings (trace_id);
    CREATE TABLE joins (meeting TEXT PRIMARY KEY, due_ns INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE again (run_id TEXT PRIMARY KEY) WITHOUT ROWID;
    ALTER TABLE tombstones ADD COLUMN why TEXT NOT NULL DEFAULT 'deleted';
    ALTER TABLE tombstones ADD COLUMN flagged INTEGER NOT NULL DEFAULT 0;
    """,
    """
    CREATE TABLE told (
        destination TEXT NOT NULL, run_id TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (destination, run_id)
    ) WITHOUT ROWID;
    """,
    """
    CREATE TABLE erasures (
        what TEXT NOT NULL, name TEXT NOT NULL, tenant TEXT NOT NULL, at_ns INTEGER NOT NULL,
        PRIMARY KEY (what, name, tenant)
    ) WITHOUT ROWID;
    CREATE INDEX outbox_run ON outbox (run_id);
    CREATE INDEX told_run ON told (run_id);
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
        raise StoreRefused(f"Store {path}: cannot be opened: {problem}.{_remedy(problem, path)}") from problem
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
        raise StoreRefused(
            f"Store {path}: cannot be brought up to date: {problem}.{_remedy(problem, path)}"
        ) from problem


def _remedy(problem: Exception, path: Path) -> str:
    """What to do about it. A store that is moved away is made anew from what the journal holds."""
    said = str(problem)
    if "not a database" in said or "malformed" in said:
        return (
            f" It is damaged: move {path.name}* away, and serve judges what the journal holds again"
            f" (labels are lost), or put a backup in its place."
        )
    if "locked" in said:
        return " Another program holds it: end that, and start again."
    if "readonly" in said or "unable to open" in said:
        return " The folder and the file must be writable for the user that serve runs as."
    return ""

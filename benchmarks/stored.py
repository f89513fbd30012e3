"""What a store with very many runs costs: ``python benchmarks/stored.py --runs 1000000``.

Fills a temporary store with runs of 6 spans, a fifth of them with a conversation of their own, a tenth flagged, through the
same ``land`` that the service uses, and measures: rows stored a second, size on disk, reads by id, of what was flagged
in the last hour, of the newest page, by words; the listing of what retention must keep; and how long a start takes to open
the store and remember what it should. Prints a table, and the figures as JSON on the last line.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Landing, Query, RunState

HOUR_NS = 3600 * 10**9
RUNS_AN_HOUR = 12_000
BATCH = 500
WORDS = (
    *(
        "order",
        "refund",
        "lamp",
        "parcel",
        "invoice",
        "address",
        "return",
        "damaged",
        "blue",
        "green",
        "late",
    ),
    *("card", "voucher", "size", "stock"),
)


VERDICT = "check_id, revision, span_set_hash, version, outcome, class, severity, score, numerator, denominator, because"


def landings(count: int, chance: random.Random, now_ns: int) -> Iterator[Landing]:
    """Runs in the order of time, the last of them now."""
    for number in range(count):
        run_id = f"f{chance.getrandbits(124):031x}"  # copies begin with their number, which must meet none
        flagged = chance.random() < 0.1
        at = now_ns - (count - 1 - number) * HOUR_NS // RUNS_AN_HOUR
        asked = f"Where is my {' '.join(chance.choices(WORDS, k=4))} of order {number}?"
        verdicts = [
            {
                "check": name,
                "revision": "0123456789abcdef",
                "class": "trajectory",
                "severity": "flag",
                "outcome": "failed" if flagged and name == "repeats" else "passed",
                "score": 1.0,
                "numerator": 6,
                "denominator": 6,
                "because": "6 calls, none of them repeated",
            }
            for name in ("repeats", "termination", "tool_errors")
        ]
        record = {
            "trace_id": run_id,
            "trace_ids": [run_id],
            "agents": ["support"],
            "session_id": f"s-{number // 5}",
            "request": asked,
            "answer": f"It is on its way: {' '.join(chance.choices(WORDS, k=8))}.",
            "termination": {"reason": "completed", "cap": None},
            "verdicts": verdicts,
            "flagged": flagged,
        }
        yield Landing(
            run_id=run_id,
            state=RunState.SCORED,
            spans=6,
            span_set_hash=f"{chance.getrandbits(128):032x}",
            positions=[Position(1 + number // 30_000, 8 + number % 30_000 * 2_000)],
            cut="root_ended",
            arrived_ns=at - 10**10,
            judged_ns=at,
            record=json.dumps(record),
            agent=f"support-{number % 7}",
            request_hash=f"{number % 5000:032x}",
            flagged=flagged,
            ending="completed",
            verdicts=verdicts,
            revision="0123456789abcdef",
            session=f"s-{number // 5}",
        )


def copied(path: Path, copies: int) -> None:
    """So many copies of every run under other ids, each batch of them older: filling by ``land`` alone takes longer than
    what is measured. Their texts, verdicts and places are the same."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    columns = [row[1] for row in database.execute("PRAGMA table_info(runs)") if row[1] != "id"]
    span_ns = database.execute("SELECT max(judged_ns) - min(judged_ns) + 1 FROM runs").fetchone()[0]
    (first,) = database.execute("SELECT count(*) FROM runs").fetchone()
    for copy in range(1, copies):
        changed = {
            "run_id": f"printf('%06x', {copy}) || substr(run_id, 7)",
            "judged_ns": f"judged_ns - {copy * span_ns}",
        }
        chosen = ", ".join(changed.get(name, name) for name in columns)
        new = changed["run_id"]
        database.execute("BEGIN")
        database.execute(
            f"INSERT INTO runs ({', '.join(columns)}) "  # noqa: S608 - our own words
            f"SELECT {chosen} FROM runs WHERE id <= {first}"
        )
        for table, rest in (("verdicts", VERDICT), ("slices", "segment, offset")):
            database.execute(
                f"INSERT INTO {table} (run_id, {rest}) SELECT {new}, {rest} FROM {table} "  # noqa: S608 - our own words
                f"WHERE run_id IN (SELECT run_id FROM runs WHERE id <= {first})"
            )
        database.execute(
            "INSERT INTO words (rowid, request, answer) SELECT id, json_extract(record, '$.request'), "  # noqa: S608
            f"json_extract(record, '$.answer') FROM runs WHERE id > {copy * first}"
        )
        database.execute("COMMIT")
    database.close()


def timed(ask: Callable[[], object], times: int) -> dict[str, float]:
    """Median and 99th percentile, in milliseconds."""
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        ask()
        took.append((time.perf_counter() - begun) * 1e3)
    took.sort()
    return {"p50": statistics.median(took), "p99": took[min(len(took) - 1, int(len(took) * 0.99))]}


def main() -> int:
    """Fill and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--copies", type=int, default=1, help="of every run, made in the database")
    options = parser.parse_args()
    chance = random.Random(7)  # noqa: S311 - made-up runs
    now_ns = time.time_ns()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite3"
        store = SqliteStore(path)
        some: list[str] = []
        batch: list[Landing] = []
        begun, cpu = time.perf_counter(), time.process_time()
        for number, landing in enumerate(landings(options.runs, chance, now_ns)):
            batch.append(landing)
            if number % max(1, options.runs // 500) == 0:
                some.append(landing.run_id)
            if len(batch) == BATCH:
                store.land(batch, cursor=Position(1, number))
                batch = []
        store.land(batch, cursor=Position(9, 9))
        filled, filled_cpu = time.perf_counter() - begun, time.process_time() - cpu
        if options.copies > 1:
            copied(path, options.copies)
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        runs = options.runs * options.copies
        reader = SqliteReader(path)
        found = {
            "by_id_ms": timed(lambda: reader.versions(chance.choice(some)), 500),
            "by_prefix_ms": timed(lambda: reader.runs(Query(prefix=chance.choice(some)[:9], limit=5)), 300),
            "flagged_last_hour_100_ms": timed(
                lambda: reader.runs(Query(flagged=True, since_ns=now_ns - HOUR_NS, limit=100)), 100
            ),
            "flagged_last_hour_ms": timed(
                lambda: reader.runs(Query(flagged=True, since_ns=now_ns - HOUR_NS)), 20
            ),
            "newest_100_ms": timed(lambda: reader.runs(Query(limit=100)), 100),
            "rare_words_ms": timed(
                lambda: reader.runs(Query(text=f"order {chance.randrange(options.runs)}")), 100
            ),
            "common_words_100_ms": timed(lambda: reader.runs(Query(text='"blue green"', limit=100)), 5),
            "known_ms": timed(lambda: store.known(chance.choice(some)), 500),
            "pinned_ms": timed(reader.pinned_segments, 3),
        }
        flagged = len(reader.runs(Query(flagged=True, since_ns=now_ns - HOUR_NS)))
        reader.close()
        begun = time.perf_counter()
        store.close()
        closed = time.perf_counter() - begun
        begun = time.perf_counter()
        again = SqliteStore(path)
        again.recent(100_000)
        again.rootless()
        again.joins()
        opened = time.perf_counter() - begun
        again.close()
    figures = {
        "runs": runs,
        "stored_per_second": options.runs / filled,
        "stored_per_cpu_second": options.runs / filled_cpu,
        "bytes_a_run": size / runs,
        "close_s": closed,
        "start_s": opened,
        "flagged_last_hour": flagged,
        **found,
    }
    for name, value in figures.items():
        shown = (
            f"p50 {value['p50']:.2f}  p99 {value['p99']:.2f}" if isinstance(value, dict) else f"{value:,.2f}"
        )
        print(f"{name:28} {shown}")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

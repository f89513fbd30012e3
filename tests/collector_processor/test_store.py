"""Runs, versions, outbox and tombstones, in whatever store."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import Position, Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.storing import sqlite_schema
from redfirst.collector_processor.storing.expiring import expire
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import (
    Label,
    Landing,
    Owner,
    Query,
    RunState,
    Store,
    StoreRefused,
    Unsent,
)
from tests.otlp.bodies import a_span, body

RUN = "ab" * 16
FIRST = Landing(
    run_id=RUN,
    state=RunState.SCORED,
    spans=3,
    span_set_hash="h1",
    positions=[Position(1, 8), Position(1, 90)],
    cut="root_ended",
    arrived_ns=1,
    judged_ns=2,
    record=json.dumps({"trace_id": RUN, "request": "hello"}),
    agent="support",
    request_hash="q",
    flagged=True,
    verdicts=[
        {
            "check": "repeats", "revision": "r1", "outcome": "failed", "class": "trajectory", "severity": "flag",
            "score": 0.5, "numerator": 1, "denominator": 2, "because": "why",
        }
    ],
)  # fmt: skip
SECOND = replace(FIRST, span_set_hash="h2", spans=4, flagged=False, positions=[Position(2, 8)], judged_ns=3)
CURSOR = Position(2, 50)


IMPLEMENTATIONS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: SqliteStore(folder / "store.sqlite3")
}
"""Every store passes the tests of this file that take ``store``; another one is added here."""


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def store(request: pytest.FixtureRequest, tmp_path: Path):
    made = IMPLEMENTATIONS[request.param](tmp_path)
    yield made
    made.close()


def test_a_later_version_supersedes_and_both_can_be_read(store: Store):
    """One latest version in every list; the earlier one stays with its verdict."""
    assert store.land([FIRST], cursor=CURSOR)[0].was_flagged is None
    second = store.land([SECOND], cursor=CURSOR)[0]

    assert (second.version, second.new, second.was_flagged) == (2, True, True)
    assert [(run.version, run.flagged) for run in store.runs(Query())] == [(2, False)]
    assert [run.flagged for run in store.versions(RUN)] == [True, False]
    assert store.positions(RUN) == [Position(1, 8), Position(1, 90), Position(2, 8)]


def test_the_same_spans_are_the_same_version(store: Store):
    """A run that is judged again after a crash is stored once; positions are added."""
    store.land([FIRST], cursor=CURSOR)
    again = store.land([replace(FIRST, positions=[Position(3, 8)])], cursor=CURSOR, outbox=["alerts"])[0]

    assert (again.version, again.new) == (1, False)
    assert Position(3, 8) in store.positions(RUN)
    assert store.outbox_due("alerts", 10**18, 10) == []


def test_a_run_that_could_not_be_judged_is_judged_again(store: Store):
    """Unscored is no verdict: the same spans make the next version."""
    store.land(
        [replace(FIRST, state=RunState.UNSCORED, record=None, verdicts=(), because="died")], cursor=CURSOR
    )

    assert store.land([FIRST], cursor=CURSOR)[0].version == 2


def test_every_destination_gets_one_row_per_version(store: Store):
    """Written with the verdict; gone when delivered; tried again later when not."""
    store.land([FIRST], cursor=CURSOR, outbox=["alerts", "sink"])
    store.land([SECOND], cursor=CURSOR, outbox=["alerts"])

    first, second = store.outbox_due("alerts", 100, 10)
    assert (first.body["version"], second.body["supersedes"], second.body["was_flagged"]) == (1, 1, True)
    store.outbox_done([first.seq])
    store.outbox_later(second.seq, 200, "refused")
    assert store.outbox_due("alerts", 100, 10) == []
    assert [row.attempts for row in store.outbox_due("alerts", 200, 10)] == [1]
    assert len(store.outbox_due("sink", 100, 10)) == 1


def test_a_landing_is_all_or_nothing(store: Store):
    """When one landing of a batch cannot be stored, none is, and the cursor stays."""
    store.save_cursor("assembly", Position(1, 8))
    with pytest.raises(KeyError):
        store.land(
            [FIRST, replace(SECOND, run_id="cd" * 16, verdicts=[{}])], cursor=CURSOR, outbox=["alerts"]
        )

    assert store.runs(Query()) == []
    assert store.cursor("assembly") == Position(1, 8)
    assert store.outbox_due("alerts", 100, 10) == []


def test_an_erased_run_does_not_come_back(store: Store):
    """A tombstone stays: late spans and a second landing are dropped."""
    store.land([FIRST], cursor=CURSOR, outbox=["alerts"])
    store.label(Label(run_id=RUN, check="repeats", right=True))

    assert store.delete(RUN, at_ns=5)
    assert not store.delete(RUN, at_ns=6)
    assert (store.runs(Query()), store.versions(RUN), store.positions(RUN)) == ([], [], [])
    assert store.outbox_due("alerts", 100, 10) == []
    known = store.known(RUN)
    assert known is not None
    assert known.state is RunState.DELETED
    assert not store.land([SECOND], cursor=CURSOR)[0].new
    assert store.runs(Query()) == []


def test_a_label_is_kept_with_the_run_and_can_be_changed(store: Store):
    """The last word counts."""
    assert not store.label(Label(run_id=RUN, check="repeats", right=True))
    store.land([FIRST], cursor=CURSOR)
    store.label(Label(run_id=RUN, check="repeats", right=True, at_ns=1))
    store.label(Label(run_id=RUN, check="repeats", right=False, note="polling", at_ns=2))

    assert [(label.right, label.note) for label in store.versions(RUN)[-1].labels] == [(False, "polling")]


def test_a_list_names_the_failed_checks_and_the_labels(store: Store):
    """Of the latest version: a check that passed, or fails without flagging, is not named."""
    verdict = FIRST.verdicts[0]
    others = [
        {**verdict, "check": "tool_errors", "severity": "note"},
        {**verdict, "check": "termination", "outcome": "passed"},
        {**verdict, "check": "a-rule", "severity": "page"},
    ]
    store.land([replace(FIRST, verdicts=[verdict, *others])], cursor=CURSOR)
    store.label(Label(run_id=RUN, check="", right=True))
    (run,) = store.runs(Query())
    assert sorted(run.failed) == ["a-rule", "repeats"]
    assert [(label.check, label.right) for label in run.labels] == [("", True)]

    store.land([replace(SECOND, verdicts=[{**verdict, "outcome": "passed"}])], cursor=CURSOR)
    assert [list(run.failed) for run in store.runs(Query())] == [[]]


def test_traces_fits_80_columns_and_names_what_failed(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The checks, as many as fit, what a person said of them, and the state of a run without a verdict."""
    verdict = FIRST.verdicts[0]
    many = [{**verdict, "check": f"a-rule-with-a-long-name-{n}"} for n in range(4)]
    store.land([FIRST], cursor=CURSOR)
    store.land([replace(FIRST, run_id="cd" * 16, agent="a" * 60, verdicts=many, judged_ns=3)], cursor=CURSOR)
    lost = replace(FIRST, run_id="ef" * 16, state=RunState.UNSCORED, flagged=False, verdicts=[], judged_ns=4)
    store.land([replace(lost, because="the scorer died of it")], cursor=CURSOR)
    store.label(Label(run_id=RUN, check="repeats", right=False, note="polls"))

    assert main(["traces", "--home", str(tmp_path)]) == 0
    _, one, several, unscored = capsys.readouterr().out.splitlines()
    assert one.endswith("repeats [repeats wrong]")
    assert several.endswith(" a-rule-with-a-long-name-0 +3")
    assert "(unscored: the scorer died" in unscored
    assert max(map(len, (one, several, unscored))) <= 80


def test_traces_says_right_or_wrong_where_the_name_of_the_check_has_no_room(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A label is a word and a check; the word is what a reader of the table looks for."""
    verdict = {**FIRST.verdicts[0], "check": "verify-before-cancel"}
    store.land([replace(FIRST, verdicts=[verdict])], cursor=CURSOR)
    store.label(Label(run_id=RUN, check="verify-before-cancel", right=False))

    assert main(["traces", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(" verify-before-cancel [wrong]")


def test_where_nothing_is_judged_yet_traces_tells_of_what_is_open(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Right after the first spans: the table is empty, and that is no loss."""
    assert store.runs(Query()) == []
    assert main(["traces", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    journal = Journal(tmp_path / "journal")
    journal.append(Record(signal="traces", tenant="default", arrival_ns=1, body=body(a_span()))).result(30)
    journal.close()

    assert main(["traces", "--home", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert err.startswith("redfirst: 1 run open: judged once nothing more came")
    assert main(["traces", "--home", str(tmp_path), "--flagged"]) == 0
    assert capsys.readouterr().err == ""


def test_a_reader_beside_the_writer_sees_what_is_stored(store: Store, tmp_path: Path):
    """Read-only, while the service writes."""
    reader = SqliteReader(tmp_path / "store.sqlite3")
    store.land([FIRST], cursor=CURSOR)

    assert [run.run_id for run in reader.runs(Query(flagged=True, prefix="abab", records=True))] == [RUN]
    assert reader.runs(Query(flagged=False)) == []
    assert reader.cursor("assembly") == CURSOR
    reader.close()


def test_segments_of_flagged_runs_are_pinned_by_their_latest_version(store: Store):
    """A flag that was withdrawn pins nothing."""
    store.land([FIRST], cursor=CURSOR)
    assert store.pinned_segments() == {1}
    store.land([SECOND], cursor=CURSOR)
    assert store.pinned_segments() == frozenset()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path):
    """One sentence, and the file is left alone."""
    path = tmp_path / "store.sqlite3"
    path.write_bytes(b"something else" * 100)

    with pytest.raises(StoreRefused, match="cannot be opened"):
        SqliteStore(path)
    assert path.read_bytes() == b"something else" * 100


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    """A store that the first version of the store wrote."""
    packed = Path(__file__).parent.parent / "fixtures" / "stores" / "version-1.sqlite3.gz"
    path = tmp_path / "old" / "store.sqlite3"
    path.parent.mkdir()
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path


def test_a_store_of_the_first_version_is_brought_up(version_1: Path):
    """Every row is there, under the same names; what is new is filled from what was known, and found by its words."""
    a, b, c, d = (f"{first}" * 16 for first in ("a1", "b2", "c3", "d4"))
    with pytest.raises(StoreRefused, match="start redfirst serve once"):
        SqliteReader(version_1)
    store = SqliteStore(version_1)

    assert [(run.run_id, run.version, run.state.value, run.flagged) for run in store.runs(Query())] == [
        (c, 1, "unscored", False),
        (b, 1, "scored", True),
        (a, 2, "scored", False),
    ]
    assert [run.flagged for run in store.versions(a)] == [True, False]
    assert [(run.run_id, list(run.failed)) for run in store.runs(Query(flagged=True))] == [
        (b, ["termination"])
    ]
    assert store.positions(a) == [Position(1, 8), Position(1, 900), Position(1, 1800)]
    assert [run.run_id for run in store.runs(Query(text="blue lamp"))] == [b]
    assert [run.run_id for run in store.runs(Query(text="monday"))] == [a]
    assert [run.run_id for run in store.runs(Query(session="s-2"))] == [b]
    assert [label.note for label in store.labels_of(b)] == ["seen by ops"]
    known, gone = store.known(a), store.known(d)
    assert known is not None
    assert (known.late, known.ending, known.version) == (1, "completed", 2)
    assert gone is not None
    assert gone.state is RunState.DELETED
    assert [row.version for row in store.outbox_due("alerts", 2**62, 9)] == [1, 2]
    assert store.cursors() == {"assembly": Position(2, 8), "forward:phoenix": Position(1, 2600)}
    assert store.land([replace(SECOND, run_id=a, span_set_hash="h9")], cursor=CURSOR)[0].version == 3
    store.close()
    SqliteStore(version_1).close()


def test_a_migration_that_breaks_off_leaves_the_store_as_it_was(
    version_1: Path, monkeypatch: pytest.MonkeyPatch
):
    """All of it or nothing: the version before can go on with the file."""
    broken = sqlite_schema.MIGRATIONS[1] + "INSERT INTO no_such_table VALUES (1);"
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (sqlite_schema.MIGRATIONS[0], broken))
    with pytest.raises(StoreRefused, match="cannot be brought up to date: no such table"):
        SqliteStore(version_1)

    database = sqlite3.connect(version_1)
    assert database.execute("PRAGMA user_version").fetchone() == (1,)
    assert database.execute("SELECT count(*) FROM runs").fetchone() == (4,)
    assert database.execute("PRAGMA table_info(runs)").fetchall()[0][1] == "run_id"
    database.close()


def test_a_store_of_a_later_version_is_refused_and_left_alone(store: Store, tmp_path: Path):
    """A downgrade: one sentence with both versions and the way out; nothing is written."""
    database = sqlite3.connect(tmp_path / "store.sqlite3")
    database.execute("PRAGMA user_version = 99")
    database.close()
    for opened in (SqliteStore, SqliteReader):
        with pytest.raises(
            StoreRefused,
            match=rf"newer redfirst \(store version 99; this one knows {len(sqlite_schema.MIGRATIONS)}\): upgrade",
        ):
            opened(tmp_path / "store.sqlite3")


def test_a_damaged_store_names_the_way_out(store: Store, tmp_path: Path):
    """Fault 8: moved away, the journal makes it anew."""
    store.land([FIRST], cursor=CURSOR)
    store.close()
    path = tmp_path / "store.sqlite3"
    path.write_bytes(b"not a database, " * 4096)
    with pytest.raises(StoreRefused, match=r"damaged: move store.sqlite3\* away"):
        SqliteStore(path)


def test_what_one_transaction_holds_another_waits_for_and_then_says(store: Store, tmp_path: Path):
    """Fault 8, locked by another program: an error that is repeated by the caller, and no half transaction."""
    other = sqlite3.connect(tmp_path / "store.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store._database.execute("PRAGMA busy_timeout = 50")  # type: ignore[attr-defined]
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        store.land([FIRST], cursor=CURSOR)
    other.execute("ROLLBACK")
    other.close()

    assert store.runs(Query()) == []
    assert store.land([FIRST], cursor=CURSOR)[0].version == 1


def test_other_checks_make_another_version_of_the_same_spans(store: Store):
    """The key is the run, the checks and the spans; what is noted to be judged again is noted until it is."""
    store.land([replace(FIRST, revision="r1")], cursor=CURSOR)
    assert again(store, since_ns=0, revision="r1") == (0, 0)
    assert again(store, since_ns=3, revision="r2") == (0, 0)
    assert again(store, since_ns=0, revision="r2") == (1, 0)
    assert store.to_judge_again(10) == [RUN]

    landed = store.land([replace(FIRST, revision="r2", flagged=False)], cursor=None)
    assert [(one.version, one.was_flagged) for one in landed] == [(2, True)]
    assert store.cursor("assembly") == CURSOR
    assert store.to_judge_again(10) == []
    assert not store.land([replace(FIRST, revision="r2")], cursor=None)[0].new


def again(store: Store, *, segments: Sequence[int] = (1, 2), **about: Any) -> tuple[int, int]:
    found = store.judge_again(segments=segments, **about)
    return found.noted, found.spans_gone


def test_what_lost_a_record_is_not_judged_again_and_is_counted(store: Store):
    """A run with one of its two segments gone, and one of several traces of which one trace has lost a record."""
    lost = replace(FIRST, run_id="cd" * 16, positions=[Position(1, 8), Position(7, 8)])
    parts = [
        replace(
            FIRST,
            run_id=name * 16,
            state=RunState.PART,
            part_of="99" * 16,
            positions=[Position(segment, 8)],
            meetings=["m"],
            record=None,
        )
        for name, segment in (("01", 1), ("02", 7))
    ]
    whole = replace(FIRST, run_id="99" * 16, positions=(), cut="joined")
    store.land([FIRST, lost, whole, *parts], cursor=CURSOR)
    assert store.outdated(since_ns=0, revision="r2") == 3
    assert again(store, since_ns=0, revision="r2") == (1, 2)
    assert store.to_judge_again(9) == [RUN]
    assert again(store, segments=(1, 2, 7), since_ns=0, revision="r2") == (3, 0)
    assert list(store.joins()) == ["m"]


def test_a_run_expires_and_its_late_spans_do_not_bring_it_back(store: Store):
    """Retention of verdicts: a tombstone says what there was."""
    store.land([FIRST, replace(FIRST, run_id="cd" * 16, judged_ns=50)], cursor=CURSOR)
    assert store.expire(40, at_ns=60, limit=10) == 1

    assert [run.run_id for run in store.runs(Query())] == ["cd" * 16]
    known = store.known(RUN)
    assert known is not None
    assert known.state is RunState.EXPIRED
    assert not store.land([SECOND], cursor=CURSOR)[0].new


def test_all_that_is_too_old_expires_in_one_round_unless_its_time_is_over(store: Store):
    """Else a store that takes more runs than one transaction lets go of would grow without end."""
    store.land([replace(FIRST, run_id=f"{n:032x}", judged_ns=n) for n in range(9)], cursor=CURSOR)
    pauses: list[float] = []

    def round_of(*times: float) -> int:
        clock = iter(times)
        return expire(
            store, 8, at_ns=60, seconds=2, at_once=2, clock=lambda: next(clock), pause=pauses.append
        )

    assert (round_of(0, 1, 2), len(pauses)) == (4, 1)
    assert round_of(0, 0, 0) == 4
    assert [run.run_id for run in store.runs(Query())] == [f"{8:032x}"]


def part(trace: str, meetings: list[str], *, of: str | None = None, at: int = 1) -> Landing:
    return replace(
        FIRST, run_id=trace * 16, state=RunState.PART, part_of=of, meetings=meetings, record=None, verdicts=(),
        flagged=False, arrived_ns=at, positions=[Position(1, at * 8)],
    )  # fmt: skip


def test_traces_meet_directly_and_over_others(store: Store):
    """``a`` and ``b`` share one meeting, ``b`` and ``c`` another; ``d`` is of none of them."""
    store.land(
        [
            part("0a", ["x"], at=1),
            part("0b", ["x", "y"], at=2),
            part("0c", ["y"], at=3),
            part("0d", ["z"], at=4),
        ],
        cursor=CURSOR,
    )

    assert store.meeting(["x"], 10) == (["0c" * 16, "0b" * 16, "0a" * 16], ["x", "y"])
    assert store.meeting(["z"], 10) == (["0d" * 16], ["z"])
    assert store.meeting(["x"], 2)[0] == ["0c" * 16, "0b" * 16]
    store.land([replace(part("0b", ["x"], at=2), span_set_hash="h2")], cursor=CURSOR)
    assert store.meeting(["y"], 10) == (["0c" * 16], ["y"])


def test_what_is_to_be_judged_together_waits_until_it_was(store: Store):
    """The first time that was asked for stays; a landing ends it in its transaction."""
    store.join_later(["x", "y"], 100)
    store.join_later(["x"], 900)
    assert store.joins() == {"x": 100, "y": 100}
    with pytest.raises(KeyError):
        store.land([replace(FIRST, verdicts=[{}])], cursor=CURSOR, joined=["x"])
    assert store.joins() == {"x": 100, "y": 100}
    store.land([FIRST], cursor=CURSOR, joined=["x"])
    assert store.joins() == {"y": 100}


def test_a_run_of_several_traces_is_found_by_them_and_erased_with_them(store: Store):
    """Its own row has the verdict; its traces have the records of the journal, pin them, and go with it."""
    whole = replace(FIRST, positions=(), cut="joined")
    store.land([whole, part("0a", ["x"], of=RUN, at=1), part("0b", ["x"], of=RUN, at=2)], cursor=CURSOR)
    assert store.traces_of(RUN) == ["0a" * 16, "0b" * 16]
    assert store.pinned_segments() == {1}
    assert [run.run_id for run in store.runs(Query())] == [RUN]
    again = store.land([part("0a", ["x"], of=RUN, at=1)], cursor=CURSOR)[0]
    assert (again.version, again.new) == (1, False)

    assert store.delete(RUN, at_ns=5)
    for name in (RUN, "0a" * 16, "0b" * 16):
        known = store.known(name)
        assert known is not None
        assert known.state is RunState.DELETED
    assert store.meeting(["x"], 10)[0] == []


def test_runs_without_a_root_are_remembered_until_a_later_version(store: Store):
    """When they are to be told abandoned, also after a start."""
    store.land([replace(FIRST, due_ns=77, ending="unknown")], cursor=CURSOR)
    assert store.rootless() == [(RUN, 77)]
    assert [(run.run_id, run.late, run.cut) for run in store.recent(5)] == [(RUN, 0, "root_ended")]
    store.land([replace(SECOND, late=1, ending="parked")], cursor=CURSOR)
    assert store.rootless() == []
    assert [(run.late, run.ending) for run in store.recent(5)] == [(1, "parked")]


def test_what_a_destination_was_told_outlives_the_run_and_is_asked_back_when_it_is_erased(store: Store):
    """Who was told something gets a row in the transaction of the erasure, and nobody else does."""
    store.land([FIRST], cursor=CURSOR, outbox=["sink:a", "sink:b"])
    store.outbox_done([row.seq for name in ("sink:a", "sink:b") for row in store.outbox_due(name, 1, 9)])
    store.tell("sink:a", RUN, {"names": ["x"]})
    assert store.told("sink:b", RUN) is None

    store.delete(RUN, at_ns=7)
    (row,) = store.outbox_due("sink:a", 8, 9)
    assert (row.run_id, row.version, row.body["state"]) == (RUN, 1, "deleted")
    assert store.outbox_due("sink:b", 8, 9) == []
    assert store.told("sink:a", RUN) == {"names": ["x"]}

    store.tell("sink:a", RUN, None)
    assert store.told("sink:a", RUN) is None


OPEN = replace(
    FIRST, run_id="cd" * 16, user="u-7", session="s-1", tenant="north", arrived_ns=50, judged_ns=90
)


@pytest.mark.parametrize(
    ("owner", "goes"),
    [
        (Owner(what="user", name="u-7"), True),
        (Owner(what="session", name="s-1"), True),
        (Owner(what="user", name="u-7", tenant="north"), True),
        (Owner(what="user", name="u-7", tenant="south"), False),
        (Owner(what="user", name="s-1"), False),
        (Owner(what="session", name="u-7"), False),
    ],
)
def test_a_run_that_was_open_when_its_user_was_erased_goes_when_it_lands(
    store: Store, owner: Owner, goes: bool
):
    """Nothing is kept of it but a tombstone, and no destination is told; another tenant's, user's or session's stays."""
    assert store.erase_all(owner, at_ns=50) == []
    (landed,) = store.land([OPEN], cursor=CURSOR, outbox=["alerts"])
    assert (landed.new, landed.erased) == (not goes, goes)
    known = store.known(OPEN.run_id)
    assert known is not None
    assert known.state is (RunState.DELETED if goes else RunState.SCORED)
    assert len(store.outbox_due("alerts", 2**62, 9)) == (0 if goes else 1)
    assert len(store.positions(OPEN.run_id)) == (0 if goes else 2)


def test_what_a_user_does_after_the_erasure_is_kept(store: Store):
    """A run whose first record came later lands like any other; and one that names its user late is erased then, with
    what was told of it asked back."""
    store.land([replace(OPEN, user=None, session=None)], cursor=CURSOR, outbox=["sink:a"])
    store.tell("sink:a", OPEN.run_id, {"names": ["x"]})
    store.erase_all(Owner(what="user", name="u-7"), at_ns=50)
    later = replace(OPEN, run_id="ef" * 16, arrived_ns=51)
    late = replace(OPEN, span_set_hash="h2", spans=4)
    assert [one.erased for one in store.land([later, late], cursor=CURSOR)] == [False, True]
    assert [run.run_id for run in store.runs(Query())] == [later.run_id]
    assert [row.body["state"] for row in store.outbox_due("sink:a", 2**62, 9)] == ["deleted"]


def test_all_runs_of_a_user_are_erased_and_no_name_is_kept(store: Store, tmp_path: Path):
    """Of several hundred too; what stands for the user goes as old verdicts do."""
    runs = [replace(OPEN, run_id=f"{number:032x}") for number in range(1100)]
    store.land([*runs, FIRST], cursor=CURSOR)
    assert sorted(store.erase_all(Owner(what="user", name="u-7"), at_ns=60)) == [run.run_id for run in runs]
    assert [run.run_id for run in store.runs(Query())] == [RUN]
    with sqlite3.connect(tmp_path / "store.sqlite3") as database:
        kept = database.execute("SELECT * FROM erasures").fetchall()
        assert len(kept) == 1
        assert "u-7" not in repr(kept)
        store.expire(61, at_ns=62, limit=10)
        assert database.execute("SELECT count(*) FROM erasures").fetchone() == (0,)
    database.close()


def test_late_parts_of_an_erased_run_go_with_it(store: Store):
    """A trace that turns out to belong to an erased run of several leaves a tombstone, as the others did."""
    whole = replace(OPEN, positions=(), cut="joined", run_id="99" * 16)
    part = replace(OPEN, state=RunState.PART, part_of=whole.run_id, user=None, session=None, record=None)
    store.land([part], cursor=CURSOR)
    store.erase_all(Owner(what="user", name="u-7"), at_ns=60)
    landed = store.land([whole, replace(part, span_set_hash="h2")], cursor=CURSOR)
    assert [one.erased for one in landed] == [True, True]
    assert store.positions(part.run_id) == []
    known = store.known(part.run_id)
    assert known is not None
    assert known.state is RunState.DELETED


def test_a_run_that_expires_stays_where_it_was_told_and_is_still_told_where_it_was_not(store: Store):
    """Only an erasure is asked back; a destination that is behind gets its row all the same."""
    store.land([FIRST], cursor=CURSOR, outbox=["sink:a", "sink:b"])
    store.outbox_done([row.seq for row in store.outbox_due("sink:a", 2**62, 9)])
    store.tell("sink:a", RUN, {"names": ["x"]})
    assert store.expire(10, at_ns=11, limit=9) == 1
    assert store.outbox_due("sink:a", 2**62, 9) == []
    assert [row.body["state"] for row in store.outbox_due("sink:b", 2**62, 9)] == ["scored"]
    assert store.told("sink:a", RUN) is None


def test_what_waits_for_a_destination_that_is_gone_goes(store: Store):
    """By destination: the rows, and what it was told of erased runs; of runs that are there it is kept."""
    store.land([FIRST, OPEN], cursor=CURSOR, outbox=["alerts", "sink:here", "sink:gone"])
    for name in ("sink:here", "sink:gone"):
        for run_id in (RUN, OPEN.run_id):
            store.tell(name, run_id, {"names": ["x"]})
    store.delete(OPEN.run_id, at_ns=7)
    assert store.forget_destinations(["alerts", "sink:here"]) == {"sink:gone": Unsent(rows=2, erased=1)}
    assert store.forget_destinations(["alerts", "sink:here"]) == {}
    assert store.outbox_due("sink:gone", 2**62, 9) == []
    assert [row.run_id for row in store.outbox_due("sink:here", 2**62, 9)] == [RUN, OPEN.run_id]
    assert [row.run_id for row in store.outbox_due("alerts", 2**62, 9)] == [RUN]
    told = {
        (name, run_id): store.told(name, run_id)
        for name in ("sink:here", "sink:gone")
        for run_id in (RUN, OPEN.run_id)
    }
    assert [key for key, value in told.items() if value is None] == [("sink:gone", OPEN.run_id)]

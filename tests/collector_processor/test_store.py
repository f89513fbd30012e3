"""Runs, versions, outbox and tombstones, in whatever store."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from redfirst.collector_processor.cli import main
from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Label, Landing, Query, RunState, Store, StoreRefused

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


@pytest.fixture
def store(tmp_path: Path):
    made = SqliteStore(tmp_path / "store.sqlite3")
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

"""Between the outbox and a backend nothing is lost, nothing is told late, and no run waits for another."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.journal.format import Position, Record
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.request import check
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.sinks.backends import Backend
from redfirst.collector_processor.sinks.braintrust import BraintrustSink
from redfirst.collector_processor.sinks.delivery import Teller
from redfirst.collector_processor.sinks.mlflow import MlflowSink
from redfirst.collector_processor.sinks.sink import NotTaken, Send, Sink
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.span import Span
from tests.collector_processor.sinking import CLEAN, FLAGGED, ROOT, MemoryBackend

OTHER = "12" * 16


class Bench:
    """A store, a journal and the worker of one backend, whose rounds are made by hand."""

    def __init__(self, folder: Path, send: Send, sink: Sink = MlflowSink()) -> None:  # noqa: B008 - frozen
        self.store = SqliteStore(folder / "store.sqlite3")
        self.journal = Journal(folder / "journal")
        self.metrics = Metrics()
        self.source = SpanSource(folder / "journal")
        self.said: list[str] = []
        self.backend = Backend(name="there", kind="mlflow", sink=sink, url="http://localhost", hold=1000.0)
        self.teller = Teller(
            self.backend,
            self.store,
            self.store,
            lambda: self.source,
            self.metrics,
            say=self.said.append,
            send=send,
        )
        self.now = time.time()

    def judged(
        self,
        trace_id: str,
        *verdicts: Any,
        parent: str | None = None,
        span_id: str = ROOT,
        tenant: str = "default",
    ) -> None:
        """Store a version of a run, with one more span."""
        span = Span(
            trace_id=trace_id, span_id=span_id, parent_id=parent, name="support", start_ns=1, end_ns=5
        )
        body = encode_traces([span])
        record = Record(signal="traces", tenant=tenant, arrival_ns=1, body=body)
        position: Position = self.journal.append(record, check(body, "traces").heads).result(10)
        failed = [one for one in verdicts if one["outcome"] == "failed"]
        landing = Landing(
            run_id=trace_id,
            tenant=tenant,
            state=RunState.SCORED,
            spans=1,
            span_set_hash=f"h{position}",
            positions=[position],
            cut="root_ended",
            arrived_ns=1,
            judged_ns=int(self.now * 1e9),
            record=json.dumps({"trace_ids": [trace_id], "session_id": None, "verdicts": verdicts}),
            flagged=bool(failed),
            verdicts=[
                {**one, "class": "trajectory", "numerator": None, "denominator": None} for one in verdicts
            ],
        )
        self.store.land([landing], cursor=position, outbox=[self.backend.destination])

    def round(self, *, later: float = 0.0) -> None:
        """One round, so many seconds later."""
        self.now += later
        self.teller.round(self.source, self.now)

    def waiting(self) -> list[tuple[str, int]]:
        """Runs and versions in the outbox, due or not."""
        rows = self.store.outbox_due(self.backend.destination, 2**62, 100)
        return [(row.run_id, row.version) for row in rows]

    def close(self) -> None:
        self.journal.close()
        self.source.close()
        self.store.close()


class Faulty:
    """A backend that gives these problems first, one a request; a problem of None lets one request through."""

    def __init__(self, *problems: NotTaken | None, behind: MemoryBackend | None = None) -> None:
        self.problems = list(problems)
        self.behind = behind or MemoryBackend("mlflow")
        self.asked: list[str] = []

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        self.asked.append(f"{method} {path}")
        problem = self.problems.pop(0) if self.problems else None
        if problem is not None:
            raise problem
        return self.behind(method, path, body)

    def labels(self) -> dict[str, str]:
        return {row[1]: row[2] for row in self.behind.held().values()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path, Faulty())
    yield made
    made.close()


def sent(bench: Bench) -> Faulty:
    send = bench.teller._send
    assert isinstance(send, Faulty)
    return send


def test_a_run_is_told_and_ticked_off(bench: Bench) -> None:
    """One row, one run told."""
    bench.judged(OTHER, *FLAGGED)
    bench.round()

    assert sent(bench).labels() == {
        "redfirst": "flagged",
        "redfirst.repeats": "failed",
        "redfirst.termination": "passed",
        "redfirst.recall": "inconclusive",
    }
    assert bench.waiting() == []


def test_a_version_that_was_superseded_is_not_sent(bench: Bench) -> None:
    """Two versions wait; the backend is told of the second alone."""
    bench.judged(OTHER, *FLAGGED)
    bench.judged(OTHER, *CLEAN)
    bench.round()

    assert sent(bench).labels() == {
        "redfirst": "clean",
        "redfirst.repeats": "passed",
        "redfirst.termination": "passed",
    }
    assert not [path for path in sent(bench).asked if path.startswith(("PATCH", "DELETE"))]


def test_a_backend_of_one_tenant_hears_nothing_of_anothers(tmp_path: Path) -> None:
    """The row is done, and counted as what it was."""
    made = Bench(tmp_path, Faulty())
    made.teller.backend = replace(made.backend, tenants=("support",))
    made.judged(OTHER, *FLAGGED)
    made.judged("34" * 16, *FLAGGED, tenant="support")
    made.round()

    assert sent(made).asked
    assert all("34" * 16 in asked for asked in sent(made).asked)
    assert made.waiting() == []
    told = {"sink": "there", "reason": "ok"}
    assert made.metrics.value("redfirst_sink_runs_total", outcome="other_tenant", **told) == 1
    assert made.metrics.value("redfirst_sink_runs_total", outcome="delivered", **told) == 1
    made.close()


def test_an_erased_run_is_withdrawn_and_then_forgotten(bench: Bench) -> None:
    """What was told is deleted there, and nothing of the run is kept here."""
    bench.judged(OTHER, *FLAGGED)
    bench.round()
    assert bench.store.delete(OTHER, at_ns=1)
    assert bench.waiting() == [(OTHER, 1)]
    bench.round()

    assert sent(bench).labels() == {}
    assert bench.waiting() == []
    assert bench.store.told(bench.backend.destination, OTHER) is None


def test_a_run_that_was_never_told_needs_no_withdrawing(bench: Bench) -> None:
    """Erased before its turn: the row goes with the run, and nothing is asked."""
    bench.judged(OTHER, *FLAGGED)
    bench.store.delete(OTHER, at_ns=1)
    bench.round()

    assert bench.waiting() == []
    assert sent(bench).asked == []


def test_a_run_that_expired_before_its_turn_is_told_to_nobody(bench: Bench) -> None:
    """Its row is done, counted as gone: there is nothing to say any more, and nothing to take back."""
    bench.judged(OTHER, *FLAGGED)
    bench.store.expire(2**62, at_ns=1, limit=9)
    bench.round()

    assert (bench.waiting(), sent(bench).asked) == ([], [])
    labels = {"sink": "there", "outcome": "gone", "reason": "ok"}
    assert bench.metrics.value("redfirst_sink_runs_total", **labels) == 1


def test_what_may_have_been_sent_when_the_process_died_is_withdrawn_too(bench: Bench) -> None:
    """The answer to the last request never came: an erasure still deletes what the backend took."""
    sent(bench).problems = [None, None, None, NotTaken("timeout", again=True, whole=True)]
    bench.judged(OTHER, *FLAGGED)
    bench.round()
    assert len(sent(bench).labels()) == 2
    bench.store.delete(OTHER, at_ns=1)
    bench.round(later=60)

    assert sent(bench).labels() == {}


def test_a_trace_that_is_not_there_yet_holds_up_no_other(bench: Bench) -> None:
    """The first run's trace comes later; the second run is told in the same round."""
    sent(bench).problems = [NotTaken("not_there", again=True)]
    bench.judged("ab" * 16, *CLEAN)
    bench.judged(OTHER, *CLEAN)
    bench.round()
    assert bench.waiting() == [("ab" * 16, 1)]
    assert len(sent(bench).labels()) == 3

    bench.round(later=60)
    assert bench.waiting() == []


def test_a_fault_of_our_own_holds_up_no_other_and_is_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run whose spans cannot be read for now is tried again later; the one behind it is told in the same round."""
    read = bench.source.slices

    def unreadable(trace_id: bytes, places: Any) -> Any:
        if trace_id.hex() == "ab" * 16:
            raise OSError("the disk says no")
        return read(trace_id, places)

    monkeypatch.setattr(bench.source, "slices", unreadable)
    bench.judged("ab" * 16, *CLEAN)
    bench.judged(OTHER, *CLEAN)
    bench.round()
    labels = {"sink": "there", "outcome": "again", "reason": "our_fault"}

    assert bench.waiting() == [("ab" * 16, 1)]
    assert len(sent(bench).labels()) == 3
    assert bench.metrics.value("redfirst_sink_runs_total", **labels) == 1
    monkeypatch.undo()
    bench.round(later=60)
    assert bench.waiting() == []


def test_a_backend_that_cannot_be_had_is_not_asked_for_every_run(bench: Bench) -> None:
    """One request, then a pause as long as it asked for; it is said once, and once when it is over."""
    sent(bench).problems = [NotTaken("status_429", again=True, whole=True, after=20.0)] * 2
    for number in range(5):
        bench.judged(f"{number:032x}", *CLEAN)
    bench.round()
    bench.round(later=19)
    assert len(sent(bench).asked) == 1
    bench.round(later=2)
    assert len(sent(bench).asked) == 2
    bench.round(later=60)

    assert bench.waiting() == []
    assert bench.said == [
        "sink there: not delivered (status_429); trying again",
        "sink there: takes scores again",
    ]


def test_a_run_that_is_refused_is_given_up_with_its_reason_and_counted(bench: Bench) -> None:
    """A 422 is not asked again; the next run is told."""
    sent(bench).problems = [None, NotTaken("status_422", again=False, said="no such field")]
    bench.judged("ab" * 16, *CLEAN)
    bench.judged(OTHER, *CLEAN)
    bench.round()

    assert bench.waiting() == []
    count = bench.metrics.value(
        "redfirst_sink_runs_total", sink="there", outcome="given_up", reason="status_422"
    )
    assert count == 1
    assert bench.said == [f"sink there: run {'ab' * 16} is not told: status_422: no such field"]


def test_what_was_tried_for_too_long_is_given_up(bench: Bench) -> None:
    """A trace that never came is not asked for without end."""
    sent(bench).problems = [NotTaken("not_there", again=True)] * 9
    bench.judged(OTHER, *CLEAN)
    bench.round()
    assert bench.waiting() == [(OTHER, 1)]
    bench.round(later=1001)

    assert bench.waiting() == []


def test_a_run_that_can_no_longer_be_judged_is_withdrawn(bench: Bench) -> None:
    """A later version without a verdict leaves no older one standing: missing evidence is no pass."""
    bench.judged(OTHER, *CLEAN)
    bench.round()
    unscored = Landing(
        run_id=OTHER,
        state=RunState.UNSCORED,
        spans=2,
        span_set_hash="other",
        positions=[],
        cut="came_late",
        arrived_ns=1,
        judged_ns=2,
    )
    bench.store.land([unscored], cursor=Position(1, 1), outbox=[bench.backend.destination])
    bench.round()

    assert sent(bench).labels() == {}


def test_scores_follow_a_root_that_came_late(tmp_path: Path) -> None:
    """Told on the topmost span there was; when the root is there, the scores are on the root and on nothing else."""
    rows = MemoryBackend("braintrust")
    bench = Bench(tmp_path, Faulty(behind=rows), BraintrustSink(project="p"))
    bench.judged(OTHER, *FLAGGED, parent="99" * 8)
    bench.round()
    assert {row for row, _ in rows.held()} == {ROOT}

    bench.judged(OTHER, *FLAGGED, span_id="99" * 8)
    bench.round()
    assert {row for row, _ in rows.held()} == {"99" * 8}
    bench.close()

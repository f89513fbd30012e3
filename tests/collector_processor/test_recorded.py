"""Recorded runs, out of a store: the one that is named, and those of the same task."""

from __future__ import annotations

from pathlib import Path

import pytest

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.format import Position, Record
from redfirst.collector_processor.journal.reading import RecordLost
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.recorded.in_store import RunsInStore
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.store import Landing, RunState, request_hash
from redfirst.evaluators import Span
from redfirst.evaluators.check import default_checks
from redfirst.evaluators.errors import ConfigurationError
from redfirst.evaluators.otlp_encode import encode_traces

LOST = Position(99, 8)


def a_span(trace: str, request: str) -> Span:
    return Span(
        trace_id=trace * 16,
        span_id="01" * 8,
        name="a",
        start_ns=1,
        end_ns=2,
        attributes={"openinference.span.kind": "AGENT", "agent.name": "support", "input.value": request},
    )


def a_home(folder: Path, **requests: str) -> Home:
    """A home with one unflagged run a name; the spans of the one named ``ee`` are gone."""
    home = Home(folder)
    journal = Journal(home.journal)
    store = SqliteStore(home.store)
    for number, (trace, request) in enumerate(requests.items()):
        body = encode_traces([a_span(trace, request)])
        record = Record(signal="traces", tenant="default", arrival_ns=1, body=body)
        place = LOST if trace == "ee" else journal.append(record).result(10)
        landing = Landing(
            run_id=trace * 16,
            state=RunState.SCORED,
            spans=1,
            span_set_hash=trace,
            positions=[place],
            cut="root_ended",
            arrived_ns=1,
            judged_ns=number,
            agent="support",
            request_hash=request_hash(request),
        )
        store.land([landing], cursor=Position(1, 8))
    journal.close()
    store.close()
    return home


def test_runs_of_the_same_task_are_others_whose_spans_are_there(tmp_path: Path) -> None:
    """Neither the run itself, nor one of another request, nor one that retention took, which hides no other."""
    home = a_home(tmp_path, aa="cancel A-1", bb="cancel A-1", cc="cancel A-2", ee="cancel A-1")
    recorded = RunsInStore(home, default_checks())
    incident = recorded.named("AAAA")

    assert incident.run.run_id == "aa" * 16
    assert [other.run.run_id for other in recorded.same_task(incident)] == ["bb" * 16]
    assert recorded.named("bb").run.request == "cancel A-1", "asking for one changes nothing for the next"


def test_a_named_run_that_is_not_whole_is_refused(tmp_path: Path) -> None:
    """What is asked for by name is never left out in silence."""
    recorded = RunsInStore(a_home(tmp_path, ee="cancel A-1"), default_checks())

    with pytest.raises(RecordLost):
        recorded.named("ee")
    with pytest.raises(ConfigurationError, match="not in the store"):
        recorded.named("ff")

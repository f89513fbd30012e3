"""Faults 15 and 16: the same spans in any order, split over any requests, however often: one state, one verdict."""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redfirst.collector_processor.journal.format import Record, Signal
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.scoring.slices import Slice, cut, joined
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.scoring.worker import score
from redfirst.evaluators.check import default_checks

FIXTURES = Path(__file__).parents[1] / "fixtures" / "otlp"
Item = tuple[bytes, Signal, Slice]


def captures() -> dict[str, list[tuple[Signal, bytes]]]:
    """The bodies of each recorded run, in the order of arrival."""
    found: dict[str, list[tuple[Signal, bytes]]] = defaultdict(list)
    for path in sorted(FIXTURES.glob("*.otlp.pb")):
        name, _, rest = path.name.partition(".")
        found[name].append(("logs" if ".logs." in f".{rest}" else "traces", path.read_bytes()))
    return dict(found)


CAPTURES = captures()


@functools.cache
def items_of(name: str) -> tuple[Item, ...]:
    """Every span and log record of a capture, each once."""
    return tuple(
        dict.fromkeys(
            (trace_id, signal, piece)
            for signal, body in CAPTURES[name]
            for trace_id, pieces in cut(body, signal).items()
            for piece in pieces
        )
    )


def answers(folder: Path, requests: list[list[Item]]) -> dict[str, dict[str, Any]]:
    """What the scorer answers to each trace when its spans came in these requests."""
    journal = Journal(folder)
    places = defaultdict(set)
    waiting = []
    for request in requests:
        for signal in ("traces", "logs"):
            chosen = [item for item in request if item[1] == signal]
            if chosen:
                body = joined(piece for _, _, piece in chosen)
                record = Record(signal=signal, tenant="default", arrival_ns=1, body=body)
                waiting.append(({trace_id for trace_id, _, _ in chosen}, journal.append(record)))
    for traces, done in waiting:
        for trace_id in traces:
            places[trace_id].add(done.result(30))
    journal.close()
    source = SpanSource(folder)
    checks = default_checks()
    found = {
        trace_id.hex(): score(
            source, checks, {"id": 1, "run_id": trace_id.hex(), "positions": sorted(positions)}
        )
        for trace_id, positions in places.items()
    }
    source.close()
    return found


@pytest.mark.parametrize("name", CAPTURES)
@settings(max_examples=6)
@given(data=st.data())
def test_any_order_splitting_and_repetition_is_one_state(name, tmp_path_factory, data):
    """Law, over recorded runs: span set hash, verdicts and record depend on the spans alone."""
    items = items_of(name)
    expected = answers(tmp_path_factory.mktemp("once"), [list(items)])
    assert expected
    assert {answer["state"] for answer in expected.values()} <= {"scored", "not_a_run"}

    shuffled = data.draw(st.permutations(items))
    repeated = [*shuffled, *data.draw(st.lists(st.sampled_from(items), max_size=10))]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(repeated)), max_size=6)))
    bounds = [0, *cuts, len(repeated)]
    requests = [repeated[start:end] for start, end in itertools.pairwise(bounds)]
    times = data.draw(st.integers(1, 3))

    assert answers(tmp_path_factory.mktemp("shuffled"), requests * times) == expected

"""Faults 23 to 26: traces of any shape and content are kept, end in a finite time, and harm no other.

Sizes are smaller than the plan's unless ``REDFIRST_FAULTS=full`` (``make faults``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from redfirst.collector_processor.scoring.span_source import MOST_SPANS
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState, StoredRun
from tests.service.conftest import Served, eventually, new_id

from .conftest import journalled
from .hostile import JSON, PROTOBUF, Ledger, nested, one_run, part, spans_of, with_raw_field

FULL = os.environ.get("REDFIRST_FAULTS") == "full"
SPANS, BYTES, ATTRIBUTES, CHAIN = (
    (100_000, 60 << 20, 1_000_000, 10_000) if FULL else (4_000, 6 << 20, 40_000, 2_000)
)


@pytest.fixture(scope="module")
def ledger(tools, tmp_path_factory):
    home = tmp_path_factory.mktemp("payloads") / "home"
    made = Served(
        home,
        {
            "REDFIRST_GRPC_PORT": "0",
            "REDFIRST_HTTP_PORT": "0",
            "REDFIRST_PAGE_PORT": "0",
            "REDFIRST_SETTLE_SECONDS": "0.3",
            "REDFIRST_IDLE_SECONDS": "1.5",
        },
    ).start()
    yield Ledger(made)
    made.kill()


def landed(ledger: Ledger, *names: str) -> dict[str, StoredRun]:
    """These runs, once each is stored in whatever state."""

    def all_of_them() -> dict[str, StoredRun] | None:
        reader = SqliteReader(ledger.served.home / "store.sqlite3")
        found = {run.run_id: run for run in reader.runs(Query(states=tuple(RunState)))}
        reader.close()
        return found if set(names) <= set(found) else None

    return eventually(all_of_them, within=180)


def test_a_trace_of_very_many_spans_does_not_hold_up_another(ledger):
    """All its spans are kept, those that one run may have are judged, and so is a run that comes behind it."""
    name, request = one_run(spans=2)
    root, child = spans_of(request)
    scope = request.resource_spans[0].scope_spans[0]
    for first in range(0, SPANS, 10_000):
        del scope.spans[:]
        for number in range(first, min(first + 10_000, SPANS)):
            child.span_id = (number + 1).to_bytes(8, "big")
            scope.spans.append(child)
        assert ledger.post_spans(request) == 200
    del scope.spans[:]
    scope.spans.append(root)
    assert ledger.post_spans(request) == 200

    other = ledger.healthy()
    found = landed(ledger, name, other)
    assert found[other].state is RunState.SCORED
    assert found[name].spans == min(SPANS + 1, MOST_SPANS)


def test_a_span_of_very_many_bytes_or_attributes_is_kept(ledger):
    """One value of megabytes, and one span with more attributes than any limit allows."""
    large, request = one_run()
    request.resource_spans[0].scope_spans[0].spans[0].attributes.add(key="v").value.string_value = "x" * BYTES
    assert ledger.post_spans(request) == 200
    many, request = one_run()
    span = request.resource_spans[0].scope_spans[0].spans[1]
    for number in range(ATTRIBUTES):
        span.attributes.add(key=str(number)).value.int_value = number
    assert ledger.post_spans(request) == 200

    other = ledger.healthy()
    found = landed(ledger, large, many, other)
    assert found[other].state is RunState.SCORED
    assert (found[large].spans, found[many].spans) == (3, 3)


@pytest.mark.parametrize("depth", [40, 60, 20_000])
def test_values_nested_however_deep_cost_themselves_alone(ledger, depth):
    """200 over both encodings: the run around one is judged, its sender is told where a mark had to take its place."""
    name, request = one_run()
    status, _, said = ledger.served.post(
        "/v1/traces", with_raw_field(request.SerializeToString(), nested(depth)), **PROTOBUF
    )
    assert (status, b"nested too deeply" in said) == (200, depth > 40)
    deep = '{"arrayValue":{"values":[' * depth + '{"stringValue":"x"}' + "]}}" * depth
    pair = '{"key":"deep","value":' + deep + "}"
    trace_id = new_id(16).to_bytes(16, "big").hex()
    spans = ",".join(
        f'{{"traceId":"{trace_id}","spanId":"{one * 8}","name":"x","attributes":[{extra}]}}'
        for one, extra in (("5c", pair), ("5d", ""))
    )
    status, _, said = ledger.served.post(
        "/v1/traces", f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{spans}]}}]}}]}}'.encode(), **JSON
    )
    assert (status, b"nested too deeply" in said) == (200, depth > 40)

    other = ledger.healthy()
    found = landed(ledger, other, name, trace_id)
    assert found[other].state is found[name].state is RunState.SCORED
    assert (found[name].spans, found[trace_id].spans) == (3, 2)


def test_a_chain_of_very_many_levels_is_walked_to_its_end(ledger):
    """Each span the child of the one before."""
    name, request = one_run(spans=2)
    root, child = spans_of(request)
    scope = request.resource_spans[0].scope_spans[0]
    del scope.spans[1]
    above = root.span_id
    for number in range(CHAIN):
        child.parent_span_id, child.span_id = above, (number + 1).to_bytes(8, "big")
        above = child.span_id
        scope.spans.append(child)
    assert ledger.post_spans(request) == 200

    found = landed(ledger, name)
    assert (found[name].state, found[name].spans) == (RunState.SCORED, CHAIN + 1)


def test_cycles_self_parents_and_repeated_ids_end(ledger):
    """A span that is its own parent, two that are each other's, all in a cycle, ids twice, links to ancestors."""
    names = []

    def changed(change) -> None:
        name, request = one_run(spans=4)
        change(request.resource_spans[0].scope_spans[0].spans)
        names.append(name)
        assert ledger.post_spans(request) == 200

    def self_parent(spans) -> None:
        spans[1].parent_span_id = spans[1].span_id

    def each_others(spans) -> None:
        spans[1].parent_span_id, spans[2].parent_span_id = spans[2].span_id, spans[1].span_id

    def all_in_one(spans) -> None:
        for number, span in enumerate(spans):
            span.parent_span_id = spans[number - 1].span_id

    def ids_twice(spans) -> None:
        spans[2].span_id = spans[3].span_id

    def linked(spans) -> None:
        spans[1].links.add(trace_id=spans[0].trace_id, span_id=spans[0].span_id)
        spans[0].links.add(trace_id=spans[1].trace_id, span_id=spans[1].span_id)

    for change in (self_parent, each_others, all_in_one, ids_twice, linked):
        changed(change)

    found = landed(ledger, *names)
    assert {found[name].state for name in names} <= {RunState.SCORED, RunState.NOT_A_RUN}
    assert found[names[-1]].state is RunState.SCORED


HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>=cmd|' /C calc'!A0\x00\r\n| **x** |"


def test_names_and_texts_cannot_harm_who_reads_them(ledger):
    """Terminal escapes, markup, formulas, NUL and a name of a megabyte: kept, and harmless in JSON, table and report."""
    name, request = one_run()
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.name = HOSTILE
        for key in ("agent.name", "input.value", "output.value", "tool.name"):
            span.attributes.add(key=key).value.string_value = HOSTILE
    request.resource_spans[0].scope_spans[0].spans[1].name = "n" * (1 << 20)
    assert ledger.post_spans(request) == 200
    landed(ledger, name)

    listed = run("traces", "--json", "--all", home=ledger)
    assert name in {json.loads(line)["trace_id"] for line in listed.splitlines()}
    for text in (listed, run("traces", "--all", home=ledger), run("show", name, home=ledger)):
        assert "\x1b" not in text
        assert "\x00" not in text
        assert "\x07" not in text


def test_text_that_is_no_unicode_is_mended_and_its_sender_told(ledger):
    """Invalid UTF-8 in protobuf, half a surrogate pair in JSON: 200, U+FFFD in its place, and the run is judged."""
    name, request = one_run()
    bad = part(9, part(1, b"bad") + part(2, part(1, b"\xff\xfe\x80")))
    body = with_raw_field(request.SerializeToString(), bad)
    status, _, said = ledger.served.post("/v1/traces", body, **PROTOBUF)
    assert (status, b"1 texts were not UTF-8" in said) == (200, True)
    span = {"traceId": "6b" * 16, "spanId": "6c" * 8, "name": "\ud800", "kind": 1, "endTimeUnixNano": "1"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
    status, _, said = ledger.served.post("/v1/traces", body, **JSON)
    assert (status, b"1 texts were not UTF-8" in said) == (200, True)

    other = ledger.healthy()
    found = landed(ledger, other, name, "6b" * 16)
    assert found[other].state is found[name].state is RunState.SCORED


def test_everything_that_was_acknowledged_is_there(ledger):
    """After all of the above the process is the one that was started, healthy, and its journal has every span."""
    assert ledger.served.process.poll() is None
    assert ledger.served.metrics()["redfirst_ready"] == 1
    assert ledger.acknowledged
    assert ledger.acknowledged <= journalled(ledger.served.home)


def run(*arguments: str, home: Ledger) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", *arguments]
    done = subprocess.run(
        command,
        env={**os.environ, "REDFIRST_HOME": str(home.served.home)},
        capture_output=True,
        text=True,
        check=False,
        cwd=home.served.home.parent,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout

"""Starting, stopping and starting again."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import time

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.otlp.items import proves


def test_a_second_service_on_one_home_is_refused(served):
    """The message names the process that has the home."""
    second = served.spawn()
    _, told = second.communicate(timeout=20)

    assert second.returncode == 2
    assert f"pid {served.process.pid}" in told
    assert len(told.strip().splitlines()) == 1


def test_a_store_of_a_newer_version_is_refused(stopped):
    """An older program does not touch it."""
    stopped.home.mkdir()
    with sqlite3.connect(stopped.home / "store.sqlite3") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()

    refused = stopped.spawn()
    _, told = refused.communicate(timeout=20)

    assert refused.returncode == 2
    assert "newer redfirst" in told
    assert len(told.strip().splitlines()) == 1


@pytest.mark.parametrize("name", ["GRPC", "HTTP", "PAGE"])
def test_a_taken_port_names_the_holder_and_the_setting(stopped, name):
    """The one line says who has it and what to set."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = stopped.spawn(**{f"REDFIRST_{name}_PORT": str(port)})
        _, told = refused.communicate(timeout=20)

    assert refused.returncode == 2
    assert f"REDFIRST_{name}_PORT" in told
    assert str(port) in told
    if sys.platform == "linux":
        assert f"pid {os.getpid()}" in told
    assert len(told.strip().splitlines()) == 1


@proves(46)
def test_a_late_span_makes_a_new_version_that_supersedes(shared, tools):
    """The run is judged again over all its spans, and there is one latest version."""
    run = tools.a_run()
    trace_id = run[0].context.trace_id
    exporter = tools.exporter_over("http", shared)
    exporter.export(run)
    name = f"{trace_id:032x}"
    tools.eventually(lambda: [r for r in shared.runs() if r["trace_id"] == name])

    exporter.export(run)
    exporter.export([tools.a_span(trace_id, parent=run[0].context.span_id)])
    exporter.shutdown()

    second = tools.eventually(
        lambda: [r for r in shared.runs() if r["trace_id"] == name and r["version"] == 2]
    )
    assert second[0]["spans"] == 4
    assert second[0]["cut"] == "came_late"
    assert [v["version"] for v in shared.get(f"/api/runs/{name}")["versions"]] == [1, 2]


@proves(42, 46)
def test_the_same_spans_again_make_no_new_version(shared, tools):
    """A batch that is sent twice changes nothing."""
    run = tools.a_run()
    exporter = tools.exporter_over("grpc", shared)
    exporter.export(run)
    name = f"{run[0].context.trace_id:032x}"
    tools.eventually(lambda: name in shared.stored())
    before = shared.metrics()['redfirst_landed_total{state="scored"}']
    exporter.export(run)
    exporter.shutdown()

    tools.eventually(lambda: shared.metrics()['redfirst_landed_total{state="scored"}'] == before + 1)
    assert (shared.stored()[name].version, shared.stored()[name].spans) == (1, 3)


@proves(24)
def test_a_run_that_is_open_when_the_service_stops_goes_on_after_the_start(stopped, tools):
    """Half a run before a stop, the root after it: one verdict over both; and what was judged before is not again."""
    stopped.start(REDFIRST_IDLE_SECONDS="60")
    whole, halved = tools.a_run(), tools.a_run()
    exporter = tools.exporter_over("http", stopped)
    exporter.export(whole)
    exporter.export(halved[1:])
    tools.eventually(stopped.runs)
    exporter.shutdown()
    assert stopped.stop() == 0

    rows = traces(stopped, "--all")
    half = f"{halved[0].context.trace_id:032x}"
    assert {(row["trace_id"], row["state"]) for row in rows} >= {(half, "open")}

    stopped.start()
    exporter = tools.exporter_over("http", stopped)
    exporter.export(halved[:1])
    exporter.shutdown()
    done = tools.eventually(lambda: len(runs := stopped.runs()) == 2 and runs)
    assert {(run["spans"], run["version"]) for run in done} == {(3, 1)}
    assert stopped.metrics().get('redfirst_landed_total{state="scored"}') == 1


@proves(24)
def test_stopping_judges_what_is_due_and_exits_with_zero(stopped, tools):
    """A run whose settle time is over when the service is told to stop has its verdict when it has stopped."""
    stopped.start()
    exporter = tools.exporter_over("http", stopped)
    exporter.export(tools.a_run())
    exporter.shutdown()
    time.sleep(0.31)

    assert stopped.stop() == 0
    assert not (stopped.home / "store.sqlite3-wal").exists()
    assert [row["state"] for row in traces(stopped)] == ["scored"]


def test_a_trace_without_agent_model_or_tool_is_no_run(shared, tools):
    """It is kept and counted, and is not listed among the runs."""
    exporter = tools.exporter_over("http", shared)
    trace_id = tools.new_id(16)
    exporter.export([tools.a_span(trace_id, kind="CHAIN", name="set-up")])
    exporter.shutdown()

    tools.eventually(lambda: shared.runs("not_a_run"))
    name = f"{trace_id:032x}"
    assert name not in {row["trace_id"] for row in traces(shared)}
    assert (name, "not_a_run") in {(row["trace_id"], row["state"]) for row in traces(shared, "--all")}
    assert shared.metrics()['redfirst_landed_total{state="not_a_run"}'] == 1


def traces(served, *options: str) -> list[dict[str, object]]:
    """What ``redfirst traces --json`` prints."""
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", "traces", "--json", *options]
    done = subprocess.run(
        [*command, "--home", str(served.home)],
        capture_output=True,
        text=True,
        check=True,
        cwd=served.home.parent,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_what_waits_for_a_sink_that_is_taken_away_goes(stopped, tools):
    """Counted with its reason and said at the start; without it nothing is left for it, and no other start says so."""
    gone = json.dumps([{"name": "gone", "kind": "mlflow", "endpoint": "http://127.0.0.1:1"}])
    stopped.start(REDFIRST_SINKS=gone)
    exporter = tools.exporter_over("http", stopped)
    exporter.export(tools.a_run())
    exporter.shutdown()
    tools.eventually(stopped.stored)
    assert stopped.stop() == 0

    labels = '{destination="sink:gone",reason="configured_no_more"}'
    stopped.start()
    assert stopped.metrics()[f"redfirst_outbox_dropped_total{labels}"] == 1
    assert stopped.addresses["sink:gone is configured no more: 1 message to it"] == "dropped"
    assert stopped.stop() == 0
    with sqlite3.connect(stopped.home / "store.sqlite3") as database:
        assert database.execute("SELECT count(*) FROM outbox WHERE destination = 'sink:gone'").fetchone() == (
            0,
        )
    database.close()
    stopped.start(REDFIRST_SINKS=gone)
    assert not [name for name in stopped.metrics() if name.startswith("redfirst_outbox_dropped_total")]


def test_ten_thousand_open_runs_stay_open_over_a_stop(stopped, tools):
    """Fault 4: the service ends at once and with 0; after the start all are open, and none was judged as it was."""
    service = stopped.start(REDFIRST_IDLE_SECONDS="600")
    for batch in range(10):
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for number in range(1000):
            scope.spans.add(
                trace_id=(batch * 1000 + number + 1).to_bytes(16, "big"),
                span_id=b"12345678",
                parent_span_id=b"parent__",
                name="tool",
                start_time_unix_nano=1,
                end_time_unix_nano=2,
            )
        status, _, _ = service.post(
            "/v1/traces", request.SerializeToString(), content_type="application/x-protobuf"
        )
        assert status == 200
    assert service.stop() == 0

    service.start(REDFIRST_IDLE_SECONDS="600")
    assert service.metrics()["redfirst_traces_open"] == 10_000
    assert service.runs() == []
    assert service.stop() == 0

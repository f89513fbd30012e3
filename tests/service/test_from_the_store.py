"""What the service stored, as people and other programs get at it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from importlib import resources
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from redfirst.collector_processor.home import Home
from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.collector_processor.scoring.span_source import SpanSource
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader

PROTOBUF = "application/x-protobuf"
JSON = "application/json"
DAY = """
import sys
from bookshop.tasks import conversations, play
from redfirst.instrumentation import configure, shutdown
configure("bookshop", endpoint=sys.argv[1] + "/v1/traces")
for one in conversations(0):
    play(one)
shutdown()
"""


def test_a_flagged_run_of_the_store_is_a_proven_scenario_with_two_commands(served, tools, tmp_path):
    """The bookshop exports over the wire; freeze takes the run from the store, and prove sees it fail."""
    root = tmp_path / "project"
    with resources.as_file(resources.files("redfirst.examples.bookshop")) as source:
        shutil.copytree(source, root / "bookshop", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "redfirst.yaml").write_text(
        'agents:\n  support: {call: "bookshop.agent:make", input: messages}\n'
    )
    subprocess.run([sys.executable, "-c", DAY, served.http], cwd=root, check=True, capture_output=True)
    tools.eventually(lambda: len(served.stored()) >= 40 and served.metrics()["redfirst_traces_open"] == 0)
    flagged = [
        json.loads(line) for line in redfirst(root, served.home, "traces", "--json", "--flagged").splitlines()
    ]
    assert flagged
    assert all(row["flagged"] and row["state"] == "scored" for row in flagged)

    name = next(
        row["trace_id"] for row in flagged if {"repeats", "termination"} <= failed(served, row["trace_id"])
    )
    assert json.loads(redfirst(root, served.home, "show", name[:10], "--json"))["trace_id"] == name
    redfirst(root, served.home, "freeze", name[:10], "--out", "scenario")
    assert "PROVEN" in redfirst(root, served.home, "prove", "scenario")


def failed(served, run_id: str) -> set[str]:
    verdicts = served.get(f"/api/runs/{run_id}")["record"]["verdicts"]
    return {verdict["check"] for verdict in verdicts if verdict["outcome"] == "failed"}


def redfirst(root: Path, home: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "REDFIRST_HOME": str(home), "PYTHONPATH": "."},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_unknown_run_is_one_line_and_exit_code_2(shared, tools):
    """The line names the store that was looked in."""
    done = subprocess.run(
        [sys.executable, "-m", "redfirst.collector_processor.cli", "show", "0123456789"],
        cwd=shared.home.parent,
        capture_output=True,
        text=True,
        check=False,
        env={"REDFIRST_HOME": str(shared.home)},
    )

    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert str(shared.home) in done.stderr


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_what_is_journalled_is_what_was_sent(shared, tools, protocol):
    """Byte for byte, with a field that this version of the protocol does not know."""
    body = tools.body_of(tools.a_run()) + b"\xfa\x3e\x03abc"
    if protocol == "http":
        assert shared.post("/v1/traces", body, content_type=PROTOBUF)[0] == 200
    else:
        import grpc

        with grpc.insecure_channel(shared.grpc, compression=grpc.Compression.Gzip) as channel:
            channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(
                body, timeout=10
            )
    files = JournalFiles(Home(shared.home).journal)

    assert [placed.record.body for placed in files.scan(START)].count(body) == 1
    files.close()


def test_log_records_are_kept_with_their_run(shared, tools):
    """Logs that come by themselves, after the spans, are read with them: a new version of the same run."""
    run = tools.a_run()
    context = run[1].context
    shared.post("/v1/traces", tools.body_of(run), content_type=PROTOBUF)
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        event_name="e",
    )
    name = f"{context.trace_id:032x}"
    tools.eventually(lambda: name in shared.stored())
    assert shared.post("/v1/logs", request.SerializeToString(), content_type=PROTOBUF)[0] == 200

    tools.eventually(lambda: shared.stored()[name].version == 2)
    reader = SqliteReader(Home(shared.home).store)
    source = SpanSource(Home(shared.home).journal)
    pieces = source.slices(bytes.fromhex(name), reader.positions(name))
    reader.close()
    source.close()
    assert (len(pieces["traces"]), len(pieces["logs"])) == (3, 1)


def test_json_and_protobuf_of_one_run_give_one_record(shared, tools):
    """The encoding of the request leaves no trace in the verdict."""
    spans = [
        {
            "traceId": "ab" * 16, "spanId": "0123456789abcdef", "name": "support", "kind": 1,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2",
            "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "AGENT"}}],
        }
    ]  # fmt: skip
    document = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    shared.post("/v1/traces", json.dumps(document).encode(), content_type=JSON)
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"\xab" * 16, span_id=bytes.fromhex("0123456789abcdef"), name="support", kind=1,
        start_time_unix_nano=1, end_time_unix_nano=2,
    )  # fmt: skip
    span.attributes.add(key="openinference.span.kind").value.string_value = "AGENT"
    first = tools.eventually(lambda: shared.stored().get("ab" * 16))
    before = shared.metrics()['redfirst_landed_total{state="scored"}']
    shared.post("/v1/traces", request.SerializeToString(), content_type=PROTOBUF)

    tools.eventually(lambda: shared.metrics()['redfirst_landed_total{state="scored"}'] == before + 1)
    assert shared.stored()["ab" * 16] == first


def test_the_api_lists_shows_labels_and_erases(shared, tools):
    """Newest first, with the record; a label stays with the run; an erased run is gone and does not come back."""
    runs = [tools.a_run(), tools.a_run()]
    for run in runs:
        shared.post("/v1/traces", tools.body_of(run), content_type=PROTOBUF)
    name, other = (f"{run[0].context.trace_id:032x}" for run in runs)
    tools.eventually(lambda: {name, other} <= {run["trace_id"] for run in shared.runs()})

    assert shared.get(f"/api/runs/{name}")["record"]["agents"] == ["support"]
    status, _, _ = tools.post(
        f"{shared.page}/api/runs/{name}/label",
        b'{"check": "repeats", "right": false}',
        {"content-type": JSON},
    )
    assert status == 200
    assert shared.get(f"/api/runs/{name}")["labels"] == [{"check": "repeats", "right": False, "note": ""}]

    status, _, _ = tools.post(f"{shared.page}/api/runs/{name}/delete", b"{}", {"content-type": JSON})
    assert status == 200
    shared.post(
        "/v1/traces", tools.body_of([tools.a_span(runs[0][0].context.trace_id)]), content_type=PROTOBUF
    )
    tools.eventually(lambda: shared.metrics().get('redfirst_late_total{outcome="deleted"}') == 1)
    listed = {run["trace_id"] for run in shared.runs()}
    assert (name in listed, other in listed) == (False, True)


@pytest.mark.parametrize("running", [True, False])
def test_label_and_delete_work_with_and_without_a_service(served, tools, running):
    """Through the service that has the home, or in the store itself when none runs."""
    run = tools.a_run()
    name = f"{run[0].context.trace_id:032x}"
    served.post("/v1/traces", tools.body_of(run), content_type=PROTOBUF)
    tools.eventually(served.stored)
    if not running:
        served.stop()
    home = ["--home", str(served.home)]

    redfirst(
        served.home.parent,
        served.home,
        "label",
        name[:8],
        "wrong",
        "--check",
        "repeats",
        "--note",
        "polls",
        *home,
    )
    with pytest.raises(AssertionError, match=r"--check repeets: run .* has no such verdict; it has repeats"):
        redfirst(served.home.parent, served.home, "label", name[:8], "right", "--check", "repeets", *home)
    shown = redfirst(served.home.parent, served.home, "show", name[:8])
    assert "labelled repeats wrong: polls" in shown
    reader = SqliteReader(Home(served.home).store)
    assert [(item.check, item.right, item.note) for item in reader.versions(name)[-1].labels] == [
        ("repeats", False, "polls")
    ]
    reader.close()
    told = json.loads(redfirst(served.home.parent, served.home, "delete", name[:8], "--json", *home))
    assert told == {"trace_id": name, "deleted": True}
    assert served.stored() == {}


@pytest.mark.parametrize(
    ("path", "body", "headers", "expected"),
    [
        ("/api/runs/zz/label", b"{}", {"content-type": JSON}, 400),
        (f"/api/runs/{'00' * 16}/label", b'{"right": true}', {"content-type": JSON}, 404),
        (f"/api/runs/{'00' * 16}/label", b'{"right": "yes"}', {"content-type": JSON}, 400),
        (f"/api/runs/{'00' * 16}/delete", b"{}", {"content-type": "text/plain"}, 415),
        (f"/api/runs/{'00' * 16}/delete", b"{}", {"content-type": JSON, "origin": "http://elsewhere"}, 403),
        (f"/api/runs/{'00' * 16}/delete", b"x" * 70_000, {"content-type": JSON}, 413),
        (f"/api/runs/{'00' * 16}/delete", b"{}", {"content-type": JSON, "host": "elsewhere.test"}, 403),
        (f"/api/runs/{'00' * 16}/delete", b"{}", {"content-type": JSON, "origin": "http://[x"}, 403),
        (f"/api/runs/{'00' * 16}/delete", b"{}", {"content-type": JSON, "host": "[::1"}, 403),
        ("/api/backfill", b'{"since_ns": 99999999999999999999, "revision": ""}', {"content-type": JSON}, 400),
        ("/api/backfill", b'{"since_ns": 9223372036854775808, "revision": ""}', {"content-type": JSON}, 400),
        ("/api/backfill", b'{"since_ns": true, "revision": ""}', {"content-type": JSON}, 400),
        ("/api/runs", b"{}", {"content-type": JSON}, 405),
        ("/api/nothing", b"{}", {"content-type": JSON}, 404),
    ],
)
def test_the_api_refuses_what_it_should(shared, tools, path, body, headers, expected):
    """A form or a page of another site changes nothing; every refusal says why."""
    status, _, answer = tools.post(f"{shared.page}{path}", body, headers)

    assert status == expected
    assert json.loads(answer)["error"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("before_ns=99999999999999999999999999", 400),
        ("before_ns=" + "9" * 5000, 400),
        ("before_ns=-1&limit=-5", 200),
        ("limit=" + "9" * 5000, 400),
        ("limit=99999999999999999999", 200),
        ("text=%00", 200),
        ("text=%00%22%27%3B--", 200),
        ("text=%ed%a0%80", 200),
        ("text=" + "a+" * 15_000, 200),
        ("agent=%00&session=%00&user=%00", 200),
        ("state=scored,bogus", 400),
        ("since=1", 400),
    ],
)
def test_an_odd_question_is_answered_and_is_no_fault_of_ours(shared, query, expected):
    """Never 500: what cannot be asked is told."""
    try:
        with urllib.request.urlopen(f"{shared.page}/api/runs?{query}", timeout=10) as answer:
            status, said = answer.status, json.load(answer)
    except urllib.error.HTTPError as problem:
        with problem:
            status, said = problem.code, json.load(problem)
    assert (status, list(said)) == (expected, ["runs" if expected == 200 else "error"])


def test_a_body_that_does_not_come_is_not_waited_for(shared):
    """One byte of a hundred: 408 after ten seconds, and the connection is free."""
    host, _, port = shared.page.removeprefix("http://").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as slow:
        slow.sendall(
            b"POST /api/erasures HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"content-length: 100\r\n\r\n{"
        )
        assert slow.recv(12) == b"HTTP/1.1 408"


def test_health_and_metrics_answer(shared):
    """Live, ready, and in Prometheus' format."""
    for path in ("/healthz", "/readyz"):
        with urllib.request.urlopen(f"{shared.page}{path}", timeout=10) as answer:
            assert answer.read() == b"ok\n"
    names = {name.partition("{")[0] for name in shared.metrics()}
    assert {
        "redfirst_traces_open",
        "redfirst_lag_seconds",
        "redfirst_journal_bytes",
        "redfirst_ready",
    } <= names

"""The verdict span in real backends: one more child of the root, in no longer a trace, found by its tag."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.backends.runs import SERVICE, Run
from tests.backends.servers import Collector, Jaeger, MlflowBackend, PhoenixBackend, ask
from tests.backends.test_scores import export, until
from tests.frameworks.conftest import ROOT, Serve
from tests.frameworks.phoenix import free_ports, nanoseconds

PAGE = ROOT / "docs" / "backends" / "collector.md"


def otlp(name: str, url: str, **more: object) -> dict[str, object]:
    """A sink that gets the span."""
    return {"name": name, "kind": "otlp", "endpoint": url, "longest_wait_seconds": 0.5, **more}


def test_in_phoenix_the_trace_is_no_longer_and_there_is_no_other(
    serve: Serve, phoenix: PhoenixBackend
) -> None:
    """Five spans and a verdict in the one trace; the verdict lies at the root's end; sent again it is not doubled."""
    run = Run()
    phoenix.take(run.good())
    served = serve(REDFIRST_SINKS=json.dumps([otlp("phoenix", phoenix.url)]))
    export(served, run.good())
    spans = until(lambda: (found := phoenix.spans(run.trace_id)) and len(found) == 5 and found)
    (verdict,) = [span for span in spans if span["name"] == "evaluate redfirst"]

    assert verdict["parent_id"] == run.root
    assert verdict["span_kind"] == "EVALUATOR"
    assert verdict["attributes"]["redfirst.verdict"] == "clean"
    root = next(span for span in spans if span["parent_id"] is None)
    assert max(nanoseconds(span["end_time"]) for span in spans) == nanoseconds(root["end_time"])
    assert nanoseconds(verdict["start_time"]) == nanoseconds(root["end_time"])
    sessions = ask(f"{phoenix.url}/v1/projects/default/sessions?limit=1000")["data"]
    (session,) = [one for one in sessions if one["session_id"] == run.session]
    assert [one["trace_id"] for one in session["traces"]] == [run.trace_id]


def test_in_mlflow_the_trace_lasts_as_long_as_the_agent_did(serve: Serve, mlflow: MlflowBackend) -> None:
    """Four seconds before, four seconds after; and no second trace of the session."""
    run = Run()
    mlflow.take(run.good())
    headers = {"x-mlflow-experiment-id": "0"}
    served = serve(REDFIRST_SINKS=json.dumps([otlp("mlflow", mlflow.url, headers=headers)]))
    export(served, run.good())
    url = f"{mlflow.url}/api/3.0/mlflow/traces/get?trace_id=tr-{run.trace_id}"
    until(lambda: len(ask(url)["trace"]["spans"]) == 5)
    info = ask(f"{mlflow.url}/api/3.0/mlflow/traces/tr-{run.trace_id}")["trace"]["trace_info"]

    assert info["execution_duration"] == "4s"
    wanted = {
        "locations": [{"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}],
        "filter": f"metadata.`mlflow.trace.session` = '{run.session}'",
    }
    found = ask(f"{mlflow.url}/api/3.0/mlflow/traces/search", "POST", wanted)
    assert [trace["trace_id"] for trace in found["traces"]] == [f"tr-{run.trace_id}"]


def test_in_jaeger_a_search_by_tag_finds_flagged_runs_and_only_those(serve: Serve, jaeger: Jaeger) -> None:
    """The verdict and its reason are on one span, a child of the root, and the trace is as long as it was."""
    flagged, clean = Run(), Run()
    entry = otlp("jaeger", jaeger.otlp, mark_error=True)
    served = serve(REDFIRST_SINKS=json.dumps([entry]))
    for body in (*flagged.whole(), clean.good()):
        ask(f"{jaeger.otlp}/v1/traces", "POST", body)
        export(served, body)
    found = until(lambda: jaeger.flagged(SERVICE))

    until(lambda: len(jaeger.trace(clean.trace_id)) == 5)
    assert [trace["traceID"] for trace in jaeger.flagged(SERVICE)] == [flagged.trace_id]
    spans = found[0]["spans"]
    (verdict,) = [span for span in spans if span["operationName"] == "evaluate redfirst"]
    root = next(span for span in spans if span["spanID"] == flagged.root)
    assert [reference["spanID"] for reference in verdict["references"]] == [flagged.root]
    tags = {tag["key"]: tag["value"] for tag in verdict["tags"]}
    assert tags["redfirst.failed"] == "repeats"
    assert "get_order" in tags["redfirst.because"]
    assert tags["error"] is True
    ends = [span["startTime"] + span["duration"] for span in spans]
    assert max(ends) == root["startTime"] + root["duration"]
    assert verdict["duration"] == 0


@pytest.fixture
def collector_config() -> str:
    """The configuration that the docs show."""
    (found,) = re.findall(r"```yaml\n(receivers:.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return str(found)


def test_through_a_collector_spans_go_to_the_backend_and_to_redfirst_side_by_side(
    serve: Serve, jaeger: Jaeger, collector_config: str, tmp_path: Path
) -> None:
    """The configuration in the docs is valid; an agent that exports to the Collector has its trace and its verdict in
    the backend, and the verdict that comes back to redfirst with the spans makes no second version."""
    grpc, http = free_ports(2)
    ports = {"4317": str(grpc), "4318": str(http)}
    config = re.sub(
        r"(127\.0\.0\.1:)(4317|4318)\b", lambda found: found[1] + ports[found[2]], collector_config
    )
    told = serve(REDFIRST_SINKS=json.dumps([otlp("collector", f"http://127.0.0.1:{http}")]))
    collector = Collector(tmp_path, config, REDFIRST_ENDPOINT=told.http, BACKEND_ENDPOINT=jaeger.otlp)
    assert collector.validate() == ""
    collector.start()
    try:
        run = Run()
        for body in run.whole():
            ask(f"http://127.0.0.1:{http}/v1/traces", "POST", body)
        until(lambda: len(jaeger.trace(run.trace_id)) == 8)
        (judged,) = told.judged(1)
        assert (judged["trace_id"], judged["flagged"], judged["version"]) == (run.trace_id, True, 1)
        assert run.trace_id in {trace["traceID"] for trace in jaeger.flagged(SERVICE)}
    finally:
        collector.end()

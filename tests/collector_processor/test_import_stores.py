"""Exports of trace stores, imported and read back: the runs are those that the spans told before."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from redfirst.collector_processor.recorded.files import read_files
from redfirst.evaluators import Span
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import run_record
from redfirst.evaluators.span import StatusCode
from redfirst.evaluators.trajectory import CallStatus, Stop, Tokens, Trajectory

from .importing import FIXTURES, imported

OTLP = FIXTURES.parent / "otlp"
CAPTURES = sorted({path.name.split(".")[0] for path in OTLP.glob("*.otlp.pb")} - {"README"})


def spans_in(name: str) -> list[Span]:
    """The spans of one capture of a real framework."""
    return list(read_files(sorted(OTLP.glob(f"{name}*.otlp.pb"))).spans)


def records(runs: list[Trajectory]) -> list[dict[str, object]]:
    """What score prints of runs."""
    return [run_record(run, judge(run, default_checks())) for run in runs]


# --- Jaeger


def test_a_jaeger_trace_is_its_spans(tmp_path: Path):
    """Tags are attributes of their types, the status and the scope are fields again, logs are events."""
    ((run,), spans) = imported("auto", FIXTURES / "jaeger.json", out=tmp_path)
    tool = next(span for span in spans if span.name == "execute_tool get_order")

    assert [(c.name, c.arguments, c.status, c.error) for c in run.tool_calls] == [
        ("get_order", {"order_id": "A-42"}, CallStatus.TOOL_ERROR, "no such order")
    ]
    assert (run.tokens.input, run.tokens.output, run.request) == (21, 4, "Where is A-42?")
    assert (tool.scope, tool.status, tool.parent_id) == ("shop", StatusCode.ERROR, "b7ad6b7169203331")
    assert tool.end_ns - tool.start_ns == 100_000_000
    assert tool.resource == {"service.name": "shop", "deployment.environment.name": "prod"}
    assert tool.events[0].attributes["exception.type"] == "KeyError"
    assert "otel.scope.name" not in tool.attributes


def as_jaeger(spans: list[Span]) -> dict[str, object]:
    """Spans as Jaeger's query API answers them, by OpenTelemetry's mapping: arrays are JSON texts, times microseconds."""
    traces: dict[str, dict[str, Any]] = {}
    for number, span in enumerate(spans):
        trace = traces.setdefault(span.trace_id, {"traceID": span.trace_id, "spans": [], "processes": {}})
        process = f"p{number}"
        resource = dict(span.resource)
        trace["processes"][process] = {
            "serviceName": str(resource.pop("service.name", "unknown_service")),
            "tags": list(_tags(resource)),
        }
        tags: dict[str, object] = {**span.attributes, "otel.scope.name": span.scope}
        if span.status is not StatusCode.UNSET:
            tags["otel.status_code"] = span.status.name
            tags["otel.status_description"] = span.status_message
        if span.status is StatusCode.ERROR:
            tags["error"] = True
        links = [{"refType": "FOLLOWS_FROM", "traceID": k.trace_id, "spanID": k.span_id} for k in span.links]
        parent = {"refType": "CHILD_OF", "traceID": span.trace_id, "spanID": span.parent_id}
        trace["spans"].append(
            {
                "traceID": span.trace_id,
                "spanID": span.span_id,
                "operationName": span.name,
                "references": [parent, *links] if span.parent_id else links,
                "startTime": span.start_ns // 1000,
                "duration": span.end_ns // 1000 - span.start_ns // 1000,
                "tags": list(_tags(tags)),
                "logs": [
                    {"timestamp": e.time_ns // 1000, "fields": list(_tags({"event": e.name, **e.attributes}))}
                    for e in span.events
                ],
                "processID": process,
            }
        )
    return {"data": list(traces.values())}


def _tags(attributes: dict[str, object]) -> Iterator[dict[str, object]]:
    for key, value in attributes.items():
        kind = {bool: "bool", int: "int64", float: "float64"}.get(type(value), "string")
        text = json.dumps(value) if isinstance(value, tuple | dict | list) else value
        yield {"key": key, "type": kind, "value": text}


def as_tempo(spans: list[Span]) -> dict[str, object]:
    """Spans as Tempo's first trace API answers them: ids in base64, one batch a span."""

    def encoded(identifier: str | None) -> str:
        return base64.b64encode(bytes.fromhex(identifier or "")).decode()

    def value(held: object) -> dict[str, object]:
        if isinstance(held, bool):
            return {"boolValue": held}
        if isinstance(held, int):
            return {"intValue": str(held)}
        if isinstance(held, float):
            return {"doubleValue": held}
        if isinstance(held, tuple | list):
            return {"arrayValue": {"values": [value(item) for item in held]}}
        if isinstance(held, dict):
            return {"kvlistValue": {"values": pairs(held)}}
        return {"stringValue": held}

    def pairs(attributes: Any) -> list[dict[str, object]]:
        return [{"key": key, "value": value(held)} for key, held in attributes.items()]

    def batch(span: Span) -> dict[str, object]:
        return {
            "resource": {"attributes": pairs(span.resource)},
            "instrumentationLibrarySpans": [
                {
                    "instrumentationLibrary": {"name": span.scope, "version": span.scope_version},
                    "spans": [
                        {
                            "traceId": encoded(span.trace_id),
                            "spanId": encoded(span.span_id),
                            "parentSpanId": encoded(span.parent_id),
                            "name": span.name,
                            "startTimeUnixNano": str(span.start_ns),
                            "endTimeUnixNano": str(span.end_ns),
                            "attributes": pairs(span.attributes),
                            "status": {
                                "code": f"STATUS_CODE_{span.status.name}",
                                "message": span.status_message,
                            },
                            "events": [
                                {
                                    "timeUnixNano": str(e.time_ns),
                                    "name": e.name,
                                    "attributes": pairs(e.attributes),
                                }
                                for e in span.events
                            ],
                        }
                    ],
                }
            ],
        }

    return {"batches": [batch(span) for span in spans]}


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("store", [as_jaeger, as_tempo])
def test_what_went_into_a_store_comes_out_as_the_same_runs(
    tmp_path: Path, name: str, store: Callable[[list[Span]], dict[str, object]]
):
    """Real frameworks' spans read the same after a store: every fact, every verdict."""
    spans = spans_in(name)
    (tmp_path / "export.json").write_text(json.dumps(store(spans)))
    runs, _ = imported("auto", tmp_path / "export.json", out=tmp_path / "out")

    assert records(runs) == records(list(read(spans).runs))


# --- Tempo


@pytest.mark.parametrize("version", ["tempo_v1", "tempo_v2"])
def test_both_answers_of_tempo_are_read(tmp_path: Path, version: str):
    """Base64 ids, the old name of scopes, enums by name."""
    ((run,), spans) = imported("auto", FIXTURES / f"{version}.json", out=tmp_path)

    assert run.trace_ids == ("0af7651916cd43dd8448eb211c80319c",)
    assert (run.agents, run.models, run.answer) == (("support",), ("gpt-4o",), "It has shipped.")
    assert {(span.scope, span.kind) for span in spans} == {("shop", 1)}


# --- Phoenix


def test_what_phoenix_gives_back_is_what_it_was_sent(tmp_path: Path):
    """The recorded answer of a real server reads as the bodies it was sent. Phoenix keeps no scope, by which the
    workflow's own span is told from the agents, so that it counts as an agent."""
    runs, _ = imported("auto", FIXTURES / "phoenix.json", out=tmp_path)
    (kept,) = records(runs)
    (sent,) = records(list(read(spans_in("openai-agents__openinference-openai-agents__loop_cap")).runs))

    assert kept.pop("agents") == ["support_flow", *sent.pop("agents")]
    assert kept == sent


def test_a_tool_schema_that_phoenix_took_apart_is_whole_again(tmp_path: Path):
    """``tool.parameters.properties.order_id.type`` is part of one JSON Schema."""
    ((run,), _) = imported("phoenix", FIXTURES / "phoenix.json", out=tmp_path)
    schema = run.tool_calls[0].schema or {}

    assert schema["required"] == ["order_id"]
    assert schema["properties"]["order_id"]["type"] == "string"  # type: ignore[index]


def test_a_data_frame_of_phoenix_reads_as_its_api_does(tmp_path: Path):
    """Columns ``context.trace_id`` and ``attributes.…`` with milliseconds, a span a line."""
    lines = []
    for span in json.loads((FIXTURES / "phoenix.json").read_text())["data"]:
        row = {k: v for k, v in span.items() if k not in ("context", "attributes")}
        row |= {f"context.{key}": value for key, value in span["context"].items()}
        row |= {f"attributes.{key}": value for key, value in span["attributes"].items()}
        for key in ("start_time", "end_time"):
            row[key] = int(datetime.fromisoformat(span[key]).timestamp() * 1000)
        lines.append(json.dumps(row))
    (tmp_path / "spans.jsonl").write_text("\n".join(lines))
    runs, _ = imported("auto", tmp_path / "spans.jsonl", out=tmp_path / "frame")
    same, _ = imported("auto", FIXTURES / "phoenix.json", out=tmp_path / "api")

    assert [[(c.name, c.arguments, c.result) for c in run.tool_calls] for run in runs] == [
        [(c.name, c.arguments, c.result) for c in run.tool_calls] for run in same
    ]


# --- Langfuse


def as_langfuse(spans: list[Span], *, snake: bool) -> list[dict[str, object]]:
    """Observations as Langfuse's API (or its blob storage) gives what its SDK sent."""

    def held(value: object) -> object:
        try:
            return json.loads(value) if isinstance(value, str) and value[:1] in '{["' else value
        except ValueError:
            return value

    def moment(time_ns: int) -> str:
        text = datetime.fromtimestamp(time_ns // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        fraction = f"{time_ns % 10**9 // 1000:06d}"
        return f"{text}.{fraction}" if snake else f"{text.replace(' ', 'T')}.{fraction}Z"

    out = []
    for span in spans:
        said = {
            key.removeprefix("langfuse.observation."): value
            for key, value in span.attributes.items()
            if key.startswith("langfuse.observation.")
        }
        item = {
            "id": span.span_id,
            "traceId": span.trace_id,
            "parentObservationId": span.parent_id,
            "type": str(said.get("type", "span")).upper(),
            "name": span.name,
            "startTime": moment(span.start_ns),
            "endTime": moment(span.end_ns),
            "level": said.get("level", "DEFAULT"),
            "statusMessage": said.get("status_message"),
            "input": held(said.get("input")),
            "output": held(said.get("output")),
            "model": said.get("model.name"),
            "usageDetails": held(said.get("usage_details")) or {},
            "metadata": {
                key.removeprefix("metadata."): held(value)
                for key, value in said.items()
                if key.startswith("metadata.")
            },
            "sessionId": span.attributes.get("session.id"),
        }
        name = "".join
        out.append(
            {name(f"_{c.lower()}" if c.isupper() else c for c in key): value for key, value in item.items()}
            if snake
            else item
        )
    return out


@pytest.mark.parametrize("snake", [False, True])
def test_langfuses_observations_are_the_run_that_its_sdk_sent(tmp_path: Path, snake: bool):
    """The API's page of observations and the blob storage's lines read as the spans did."""
    spans = spans_in("langgraph__langfuse-callback__happy")
    items = as_langfuse(spans, snake=snake)
    text = "\n".join(map(json.dumps, items)) if snake else json.dumps({"data": items, "meta": {}})
    (tmp_path / "observations.json").write_text(text)
    ((run,), _) = imported("auto", tmp_path / "observations.json", out=tmp_path / "out")
    (sent,) = read(spans).runs

    for name in ("request", "answer", "termination", "tokens", "models", "agents", "session_id"):
        assert getattr(run, name) == getattr(sent, name), name
    assert [(c.name, c.arguments, c.result, c.status, c.span_id) for c in run.tool_calls] == [
        (c.name, c.arguments, c.result, c.status, c.span_id) for c in sent.tool_calls
    ]


def test_a_trace_of_langfuse_lends_its_session_to_its_observations(tmp_path: Path):
    """A downloaded trace holds the session beside its observations; ids that are UUIDs stay distinct."""
    observation = {
        "id": "6f1c9d2e-0000-4000-8000-00000000000a",
        "type": "TOOL",
        "name": "get_order",
        "startTime": "2026-01-02T03:04:05.678Z",
        "endTime": "2026-01-02T03:04:06Z",
        "parentObservationId": None,
        "level": "ERROR",
        "statusMessage": "no such order",
        "input": {"order_id": "A-42"},
        "output": None,
    }
    trace = {"id": "6f1c9d2e-0000-4000-8000-0000000000ff", "sessionId": "s-1", "observations": [observation]}
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    ((run,), _) = imported("auto", tmp_path / "trace.json", out=tmp_path / "out")

    assert run.trace_ids == ("6f1c9d2e0000400080000000000000ff",)
    assert run.session_id == "s-1"
    assert [(c.arguments, c.status, c.error) for c in run.tool_calls] == [
        ({"order_id": "A-42"}, CallStatus.TOOL_ERROR, "no such order")
    ]
    assert run.tool_calls[0].end_ns - run.tool_calls[0].start_ns == 322_000_000


# --- LangSmith


def test_a_recorded_langsmith_trace_is_read_whole(tmp_path: Path):
    """Messages of LangChain, tool calls with their ids and errors, tokens, the thread; nothing is missing."""
    ((run,), _) = imported("auto", FIXTURES / "langsmith.jsonl", out=tmp_path)

    assert [(c.name, c.arguments, c.status, c.error) for c in run.tool_calls] == [
        ("get_order", {"order_id": "A-42"}, CallStatus.OK, None),
        (
            "cancel_order",
            {"order_id": "A-42"},
            CallStatus.TOOL_ERROR,
            "ValueError('a shipped order cannot be cancelled')",
        ),
    ]
    assert run.tool_calls[0].result == {"order_id": "A-42", "status": "shipped"}
    assert run.tokens == Tokens(input=20 + 40 + 60, output=5 + 6 + 11)
    assert (run.request, run.session_id) == ("Please cancel my order A-42.", "t-7")
    assert (run.answer, run.termination.reason) == (
        "Order A-42 has shipped and cannot be cancelled.",
        Stop.COMPLETED,
    )
    assert run.coverage.missing == ()


def test_nested_child_runs_are_the_same_trace(tmp_path: Path):
    """Children inside ``child_runs``, without ids of their parents, read as runs beside one another."""
    root, *children = [json.loads(line) for line in (FIXTURES / "langsmith.jsonl").read_text().splitlines()]
    for child in children:
        del child["parent_run_id"], child["trace_id"], child["dotted_order"]
    (tmp_path / "tree.json").write_text(json.dumps(root | {"child_runs": children}))
    nested, _ = imported("langsmith", tmp_path / "tree.json", out=tmp_path / "nested")
    flat, _ = imported("langsmith", FIXTURES / "langsmith.jsonl", out=tmp_path / "flat")

    assert records(nested) == records(flat)


def test_arguments_that_langchain_printed_are_read(tmp_path: Path):
    """Older tracers record a tool's input as the text of a Python dict."""
    lines = [json.loads(line) for line in (FIXTURES / "langsmith.jsonl").read_text().splitlines()]
    lines[2]["inputs"] = {"input": "{'order_id': 'A-42'}"}
    (tmp_path / "runs.json").write_text(json.dumps(lines))
    ((run,), _) = imported("auto", tmp_path / "runs.json", out=tmp_path / "out")

    assert run.tool_calls[0].arguments == {"order_id": "A-42"}

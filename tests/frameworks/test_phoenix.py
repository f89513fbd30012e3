"""What passes through a service arrives unchanged: at a recording endpoint, and in a backend that people use."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from .conftest import HERE, Programs, Serve, Served, environment_of
from .model_server import SCRIPTS, ModelServer
from .phoenix import ROUNDING_NS, Phoenix, as_kept, nanoseconds
from .recorder import Recorder

AGENTS = ("langgraph_agent.py", "openai_agents_agent.py")
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
STATUS = {0: "UNSET", 1: "OK", 2: "ERROR"}


@pytest.fixture(scope="module")
def phoenix(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    """Phoenix with an empty database."""
    program = environment_of("phoenix", "bin/phoenix")
    made = Phoenix(program, tmp_path_factory.mktemp("phoenix"), programs.notes)
    try:
        made.start()
        yield made
    finally:
        made.end()


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    yield made
    made.close()


@pytest.fixture(scope="module")
def sent(model: ModelServer, programs: Programs) -> dict[str, list[bytes]]:
    """The export requests of each agent, as its stock exporter made them."""
    python = environment_of("frameworks", "bin/python")
    bodies = {}
    for agent in AGENTS:
        catching = Recorder()
        programs.run(
            [python, HERE / agent, *(script.request for script in SCRIPTS.values())],
            OPENAI_BASE_URL=model.url,
            OPENAI_API_KEY="none",
            OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
            OTEL_EXPORTER_OTLP_ENDPOINT=catching.url,
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE="16",
        )
        catching.close()
        bodies[agent] = catching.bodies
    return bodies


@pytest.fixture(scope="module")
def forwarding(serve: Serve, recorder: Recorder, phoenix: Phoenix, sent: Mapping[str, list[bytes]]) -> Served:
    """A service with both destinations, given one agent's requests over HTTP and the other's over gRPC."""
    destinations = [
        {"name": "recorder", "endpoint": recorder.url},
        {"name": "phoenix", "endpoint": phoenix.url, "compression": "gzip"},
    ]
    served = serve(REDFIRST_FORWARD=json.dumps(destinations))
    over_http, over_grpc = (sent[agent] for agent in AGENTS)
    for body in over_http:
        request = urllib.request.Request(
            f"{served.http}/v1/traces", data=body, headers={"Content-Type": "application/x-protobuf"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200
    import grpc

    with grpc.insecure_channel(served.grpc) as channel:
        export = channel.unary_unary(EXPORT)
        for body in over_grpc:
            export(body, timeout=10)
    return served


def test_another_endpoint_receives_the_same_bytes(
    forwarding: Served, recorder: Recorder, sent: Mapping[str, list[bytes]]
) -> None:
    """Every request that an exporter sent arrives once, in order, byte for byte, whichever protocol it came by."""
    bodies = [body for agent in AGENTS for body in sent[agent]]
    recorder.received(len(bodies))
    forwarding.judged(len(AGENTS) * len(SCRIPTS))

    assert len(bodies) > len(AGENTS)
    assert recorder.bodies == bodies
    assert set(recorder.paths) == {"/v1/traces"}


def test_phoenix_holds_what_was_sent(
    forwarding: Served, phoenix: Phoenix, sent: Mapping[str, list[bytes]]
) -> None:
    """Read back through its API: the same ids, parents, names, times, status and attributes, and nothing beside."""
    expected = {
        span.span_id.hex(): span for bodies in sent.values() for body in bodies for span in _spans_in(body)
    }
    held = phoenix.spans(len(expected))

    assert {row["context"]["span_id"] for row in held} == set(expected)
    assert len(held) == len(expected)
    for row in held:
        span = expected[row["context"]["span_id"]]
        assert row["context"]["trace_id"] == span.trace_id.hex()
        assert row["parent_id"] == (span.parent_span_id.hex() or None)
        assert row["name"] == span.name
        assert row["status_code"] == STATUS[span.status.code]
        assert row["status_message"] == span.status.message
        assert abs(nanoseconds(row["start_time"]) - span.start_time_unix_nano) <= ROUNDING_NS
        assert abs(nanoseconds(row["end_time"]) - span.end_time_unix_nano) <= ROUNDING_NS
        attributes = {**row["attributes"], "openinference.span.kind": row["span_kind"]}
        assert as_kept(attributes) == as_kept({entry.key: _value(entry.value) for entry in span.attributes})


def _spans_in(body: bytes) -> Iterator[Span]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        for scope in group.scope_spans:
            yield from scope.spans


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind) if kind else None

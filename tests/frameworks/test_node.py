"""An exporter of another language delivers a trace that reads as the same trace from Python does."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .conftest import DEV, HERE, Programs, Serve, environment_of
from .recorder import Recorder

COMPRESSION = {"http/protobuf": "gzip", "http/json": "none", "grpc": "gzip"}
OF_THE_MOMENT = ("arrived", "judged", "judged_ns")
"""What differs between two deliveries of one trace."""


@dataclass(frozen=True)
class Delivery:
    """One delivery of the trace."""

    row: Mapping[str, Any]
    """As ``traces --json`` prints it, without what is of the moment."""
    run: Mapping[str, Any]
    """As ``show --json`` prints it."""
    forwarded: Sequence[ExportTraceServiceRequest]
    """What the service passed on."""


@pytest.fixture(scope="module")
def deliver(serve: Serve, programs: Programs) -> Callable[..., Delivery]:
    """Runs a program that sends one trace to a service of its own."""

    def run(protocol: str, *command: Any, **variables: str) -> Delivery:
        beyond = Recorder()
        served = serve(REDFIRST_FORWARD=json.dumps([{"name": "beyond", "endpoint": beyond.url}]))
        programs.run(command, **served.exporter(protocol), **variables)
        (row,) = served.judged(1)
        made = Delivery(
            row={name: value for name, value in row.items() if name not in OF_THE_MOMENT},
            run=served.shown(row["trace_id"]),
            forwarded=[ExportTraceServiceRequest.FromString(body) for body in beyond.received(1)],
        )
        beyond.close()
        return made

    return run


@pytest.fixture(scope="module")
def from_python(deliver: Callable[..., Delivery]) -> Delivery:
    return deliver("http/protobuf", sys.executable, HERE / "twin_agent.py")


@pytest.fixture(scope="module")
def from_node(deliver: Callable[..., Delivery]) -> dict[str, Delivery]:
    environment_of("node", "node_modules/@opentelemetry/sdk-trace-node")
    command = (shutil.which("node") or "node", HERE / "node" / "agent.cjs")
    found = str(DEV / "node" / "node_modules")
    return {
        protocol: deliver(protocol, *command, NODE_PATH=found, OTEL_EXPORTER_OTLP_COMPRESSION=compression)
        for protocol, compression in COMPRESSION.items()
    }


@pytest.mark.parametrize("protocol", COMPRESSION)
def test_a_trace_from_node_reads_as_from_python(
    from_node: Mapping[str, Delivery], from_python: Delivery, protocol: str
) -> None:
    """Over each protocol the same row and the same run, ids, arguments, results and verdicts included."""
    assert from_node[protocol].row == from_python.row
    assert from_node[protocol].run == from_python.run


def test_what_is_passed_on_does_not_depend_on_how_it_came(from_node: Mapping[str, Delivery]) -> None:
    """Spans that came as JSON are passed on as those that came as protobuf, field for field."""
    first, *others = (delivery.forwarded for delivery in from_node.values())

    assert len(first) == 1
    assert others == [first] * len(others)


def test_the_trace_is_read_as_it_was_written(from_python: Delivery) -> None:
    """What all deliveries agree on is right."""
    row, run = from_python.row, from_python.run

    assert (row["trace_id"], row["spans"], row["agent"]) == (
        "5e0a7c31b2d94f68a1c3e5079bd2f486",
        5,
        "support_agent",
    )
    assert run["dialects"] == ["gen_ai"]
    assert run["request"] == "Où est ma commande A-42 ? 📦"
    assert run["answer"] == "Order A-42 is shipped."
    assert run["session_id"] == "conversation-9"
    assert run["versions"] == {"agent": "7", "models": ["scripted-1"]}
    assert run["termination"] == {"reason": "completed", "cap": None}
    assert run["tokens"] == {"input": 330, "output": 33, "cached": 128, "reasoning": None}
    assert [(call["arguments"], call["status"], call["span_id"]) for call in run["tool_calls"]] == [
        ({"order_id": "A-24"}, "tool_error", "000000000000a003"),
        ({"order_id": "A-42"}, "ok", "000000000000a004"),
    ]
    assert run["tool_calls"][0]["error"] == "no order A-24"
    assert run["tool_calls"][1]["result"] == {
        "order_id": "A-42",
        "status": "shipped",
        "weight": 0.5,
        "parcels": 2,
        "gift": False,
        "note": None,
    }

"""Fault 41: names that senders choose are labels of no more series than one name may have."""

from __future__ import annotations

from collections import Counter

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.service.conftest import Served, eventually, new_id

PROTOBUF = "application/x-protobuf"
AGENTS, MOST = 1300, 1000


def test_a_flood_of_agents_and_services_is_a_bounded_number_of_series(stopped: Served) -> None:
    """Each run of another agent and another service, with names up to 10 kB: a thousand series of one name, the rest
    together as `other`, no run uncounted, and a page that a scraper can take."""
    stopped.start(REDFIRST_SETTLE_SECONDS="0.1")
    for first in range(0, AGENTS, 100):
        request = ExportTraceServiceRequest()
        for number in range(first, first + 100):
            group = request.resource_spans.add()
            group.resource.attributes.add(key="service.name").value.string_value = f"service {number}"
            span = group.scope_spans.add().spans.add(
                trace_id=new_id(16).to_bytes(16, "big"),
                span_id=new_id(8).to_bytes(8, "big"),
                name="agent",
                start_time_unix_nano=1,
                end_time_unix_nano=2,
            )
            name = f"agent {number} " + ("x" * 10_000 if number % 100 == 0 else "")
            for key, text in (("openinference.span.kind", "AGENT"), ("agent.name", name)):
                span.attributes.add(key=key).value.string_value = text
        body = request.SerializeToString()
        assert stopped.post("/v1/traces", body, content_type=PROTOBUF)[0] == 200

    def counted() -> dict[str, float]:
        return {
            name: value
            for name, value in stopped.metrics().items()
            if name.startswith("redfirst_traces_total{")
        }

    eventually(lambda: sum(counted().values()) == AGENTS, within=120)
    found = counted()
    assert len(found) <= MOST + 1
    (other,) = (value for name, value in found.items() if 'gen_ai_agent_name="other"' in name)
    assert other == AGENTS - MOST
    assert max(map(len, found)) < 1000
    names = Counter(name.partition("{")[0] for name in stopped.metrics())
    assert max(names.values()) <= MOST + 1
    assert stopped.metrics()["redfirst_ready"] == 1

"""Fault 22: spans of ever new traces, none of which ends: all stay open, others are judged, memory stays bounded.

10,000 of them; 200,000 with ``REDFIRST_FAULTS=full`` (``make faults``).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.service.conftest import Served, a_run, body_of, eventually

PROTOBUF = "application/x-protobuf"
TRACES = 200_000 if os.environ.get("REDFIRST_FAULTS") == "full" else 10_000
BATCH = 2_000


def test_a_flood_of_new_ids_evicts_nothing_and_delays_no_other(stopped: Served) -> None:
    """Not one is judged before its time or forgotten, over a kill, too; a whole run that comes amid them is judged; each
    takes less than 2 KiB."""
    stopped.start(REDFIRST_IDLE_SECONDS="3600")
    flood(stopped, 0, BATCH)
    before = resident(stopped)
    flood(stopped, BATCH, TRACES // 2)
    name = one_more(stopped)
    flood(stopped, TRACES // 2, TRACES)
    eventually(lambda: name in stopped.stored())
    eventually(lambda: stopped.metrics()["redfirst_traces_open"] == TRACES)
    assert (resident(stopped) - before) / (TRACES - BATCH) < 2048
    assert set(stopped.stored()) == {name}

    stopped.kill()
    stopped.start(REDFIRST_IDLE_SECONDS="3600")
    eventually(lambda: stopped.metrics()["redfirst_traces_open"] == TRACES)
    other = one_more(stopped)
    eventually(lambda: other in stopped.stored())
    assert (stopped.stored()[name].version, stopped.metrics()["redfirst_traces_open"]) == (1, TRACES)
    assert stopped.stop() == 0
    assert set(stopped.stored()) == {name, other}


def flood(served: Served, first: int, end: int) -> None:
    for start in range(first, end, BATCH):
        request = ExportTraceServiceRequest()
        scope = request.resource_spans.add().scope_spans.add()
        for number in range(start, min(start + BATCH, end)):
            scope.spans.add(
                trace_id=(number + 1).to_bytes(16, "big"),
                span_id=b"12345678",
                parent_span_id=b"parent__",
                name="tool",
                start_time_unix_nano=1,
                end_time_unix_nano=2,
            )
        body = request.SerializeToString()
        assert served.post("/v1/traces", body, content_type=PROTOBUF)[0] == 200


def one_more(served: Served) -> str:
    run = a_run()
    assert served.post("/v1/traces", body_of(run), content_type=PROTOBUF)[0] == 200
    return f"{run[0].context.trace_id:032x}"


def resident(served: Served) -> int:
    """Bytes of memory that the service's own process has in use."""
    assert served.process is not None
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(kilobytes) * 1024

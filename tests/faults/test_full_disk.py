"""Fault 5: a real disk that fills up."""

from __future__ import annotations

import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

PROTOBUF = {"content_type": "application/x-protobuf"}
MIB = 1 << 20


def test_a_disk_that_fills_up_pushes_back_before_it_is_full_and_recovers(stopped, tools):
    """On a file system of 48 MiB: 503 before its end and no write fails, what is stored can be read, and when there is
    room again it goes on, without a start. Every run that was acknowledged is judged, those refused can be sent again."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip(
            "mount namespaces are not allowed here: run as root, or allow unprivileged user namespaces"
        )
    stopped.home.mkdir()
    small = f'mount -t tmpfs -o size=48m tmpfs "{stopped.home}" && exec "$@"'
    stopped.start(command=["unshare", "-rm", "sh", "-c", small, "sh"], REDFIRST_MIN_FREE_BYTES=str(8 * MIB))
    inside = Path(f"/proc/{stopped.process.pid}/root{stopped.home}")
    filler = inside / "filler"
    filler.write_bytes(bytes(20 * MIB))

    acknowledged, refused = set(), None
    for _ in range(60):
        run = tools.a_run()
        body = large(tools, run)
        status, headers, _ = stopped.post("/v1/traces", body, **PROTOBUF)
        if status != 200:
            refused = (status, headers["retry-after"])
            break
        acknowledged.add(f"{run[0].context.trace_id:032x}")
    assert refused == (503, "1")
    assert len(acknowledged) >= 10
    free = os.statvfs(inside)
    assert free.f_bavail * free.f_frsize >= 6 * MIB  # what was left to others, less what the store wrote
    with pytest.raises(urllib.error.HTTPError) as unready:
        urllib.request.urlopen(f"{stopped.page}/readyz", timeout=10)
    assert "min_free_bytes" in unready.value.read().decode()
    unready.value.close()

    def scored() -> set[str]:
        return {row["trace_id"] for row in stopped.runs()}

    tools.eventually(lambda: acknowledged <= scored(), within=60)
    filler.unlink()
    assert stopped.post("/v1/traces", body, **PROTOBUF)[0] == 200
    acknowledged.add(f"{run[0].context.trace_id:032x}")
    tools.eventually(lambda: scored() == acknowledged, within=60)
    metrics = stopped.metrics()
    assert metrics["redfirst_ready"] == 1
    assert metrics['redfirst_rejected_total{reason="full"}'] == 1
    assert not [name for name in metrics if "journal_failures" in name or "store_failures" in name]


def large(tools, run: list) -> bytes:
    """The run's request with a mebibyte that no compression makes smaller."""
    request = tools.parsed(tools.body_of(run))
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="noise").value.bytes_value = os.urandom(MIB)
    return request.SerializeToString()

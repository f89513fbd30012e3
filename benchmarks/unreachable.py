"""A host whose collector cannot be reached: ``python benchmarks/unreachable.py [--spans 200000] [--gate]``

Calls a traced tool with a 1 kB argument so many times while every connection to the endpoint is refused. Memory is
measured as it goes; each dropped span must be counted; a traced call must cost what it costs with a collector that takes
everything (CPU of the calling thread, slices of the two in turn, in processes of their own).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

MOST_GROWTH_MB = 96
"""The queue's own limit of 64 MiB, and half as much for what the allocator keeps."""
MOST_SLOWER = 1.5


def resident_mb() -> float:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


class Taking(BaseHTTPRequestHandler):
    """A collector that takes everything."""

    def do_POST(self) -> None:
        """Read it, and say so."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def work(endpoint: str) -> None:
    """Answer each line, a number of calls, by what they took and what became of the spans."""
    os.environ["OTEL_BSP_MAX_QUEUE_SIZE"] = "1000000"  # so that the limit in bytes is the one that holds
    logging.disable(logging.CRITICAL)
    from redfirst.instrumentation import configure, span_counts, tool

    configure("host", endpoint=endpoint)

    @tool
    def look(text: str) -> int:
        return len(text)

    text = "x" * 1000
    for _ in range(200):
        look(text)
    begun_with = resident_mb()
    for line in sys.stdin:
        begun = time.thread_time()
        for _ in range(int(line)):
            look(text)
        took = time.thread_time() - begun
        counts = span_counts()
        assert counts is not None
        assert counts.exporters
        one = counts.exporters[0]
        print(
            json.dumps(
                {
                    "us": took / int(line) * 1e6,
                    "grown_mb": resident_mb() - begun_with,
                    "ended": counts.ended,
                    "exported": one.exported,
                    "failed": one.failed,
                    "dropped": (one.queue_full or 0) + (one.bytes_full or 0),
                    "waiting": (one.waiting or 0) + (one.exporting or 0),
                }
            ),
            flush=True,
        )
    os._exit(0)  # what is queued goes nowhere


class Host:
    """One of the two hosts."""

    def __init__(self, endpoint: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--work", endpoint],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def call(self, times: int) -> dict[str, float]:
        """What so many calls came to."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{times}\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return]

    def end(self) -> None:
        """Stop it."""
        self._process.communicate()


def measure(spans: int, slices: int) -> dict[str, Any]:
    """Both hosts in turn; the last word of the one whose collector is away, and how much slower its calls were."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    away, near = (
        Host("http://127.0.0.1:9/v1/traces"),
        Host(f"http://127.0.0.1:{server.server_port}/v1/traces"),
    )
    ratios, grown = [], 0.0
    last: dict[str, float] = {}
    for _ in range(slices):
        last = away.call(spans // slices)
        ratios.append(last["us"] / near.call(spans // slices)["us"])
        grown = max(grown, last["grown_mb"])
    away.end()
    near.end()
    server.shutdown()
    server.server_close()
    return {**last, "grown_mb": grown, "slower": statistics.median(ratios)}


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spans", type=int, default=200_000)
    parser.add_argument("--slices", type=int, default=20)
    parser.add_argument("--gate", action="store_true", help="fail where memory, counts or time are wrong")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work)
        return 0
    found = measure(asked.spans, asked.slices)
    accounted = found["exported"] + found["failed"] + found["dropped"] + found["waiting"]
    print(
        f"{found['ended']} spans ended: {found['failed']} failed, {found['dropped']} dropped, {found['waiting']} waiting, "
        f"{found['ended'] - accounted} not accounted for\n"
        f"memory grew by {found['grown_mb']:.0f} MB (at most {MOST_GROWTH_MB}); a call cost {found['us']:.1f} us of CPU, "
        f"{found['slower']:.2f}x of one with a collector at hand"
    )
    bad = found["grown_mb"] > MOST_GROWTH_MB or accounted != found["ended"] or found["slower"] > MOST_SLOWER
    return 1 if asked.gate and bad else 0


if __name__ == "__main__":
    sys.exit(main())

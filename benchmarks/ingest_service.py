"""A ``redfirst serve`` under measurement: started, sent to, weighed, and its store read as another process may."""

from __future__ import annotations

import http.client
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

PROTOBUF = "application/x-protobuf"


class Refused(Exception):
    """A receiver answered a request with something else than 200."""


@dataclass
class Served:
    """The service under measurement."""

    process: subprocess.Popen[str]
    home: Path
    grpc: str
    http: str
    page: str

    def cpu(self) -> tuple[float, float]:
        """CPU seconds so far: of the service itself, and of its scorers."""
        return cpu(self.process.pid), sum(map(cpu, tree(self.process.pid)[1:]))

    def rss(self) -> tuple[int, int]:
        """Resident bytes of the service itself, and of its scorers."""
        return rss(self.process.pid), sum(map(rss, tree(self.process.pid)[1:]))

    def series(self) -> dict[str, float]:
        """What ``/metrics`` says, by series."""
        with urlopen(f"{self.page}/metrics", timeout=30) as answer:  # noqa: S310 - its own address
            lines = answer.read().decode().splitlines()
        return {
            name: float(value)
            for name, _, value in (line.rpartition(" ") for line in lines if line and line[0] != "#")
        }


@contextmanager
def served(home: Path, **settings: object) -> Iterator[Served]:
    """A service on free ports."""
    names = {"grpc_port": 0, "http_port": 0, "page_port": 0, **settings}
    environment = {**os.environ, **{f"REDFIRST_{name.upper()}": str(value) for name, value in names.items()}}
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", "serve", "--home", str(home)]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, env=environment, stdout=subprocess.PIPE, text=True, cwd=home.parent
    )
    addresses = {}
    for line in process.stdout or ():
        if line.strip() == "ready":
            break
        name, _, address = line.strip().rpartition(" ")
        addresses[name.strip()] = address
    try:
        yield Served(process, home, addresses["OTLP/gRPC"], addresses["OTLP/HTTP"], addresses["page"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=90)
        if process.stdout is not None:
            process.stdout.close()


def tree(pid: int) -> list[int]:
    """A process and all that it started and that still run."""
    found = [pid]
    for one in found:
        try:
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
    return found


def cpu(pid: int) -> float:
    """CPU seconds of a process and of those of its children that have ended; 0 when it has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def rss(pid: int) -> int:
    """Resident bytes of a process; 0 when it has just ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


class Client(threading.local):
    """A kept-alive connection per thread."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
        self._headers = {"content-type": PROTOBUF, **(headers or {})}

    def post(self, body: bytes) -> float:
        """Seconds to the acknowledgement.

        Raises:
            Refused: the answer was another.
        """
        begun = time.perf_counter()
        self.connection.request("POST", "/v1/traces", body, self._headers)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise Refused(f"answered {answer.status}: {said[:200]!r}")
        return time.perf_counter() - begun

    def close(self) -> None:
        """End this thread's connection."""
        self.connection.close()


@dataclass(frozen=True, slots=True)
class Row:
    """One stored version of a run."""

    run_id: str
    state: str
    spans: int
    flagged: bool


class Stored:
    """The versions in a service's store, in the order in which they were stored. It asks for no more than it needs, by SQL:
    reading whole records a hundred times a second would cost the machine more than judging them."""

    def __init__(self, service: Served) -> None:
        path = (service.home / "store.sqlite3").absolute().as_uri()
        self._database = sqlite3.connect(f"{path}?mode=ro", uri=True, check_same_thread=False)
        self._newest = 0
        self.spans: dict[str, int] = {}
        """Of every run that was seen, as of its newest version."""

    def look(self) -> Sequence[Row]:
        """What was stored since the last look."""
        sql = "SELECT id, run_id, state, spans, flagged FROM runs WHERE id > ? ORDER BY id"
        with closing(self._database.execute(sql, (self._newest,))) as rows:
            found = rows.fetchall()
        if found:
            self._newest = found[-1][0]
        seen = [Row(run_id, state, spans, bool(flagged)) for _, run_id, state, spans, flagged in found]
        self.spans.update((row.run_id, row.spans) for row in seen)
        return seen

    def wait(self, runs: int, *, seconds: float = 300) -> None:
        """Until so many runs have been seen.

        Raises:
            TimeoutError: they were not.
        """
        deadline = time.monotonic() + seconds
        while len(self.spans) < runs:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(self.spans)} of {runs} runs were stored in {seconds:g} s")
            time.sleep(0.05)
            self.look()

    def close(self) -> None:
        """Close it."""
        self._database.close()


def quantile(values: Sequence[float], percent: int) -> float:
    """Of any number of values but none."""
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else values[0]

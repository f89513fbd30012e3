"""The part of ``ingest.py`` beside Phoenix and MLflow's tracking server, each with SQLite, on the same bodies in one run.

Each round the three are sent the same requests, one server after the other: all of them to redfirst, the first few to the
others, which take a hundred times as long. CPU is of the whole process tree, until every span is in the server's database.
It is no race on equal terms: Phoenix and MLflow fill columns that people search spans by, and judge nothing; redfirst judges
every run, and syncs to the medium before it answers. The environments are made by ``deploy/dev/frameworks.sh FOLDER``, which
``REDFIRST_DEV_ENVS`` then names.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ingest_runs import RUNS_A_REQUEST, SPANS, request, templates
from ingest_service import Client, Served, Stored, cpu, served, tree

SETTLE = 0.5
STORED_WITHIN = 300.0
SPANS_A_REQUEST = RUNS_A_REQUEST * SPANS
BODIES = 100
"""Of one round."""


@dataclass
class Receiver:
    """A server with its database."""

    pid: int
    client: Client
    bodies: int
    """How many of a round's it is sent."""
    count: Callable[[], int]
    """How many spans its database holds."""
    sent: int = 0
    cpu_us: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)

    def take(self, bodies: Sequence[bytes]) -> None:
        """One round of it: microseconds of CPU per span, and spans per second, until all are stored."""
        before, begun = self._cpu(), time.perf_counter()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.client.post, bodies[: self.bodies]))
        count = len(bodies[: self.bodies]) * SPANS_A_REQUEST
        self.sent += count
        while (held := self.count()) < self.sent:
            if time.perf_counter() - begun > STORED_WITHIN:
                raise TimeoutError(f"{held} of {self.sent} spans were stored in {STORED_WITHIN:g} s")
            time.sleep(0.05)
        if held > self.sent:
            raise RuntimeError(f"{held} spans were stored of {self.sent} that were sent")
        wall = time.perf_counter() - begun
        self.cpu_us.append((self._cpu() - before) / count * 1e6)
        self.per_second.append(count / wall)

    def _cpu(self) -> float:
        return sum(map(cpu, tree(self.pid)))


def beside_peers(folder: Path, rounds: int) -> list[dict[str, float]]:
    """CPU per span of each, in alternating rounds; nothing where none of the others is installed."""
    sys.path.append(str(Path(__file__).parents[1]))  # their servers are started as the tests start them
    from tests.frameworks.conftest import DEV

    peers = {"phoenix": DEV / "phoenix/bin/phoenix", "mlflow": DEV / "mlflow/bin/python"}
    found = {name: program for name, program in peers.items() if program.exists()}
    for name in peers.keys() - found.keys():
        print(f"{name} is not in {DEV} (deploy/dev/frameworks.sh {DEV}): not compared")
    if not found:
        return []
    parts = templates()
    with ExitStack() as stack:
        ours = stack.enter_context(served(folder / "peers", settle_seconds=SETTLE))
        receivers = {"redfirst": stack.enter_context(_redfirst(ours))}
        for name, program in found.items():
            place = folder / name
            place.mkdir()
            receivers[name] = stack.enter_context(_STARTS[name](program, place))
        for _ in range(rounds + 1):
            bodies = [request(parts, RUNS_A_REQUEST)[1] for _ in range(BODIES)]
            for receiver in receivers.values():
                receiver.take(bodies)
    for receiver in receivers.values():  # the first round warms all of them up
        del receiver.cpu_us[0], receiver.per_second[0]
    return [_figures(receivers, rounds)]


def _figures(receivers: Mapping[str, Receiver], rounds: int) -> dict[str, float]:
    figures: dict[str, float] = {"rounds": rounds}
    own = receivers["redfirst"].cpu_us
    for name, receiver in receivers.items():
        figures |= {
            f"{name}_spans_a_round": receiver.bodies * SPANS_A_REQUEST,
            f"{name}_cpu_us_per_span": statistics.median(receiver.cpu_us),
            f"{name}_spans_per_second": statistics.median(receiver.per_second),
        }
        if receiver is receivers["redfirst"]:
            continue
        ratios = [theirs / ours for theirs, ours in zip(receiver.cpu_us, own, strict=True)]
        figures |= {
            f"{name}_ratio": statistics.median(ratios),
            f"{name}_ratio_min": min(ratios),
            f"{name}_ratio_max": max(ratios),
        }
    return figures


@contextmanager
def _redfirst(service: Served) -> Iterator[Receiver]:
    stored = Stored(service)

    def count() -> int:
        stored.look()
        return sum(stored.spans.values())

    yield Receiver(service.process.pid, Client(service.http), BODIES, count)
    stored.close()


@contextmanager
def _phoenix(program: Path, folder: Path) -> Iterator[Receiver]:
    from tests.frameworks.phoenix import Phoenix

    server = Phoenix(program, folder, folder / "notes")
    try:
        server.start(within=300)
        yield Receiver(server.pid, Client(server.url), 4, _rows(folder / "phoenix.db"))
    finally:
        server.end()


@contextmanager
def _mlflow(program: Path, folder: Path) -> Iterator[Receiver]:
    from tests.frameworks.mlflow_server import Mlflow

    server = Mlflow(program, folder, folder / "notes")
    try:
        server.start(within=300)
        client = Client(server.url, {"x-mlflow-experiment-id": "0"})
        yield Receiver(server.pid, client, 10, _rows(folder / "mlflow.db"))
    finally:
        server.end()


_STARTS = {"phoenix": _phoenix, "mlflow": _mlflow}


def _rows(database: Path) -> Callable[[], int]:
    """Counts the spans in a server's database: asking its API for them would be work of its own."""

    def count() -> int:
        connection = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
        try:
            return int(connection.execute("SELECT count(*) FROM spans").fetchone()[0])
        finally:
            connection.close()

    return count

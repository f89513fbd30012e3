"""Whether the service judges recorded bodies as ``redfirst score`` does: ``python benchmarks/captures.py FOLDER``.

FOLDER holds ``NAME[.NNN][.logs].otlp.pb`` bodies. Those of one name are one capture. Each capture is sent to a fresh home
span by span in shuffled order, some spans twice, with a stop at a random place, while the clock is driven; what is in the
store in the end is held against what ``score`` says of the files. ``--served N`` sends so many captures through a real
``redfirst serve`` too. Prints one line for each that differs, and a summary; exit 1 when there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from redfirst.collector_processor.journal.format import Record, Signal
from redfirst.collector_processor.journal.writing import Journal
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.receiving.request import check
from redfirst.collector_processor.recorded.files import read_files
from redfirst.collector_processor.scoring.assembly import AssemblyLimits
from redfirst.collector_processor.scoring.inline import InlineScoring
from redfirst.collector_processor.scoring.pipeline import Pipeline
from redfirst.collector_processor.scoring.slices import cut, joined
from redfirst.collector_processor.storing.sqlite import SqliteStore
from redfirst.collector_processor.storing.sqlite_reading import SqliteReader
from redfirst.collector_processor.storing.store import Query, RunState
from redfirst.evaluators.check import default_checks, judge
from redfirst.evaluators.reading import read
from redfirst.evaluators.record import run_record

_BODY = re.compile(r"(?P<name>.+?)(?:\.(?P<number>\d+))?(?P<logs>\.logs)?\.otlp\.pb")
_SECOND = 10**9
_SERVED = {"SETTLE": "0.5", "IDLE": "2"}

Records = dict[str, Any]
"""By run id, what is said of it."""


@dataclass
class Driven:
    """A journal, a store and a pipeline on a folder, by a clock that only ``wait`` moves. ``restart`` is a new process
    as far as the pipeline can tell; what was not stored is lost with the old one."""

    folder: Path
    limits: AssemblyLimits = field(default_factory=AssemblyLimits)
    now: float = 1_000.0
    wall_set: float = 0.0
    """Seconds by which somebody set the wall clock."""

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self._begin()

    def _begin(self) -> None:
        self.store = SqliteStore(self.folder / "store.sqlite3")
        self.pipeline = Pipeline(
            lambda: self.journal,
            self.store,
            limits=self.limits,
            metrics=self.metrics,
            destinations=("alerts",),
            clock=lambda: self.now,
            wall_ns=self.wall_ns,
        )
        self.journal = Journal(self.folder / "journal", on_durable=self.pipeline.durable)
        self.scoring = InlineScoring(self.journal.folder, default_checks(), self.pipeline.answered)
        self.pipeline.begin(self.scoring)

    def wall_ns(self) -> int:
        """The wall clock, which goes with the other one until it is set."""
        return 1_790_000_000 * _SECOND + int((self.now + self.wall_set) * _SECOND)

    def send(self, body: bytes, signal_: Signal) -> None:
        """One request, as the door takes it in."""
        checked = check(body, signal_)
        record = Record(signal=signal_, tenant="default", arrival_ns=self.wall_ns(), body=checked.body)
        self.journal.append(record, checked.heads).result(30)
        self.pipeline.step()

    def wait(self, seconds: float, steps: int = 12) -> None:
        """Let time pass, and what is due then be stored."""
        for _ in range(steps):
            self.now += seconds / steps
            self.pipeline.step()
        for _ in range(4):
            self.now += 0.025
            self.pipeline.step()

    def restart(self) -> None:
        """End without draining, and begin again on the same folder."""
        self.end()
        self._begin()

    def end(self) -> None:
        """Close the files."""
        self.journal.close()
        self.scoring.close()
        self.store.close()

    def records(self) -> Records:
        """What the store says now."""
        found = self.store.runs(Query(states=(RunState.SCORED, RunState.UNSCORED), records=True))
        return {run.run_id: said(run.record) for run in found}


def said(record: Mapping[str, Any] | None) -> Any:
    """A record without what prices add to it."""
    return None if record is None else {**json.loads(json.dumps(record)), "metrics": {}}


def expected(paths: Sequence[Path]) -> Records:
    """What ``redfirst score`` says of the files."""
    stream = read_files([str(path) for path in paths])
    runs = read(stream.spans, stream.logs).runs
    return {run.run_id: said(run_record(run, judge(run, default_checks()))) for run in runs}


def captures(folder: Path) -> dict[str, list[Path]]:
    """The bodies of each capture, in order of arrival."""
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in folder.iterdir():
        match = _BODY.fullmatch(path.name)
        if match is not None:
            found.setdefault(match["name"], []).append((int(match["number"] or 0), path))
    return {name: [path for _, path in sorted(bodies)] for name, bodies in sorted(found.items())}


def pieces(paths: Sequence[Path]) -> Iterator[tuple[Signal, bytes]]:
    """Every span and log record as a request of its own; those without a trace come with none."""
    for path in paths:
        kind: Signal = "logs" if ".logs." in path.name else "traces"
        for slices in cut(path.read_bytes(), kind).values():
            for piece in slices:
                yield kind, joined([piece])


def shuffled(paths: Sequence[Path], chance: random.Random) -> list[tuple[Signal, bytes]]:
    """Span by span in any order, some twice."""
    found = list(pieces(paths))
    found += [piece for piece in found if chance.random() < 0.2]
    chance.shuffle(found)
    return found


def driven(paths: Sequence[Path], folder: Path, chance: random.Random) -> Records:
    """What a pipeline stores of them, with a stop at a random place."""
    running = Driven(folder)
    sent = shuffled(paths, chance)
    stop = chance.randrange(len(sent))
    for number, (kind, body) in enumerate(sent):
        if number == stop:
            running.restart()
        running.send(body, kind)
        running.now += chance.random() * 2
    running.wait(600, steps=60)
    found = running.records()
    running.end()
    return found


def served(paths: Sequence[Path], folder: Path, chance: random.Random, wanted: Records) -> Records:
    """What a real service stores of them; it is given half a minute."""
    ports = {f"REDFIRST_{name}_PORT": "0" for name in ("GRPC", "HTTP", "PAGE")}
    quick = {f"REDFIRST_{name}_SECONDS": value for name, value in _SERVED.items()}
    command = [sys.executable, "-m", "redfirst.collector_processor.cli", "serve", "--home", str(folder)]
    environment = {**os.environ, **ports, **quick}
    with subprocess.Popen(  # noqa: S603 - our own module
        command, env=environment, stdout=subprocess.PIPE, text=True, cwd=folder.parent
    ) as service:
        url = ""
        for line in service.stdout or ():
            url = line.split()[-1] if line.startswith("OTLP/HTTP") else url
            if line.strip() == "ready":
                break
        for kind, body in shuffled(paths, chance):
            headers = {"content-type": "application/x-protobuf"}
            request = urllib.request.Request(f"{url}/v1/{kind}", data=body, headers=headers)  # noqa: S310 - loopback
            urllib.request.urlopen(request, timeout=30).close()  # noqa: S310
        found: Records = {}
        deadline = time.monotonic() + 30
        while found != wanted and time.monotonic() < deadline:
            time.sleep(0.25)
            reader = SqliteReader(folder / "store.sqlite3")
            found = {run.run_id: said(run.record) for run in reader.runs(Query(records=True))}
            reader.close()
        service.send_signal(signal.SIGTERM)
    return found


def differences(wanted: Records, found: Records) -> list[str]:
    """What the two do not agree on, a line each."""
    lines = [f"{run_id}: not there" for run_id in wanted.keys() - found.keys()]
    lines += [f"{run_id}: there, and no run of the files" for run_id in found.keys() - wanted.keys()]
    for run_id in wanted.keys() & found.keys():
        one, other = wanted[run_id], found[run_id] or {}
        lines += [f"{run_id}: {key}" for key in one if one[key] != other.get(key)]
    return lines


def main() -> int:
    """Run them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="captures whose name contains this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--served", type=int, default=0, metavar="N", help="also N captures through redfirst serve"
    )
    options = parser.parse_args()
    chance = random.Random(options.seed)  # noqa: S311 - an order, no secret
    found = {name: paths for name, paths in captures(options.folder).items() if options.only in name}
    through = set(chance.sample(sorted(found), min(options.served, len(found))))
    bad = runs = 0
    for name, paths in found.items():
        wanted = expected(paths)
        runs += len(wanted)
        with tempfile.TemporaryDirectory() as folder:
            ways = {"driven": driven(paths, Path(folder) / "driven", chance)}
            if name in through:
                ways["served"] = served(paths, Path(folder) / "served", chance, wanted)
        for way, stored in ways.items():
            lines = differences(wanted, stored)
            bad += bool(lines)
            for line in lines:
                print(f"{name} ({way}): {line}")
    print(
        f"{len(found)} captures, {runs} runs, {len(through)} of them through serve too, seed {options.seed}: {bad} differ"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

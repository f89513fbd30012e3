"""The services of ``tests/service`` on a disk that can fail, and what a power loss leaves of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from redfirst.collector_processor.journal.format import START
from redfirst.collector_processor.journal.reading import JournalFiles
from redfirst.evaluators.otlp import decode
from tests.service.conftest import Served, Tools, served, shared, stopped, tools

__all__ = ["served", "shared", "stopped", "tools"]  # fixtures

SOURCE = Path(__file__).with_name("disk.c")
SpanName = tuple[str, str]
"""Trace id and span id, in hex."""


@dataclass(frozen=True)
class Disk:
    """A disk below one service, which keeps what was synced. ``environment`` starts the service on it."""

    shim: Path
    log: Path

    def environment(self, **more: str) -> dict[str, str]:
        return {"LD_PRELOAD": str(self.shim), "DISK_LOG": str(self.log), **more}

    def journal_syncs(self) -> int:
        """How often something of the journal's was synced."""
        return sum(line.startswith("# ") for line in self.log.read_text().splitlines())

    def lose_power(self, home: Path) -> None:
        """Leave of the home what was synced: files whose name was, as long as they were; nothing below a folder whose
        name was not."""
        lengths: dict[Path, int] = {}
        named: set[Path] = set()
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            length, _, path = line.partition(" ")
            if length == "+":
                named.add(Path(path))
            elif length != "#":
                lengths[Path(path)] = int(length)
        for path in sorted(home.parent.rglob("*"), key=lambda one: len(one.parts)):
            if home not in (path, *path.parents) or not path.exists():
                continue
            if path not in named or (path.is_file() and path not in lengths):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            elif path.is_file() and path.stat().st_size > lengths[path]:
                with path.open("r+b") as file:
                    file.truncate(lengths[path])


@pytest.fixture(scope="session")
def shim(tools: Tools, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    tools.needs("a C compiler (cc; for instance the package gcc)", compiler is not None)
    made = tmp_path_factory.mktemp("shim") / "disk.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl"], check=True)
    return made


@pytest.fixture
def disk(shim: Path, tmp_path: Path) -> Iterator[Disk]:
    return Disk(shim, tmp_path / "synced.log")


def journalled(home: Path) -> set[SpanName]:
    """Every span that the journal holds."""
    files = JournalFiles(home / "journal")
    found = {
        (span.trace_id, span.span_id)
        for placed in files.scan(START)
        if placed.record.signal == "traces"
        for span in decode(placed.record.body, content="protobuf", signal="traces").spans
    }
    files.close()
    return found


def names_of(run: list) -> set[SpanName]:
    return {(f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}") for span in run}


def load(served: Served, tools: Tools, *, until) -> set[SpanName]:
    """Send over both protocols until told; what was acknowledged. The service is killed, not stopped."""
    senders = [tools.Sender(tools.exporter_over(protocol, served)) for protocol in ("http", "grpc")]
    for sender in senders:
        sender.start()
    until()
    served.kill()
    for sender in senders:
        sender.end()
    acknowledged = set().union(*(sender.acknowledged for sender in senders))
    assert acknowledged, "nothing was acknowledged: the round proves nothing"
    return acknowledged

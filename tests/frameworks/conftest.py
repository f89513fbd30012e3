"""Real programs in environments of their own, each pointed at a real ``redfirst serve`` on a fresh home."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest

from .model_server import ModelServer

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEV = Path(os.environ.get("REDFIRST_DEV_ENVS") or ROOT / ".dev").absolute()
LIMIT_SECONDS = 240
"""For one test with the fixtures that it starts."""
REDFIRST = (sys.executable, "-m", "redfirst.collector_processor.cli")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End a test that hangs, wherever it does."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"{item.nodeid}: not done within {LIMIT_SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def environment_of(name: str, program: str) -> Path:
    """A program of one of the environments that ``deploy/dev/frameworks.sh`` makes."""
    found = DEV / name / program
    if not found.exists():
        without(f"{found} is not there; run: deploy/dev/frameworks.sh {DEV}")
    return found


def beside(folder: Path, *packages: str) -> Path:
    """A folder for the path of an environment without redfirst, in which it finds these packages of ours."""
    site = folder / "site"
    for name in packages:
        place = site / "redfirst" / Path(*name.split("."))
        place.parent.mkdir(parents=True, exist_ok=True)
        (here,) = importlib.import_module(f"redfirst.{name}").__path__  # of the wheel as of the sources
        place.symlink_to(here)
    return site


def without(told: str) -> NoReturn:
    """Skip; where services are required, fail."""
    if os.environ.get("REDFIRST_REQUIRE_SERVICES") == "1":
        pytest.fail(told)
    pytest.skip(told)


def surroundings(notes: Path, **more: str) -> dict[str, str]:
    """The variables of a program under test: none of the caller's settings, no way beyond loopback, and what it
    tries of that in ``notes``."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        "PYTHONPATH": str(HERE / "loopback"),
        "BEYOND_LOOPBACK": str(notes),
        "NO_PROXY": "*",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "LANGSMITH_TRACING": "false",
        "LANGCHAIN_TRACING_V2": "false",
        **more,
    }


@dataclass
class Started:
    """A process in a group of its own, which ends as a whole."""

    process: subprocess.Popen[str]

    @classmethod
    def of(
        cls,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        quiet: bool = False,
    ) -> Started:
        """Start it; what it says on standard error goes to the log, and on standard output, too, when ``quiet``."""
        with log.open("w", encoding="utf-8") as said:
            process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdout=said if quiet else subprocess.PIPE,
                stderr=said,
                text=True,
                start_new_session=True,
            )
        return cls(process)

    def end(self) -> int:
        """Ask the group to end, and see that nothing of it is left."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.returncode


@dataclass
class Served:
    """A running service and the project folder it was started in."""

    folder: Path
    settings: Mapping[str, str]
    addresses: dict[str, str] = field(default_factory=dict)
    started: Started | None = None

    def start(self) -> Served:
        """Start it and wait until it says that it is ready."""
        log = self.folder / "serve.log"
        env = {**os.environ, **self.settings}
        self.started = Started.of([*REDFIRST, "serve"], cwd=self.folder, env=env, log=log)
        assert self.started.process.stdout is not None
        for line in self.started.process.stdout:
            word, _, address = line.strip().rpartition(" ")
            if line.strip() == "ready":
                return self
            self.addresses[word.strip()] = address
        pytest.fail(f"serve ended: {log.read_text()}")

    def end(self) -> tuple[int | None, str]:
        """Stop it as a user does; its exit code and what it complained of."""
        code = self.started.end() if self.started else None
        return code, (self.folder / "serve.log").read_text(encoding="utf-8")

    @property
    def http(self) -> str:
        """Base address of OTLP/HTTP."""
        return self.addresses["OTLP/HTTP"]

    @property
    def grpc(self) -> str:
        """Host and port of OTLP/gRPC."""
        return self.addresses["OTLP/gRPC"]

    def exporter(self, protocol: str) -> dict[str, str]:
        """The standard variables that point an exporter here."""
        endpoint = f"http://{self.grpc}" if protocol == "grpc" else self.http
        return {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}

    def ask(self, *arguments: str) -> list[dict[str, Any]]:
        """What ``redfirst`` prints in this project as JSON, line by line."""
        return [json.loads(line) for line in self.told(*arguments).splitlines()]

    def told(self, *arguments: str) -> str:
        """What ``redfirst`` prints in this project."""
        done = subprocess.run(
            [*REDFIRST, *arguments],
            cwd=self.folder,
            env={**os.environ, **self.settings},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def judged(self, count: int) -> list[dict[str, Any]]:
        """The rows of ``traces --json`` once there are so many; a trace that is still open is waited for."""
        deadline = time.monotonic() + 30
        while True:
            rows = self.ask("traces", "--json", "--all")
            if len(rows) >= count and all(row["state"] != "open" for row in rows):
                return rows
            assert time.monotonic() < deadline, (rows, (self.folder / "serve.log").read_text())
            time.sleep(0.1)

    def shown(self, trace_id: str) -> dict[str, Any]:
        """What ``show --json`` reads from the store."""
        (record,) = self.ask("show", trace_id, "--json")
        return record


@dataclass(frozen=True)
class Programs:
    """Runs programs under test and remembers what they asked for beyond loopback."""

    notes: Path

    def run(self, command: Sequence[str | Path], **variables: str) -> str:
        """What it prints, once it has ended well."""
        done = subprocess.run(
            command,
            env=surroundings(self.notes, **variables),
            cwd=self.notes.parent,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts services, each in a project folder of its own with the rules file; in the end none has complained."""
    if any(importlib.util.find_spec(name) is None for name in ("uvicorn", "httptools", "grpc")):
        without("serve needs more packages; run: pip install 'redfirst[server]'")
    running: list[Served] = []

    def start(**settings: str) -> Served:
        folder = tmp_path_factory.mktemp("project")
        shutil.copy(HERE / "rules.yaml", folder)
        (folder / "redfirst.yaml").write_text("rules: rules.yaml\n", encoding="utf-8")
        served = Served(
            folder,
            {
                "REDFIRST_HOME": str(folder / "home"),
                "REDFIRST_GRPC_PORT": "0",
                "REDFIRST_HTTP_PORT": "0",
                "REDFIRST_PAGE_PORT": "0",
                "REDFIRST_SETTLE_SECONDS": "0.3",
                "REDFIRST_IDLE_SECONDS": "3",
                **settings,
            },
        )
        running.append(served)
        return served.start()

    yield start
    assert [served.end() for served in running] == [(0, "")] * len(running)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """The scripted model."""
    server = ModelServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """Runs programs, none of which may have looked beyond loopback in the end."""
    made = Programs(tmp_path_factory.mktemp("programs") / "beyond-loopback")
    yield made
    assert not made.notes.exists(), made.notes.read_text()

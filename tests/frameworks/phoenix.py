"""Phoenix in a process of its own: started, read back through its API, ended."""

from __future__ import annotations

import contextlib
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from .conftest import Started, surroundings

ROUNDING_NS = 1_000
"""It keeps times as floating-point seconds, rounded to microseconds."""


class Phoenix:
    """One server on free ports, with its database in a folder. Its gRPC port cannot be bound to loopback."""

    def __init__(self, program: Path, folder: Path, notes: Path) -> None:
        port, grpc_port = free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        self._program = program
        self._folder = folder
        self._log = folder / "phoenix.log"
        self._started: Started | None = None
        self._environment = surroundings(
            notes,
            HOME=str(folder),
            PHOENIX_HOST="127.0.0.1",
            PHOENIX_PORT=str(port),
            PHOENIX_GRPC_PORT=str(grpc_port),
            PHOENIX_WORKING_DIR=str(folder),
            PHOENIX_TELEMETRY_ENABLED="false",
            PHOENIX_ALLOW_EXTERNAL_RESOURCES="false",
            PHOENIX_DISABLE_AGENT_ASSISTANT="true",
        )

    def start(self, *, within: float = 150) -> None:
        """Start it and wait until it is ready."""
        command = [self._program, "serve"]
        self._started = Started.of(
            command, cwd=self._folder, env=self._environment, log=self._log, quiet=True
        )
        deadline = time.monotonic() + within
        while time.monotonic() < deadline and self._started.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=5):
                    return
            except OSError:
                time.sleep(0.3)
        raise AssertionError(f"Phoenix is not ready: {self._log.read_text()[-2000:]}")

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        assert self._started is not None
        return self._started.process.pid

    def end(self) -> None:
        """Stop it."""
        if self._started is not None:
            self._started.end()

    def spans(self, count: int, *, within: float = 30) -> list[dict[str, Any]]:
        """Every span that it holds, once there are so many, or when the time is over."""
        deadline = time.monotonic() + within
        held: list[dict[str, Any]] = []
        while len(held) < count and time.monotonic() < deadline:
            time.sleep(0.2)
            held = self._held()
        return held

    def _held(self) -> list[dict[str, Any]]:
        try:
            with urllib.request.urlopen(
                f"{self.url}/v1/projects/default/spans?limit=1000", timeout=10
            ) as answer:
                return list(json.load(answer)["data"])
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code == 404:  # it makes the project with the first span
                    return []
                raise


def as_kept(attributes: Mapping[str, Any]) -> Any:
    """Attributes as Phoenix keeps them: JSON texts taken apart, nulls left out, numbered keys as lists without gaps."""
    tree: dict[str, Any] = {}
    for path, value in _leaves(attributes):
        *above, last = path
        place = tree
        for step in above:
            place = place.setdefault(step, {})
        place[last] = value
    return _as_lists(tree)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, str) and value[:1] in "{[":
        with contextlib.suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, Mapping | list):
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, item in items:
            yield from _leaves(item, (*path, *str(key).split(".")))
    elif value is not None:
        yield path, value


def _as_lists(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if all(key.isdigit() for key in value):
        return [_as_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _as_lists(item) for key, item in value.items()}


def nanoseconds(moment: str) -> int:
    """A time as its API writes it, since 1970."""
    at = datetime.fromisoformat(moment)
    return int(at.timestamp()) * 10**9 + at.microsecond * 1000


def free_ports(count: int) -> list[int]:
    """So many ports of loopback that nothing listens on."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports

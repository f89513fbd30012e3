"""The folder a service lives in: its lock, and where its files lie."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redfirst.collector_processor.disk import make_folder
from redfirst.evaluators.errors import RedfirstError

Json = Any


class HomeTaken(RedfirstError):
    """Another ``serve`` uses the home."""


@dataclass(frozen=True, slots=True)
class Home:
    """Paths of a home."""

    folder: Path

    @property
    def journal(self) -> Path:
        """Folder of the journal's segments."""
        return self.folder / "journal"

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.folder / "store.sqlite3"

    @property
    def lock(self) -> Path:
        """Held by the service; says who it is and where it listens."""
        return self.folder / "serve.lock"

    def service(self) -> Mapping[str, Json] | None:
        """What the running service says of itself (``pid``, ``grpc``, ``http``, ``page``, and what ``OwnApi`` needs); None
        when none runs."""
        import fcntl

        try:
            file = os.open(self.lock, os.O_RDONLY)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return _read(self.lock)
        finally:
            os.close(file)
        return None


@dataclass(frozen=True, slots=True)
class OwnApi:
    """The running service's API, as commands on its machine reach it, whatever senders need."""

    url: str
    token: str

    @classmethod
    def of(cls, said: Mapping[str, Json] | None) -> OwnApi | None:
        """What the service said of itself; None when none runs, or it does not listen yet."""
        url = (said or {}).get("local") or (said or {}).get("page")
        return cls(str(url), str((said or {}).get("token", ""))) if url else None

    @property
    def headers(self) -> dict[str, str]:
        """What every request needs."""
        return {"authorization": f"Bearer {self.token}"} if self.token else {}


class HomeUnusable(RedfirstError):
    """A home that cannot be written to."""


class HomeLock:
    """Held as long as the service lives; the kernel releases it whatever the service dies of."""

    def __init__(self, home: Home) -> None:
        """Take the home.

        Raises:
            HomeTaken: another process has it.
            HomeUnusable: it cannot be made, or not be written to.
        """
        import fcntl

        self._home = home
        try:
            make_folder(home.folder, mode=0o700)  # it holds what users said
            self._file = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise HomeUnusable(
                f"Home {home.folder} cannot be written to ({problem.strerror}): make it writable, or give another --home."
            ) from problem
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            os.close(self._file)
            pid = _read(home.lock).get("pid", "unknown")
            raise HomeTaken(
                f"Home {home.folder} is in use by another redfirst serve (pid {pid}): end it, or give another --home."
            ) from problem
        self.say({})

    def say(self, more: Mapping[str, Json]) -> None:
        """Write who holds the lock."""
        text = json.dumps({"pid": os.getpid(), **more}).encode() + b"\n"
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, text, 0)

    def release(self) -> None:
        """Give the home back."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def _read(path: Path) -> Mapping[str, Json]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}

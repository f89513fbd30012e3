"""What people do not want to hear of for a while: a file in the home that commands write and a running service reads."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from redfirst.collector_processor.alerting.policy import Stream
from redfirst.collector_processor.disk import sync_folder
from redfirst.evaluators.errors import ConfigurationError, RedfirstError

Json = Any
FILE = "silences.json"
SCHEMA = "redfirst.silences/1"
_UNITS_NS = {"m": 60, "h": 3600, "d": 86_400}
_LONGEST_DAYS = 90


class SilencesUnreadable(RedfirstError):
    """The file in the home is none of ours, or damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Alerts that match are not told until it ends. ``None`` matches whatever there is."""

    id: str
    until_ns: int
    created_ns: int
    tenant: str | None = None
    agent: str | None = None
    check: str | None = None
    about: str | None = None
    task: str | None = None
    alert: str | None = None
    """The alert that was acknowledged with it."""
    note: str = ""

    def covers(self, stream: Stream, now_ns: int) -> bool:
        """Whether alerts of this stream are not told at this time."""
        asked = (self.tenant, self.agent, self.check, self.about, self.task)
        return now_ns < self.until_ns and all(
            want in (None, have) for want, have in zip(asked, stream, strict=True)
        )


def silence_id(created_ns: int, what: str) -> str:
    """A short name for a new silence."""
    return blake2b(f"{created_ns}\0{what}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def span_ns(text: str) -> int:
    """A length of time such as ``90m``, ``2h`` or ``1d``, in nanoseconds.

    Raises:
        ConfigurationError: it is none, or longer than 90 days: a silence that nobody remembers hides what it should not.
    """
    found = re.fullmatch(r"([1-9][0-9]{0,5})([mhd])", text)
    seconds = int(found[1]) * _UNITS_NS[found[2]] if found else 0
    if not 0 < seconds <= _LONGEST_DAYS * 86_400:
        raise ConfigurationError(f"--for {text}: give it as 90m, 2h or 1d, {_LONGEST_DAYS}d at most.")
    return seconds * 1_000_000_000


def read_silences(folder: Path) -> tuple[Silence, ...]:
    """Those of a home, ended ones too.

    Raises:
        SilencesUnreadable: the file cannot be read.
    """
    path = folder / FILE
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        return tuple(Silence(**entry) for entry in value[SCHEMA])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise SilencesUnreadable(
            f"{path}: no silences can be read from it; remove it and say them again."
        ) from problem


def write_silences(folder: Path, silences: Sequence[Silence], *, now_ns: int) -> None:
    """Keep those that have not ended; durable on return."""
    kept = [asdict(one) for one in silences if one.until_ns > now_ns]
    aside = folder / f"{FILE}.new"
    aside.write_text(json.dumps({SCHEMA: kept}, indent=1) + "\n", encoding="utf-8")
    aside.replace(folder / FILE)
    sync_folder(folder)


def firing_alerts(folder: Path) -> list[Mapping[str, Json]]:
    """The messages of the alerts that fire, as the service of this home keeps them; empty before the first."""
    from redfirst.collector_processor.alerting.file import FILE as ALERTS

    try:
        found: list[Mapping[str, Json]] = json.loads((folder / ALERTS).read_text(encoding="utf-8"))["firing"]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as problem:
        raise SilencesUnreadable(f"{folder / ALERTS}: no alerts can be read from it.") from problem
    return found


class Hushed:
    """What is silenced, read again when the file has changed. One that cannot be read silences nothing."""

    def __init__(self, folder: Path, *, trouble: Callable[[str], None]) -> None:
        self._folder = folder
        self._trouble = trouble
        self._seen: tuple[int, int] | None = None
        self._silences: tuple[Silence, ...] = ()

    def look(self) -> None:
        """Read the file if it is not the one that was read last."""
        try:
            state = (self._folder / FILE).stat()
            seen = (state.st_mtime_ns, state.st_ino)
        except FileNotFoundError:
            seen = None
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._silences = read_silences(self._folder)
        except SilencesUnreadable as problem:
            self._silences = ()
            self._trouble(str(problem))

    def covers(self, stream: Stream, now_ns: int) -> bool:
        """Whether one of them covers the stream."""
        return any(silence.covers(stream, now_ns) for silence in self._silences)

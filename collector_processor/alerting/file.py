"""What alerts remember between starts: where streams stood, what people were told, and what is still to be posted.

One JSON file in the home, replaced as a whole. The runs themselves are read from the store again.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from redfirst.collector_processor.alerting.course import Mark
from redfirst.collector_processor.alerting.detector import Status, Told
from redfirst.collector_processor.alerting.policy import Stream
from redfirst.collector_processor.disk import sync_folder
from redfirst.evaluators.errors import ConfigurationError

Json = Any
FILE = "alerts.json"
SCHEMA = "redfirst.alerts/2"
_MARK = TypeAdapter(Mark)
_OVER_NS = 3600 * 1_000_000_000
"""Longer than any Alertmanager is sent what is over."""
_GIVEN_UP = 50
"""How many notifications that reached nobody are kept to be looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message to one receiver."""

    id: str
    receiver: str
    body: Mapping[str, Json]
    created_ns: int
    attempts: int = 0
    next_ns: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """An alert that is over: the message that began it, and when it ended."""

    body: Mapping[str, Json]
    at_ns: int


_NOTICE, _OVER = TypeAdapter(Notice), TypeAdapter(Over)
_TEXT, _TEXT_OR_NONE = (str,), (str, type(None))
_SENT_AGAIN: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("alert", "tenant", "about", "text", "severity", "since"), _TEXT),
    **dict.fromkeys(("agent", "check", "freeze"), _TEXT_OR_NONE),
    **dict.fromkeys(("flagged", "judged"), (int,)),
    **dict.fromkeys(("causes", "failing_runs", "links"), (list,)),
    "interval": (list, type(None)),
}
"""What of a message is read when it is sent again: one without it would end the thread that sends it."""


class AlertFile:
    """The file and what it holds. Safe from any thread; every change is durable on return."""

    def __init__(self, path: Path) -> None:
        """Read the file; ``unreadable`` says where one was put aside that is damaged or of another version.

        Raises:
            ConfigurationError: the file is there, and cannot be read at all.
        """
        self.unreadable: Path | None = None
        self.bases: dict[Stream, Mark] = {}
        self.told: dict[Stream, Told] = {}
        self.firing: dict[str, Mapping[str, Json]] = {}
        """The alerts that fire, by their id: the message that was made when each began."""
        self.over: dict[str, Over] = {}
        """Alerts that ended not long ago, by their id."""
        self.given_up: list[Notice] = []
        self._queue: list[Notice] = []
        self._path = path
        self._lock = threading.Lock()
        try:
            body = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as problem:
            raise ConfigurationError(
                f"{path}: cannot be read ({problem.strerror}): make it readable, or move it away."
            ) from problem
        try:
            self._take(json.loads(body))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.unreadable = path.with_suffix(".unreadable")
            path.replace(self.unreadable)
            self.bases, self.told, self.given_up, self._queue = {}, {}, [], []
            self.firing, self.over = {}, {}

    @property
    def folder(self) -> Path:
        """The home it lies in."""
        return self._path.parent

    def keep(
        self,
        bases: Mapping[Stream, Mark],
        told: Mapping[Stream, Told],
        notices: Sequence[Notice] = (),
        *,
        bodies: Sequence[Mapping[str, Json]] = (),
        now_ns: int = 0,
    ) -> None:
        """Keep where streams stand together with what is to be posted because of it: ``notices`` to receivers that
        are told each change, ``bodies`` of the changes for those that are sent what fires again and again."""
        with self._lock:
            self.bases, self.told = dict(bases), dict(told)
            known = {(notice.id, notice.receiver) for notice in self._queue}
            self._queue += [one for one in notices if (one.id, one.receiver) not in known]
            self.over = {name: one for name, one in self.over.items() if one.at_ns > now_ns - _OVER_NS}
            for body in bodies:
                if body["status"] == Status.FIRING:
                    self.firing[body["alert"]] = body
                elif (begun := self.firing.pop(body["alert"], None)) is not None:
                    self.over[body["alert"]] = Over(body=begun, at_ns=now_ns)
            self._write()

    def first(self, receiver: str) -> Notice | None:
        """The oldest message to a receiver; the others wait for it, so that they arrive in order."""
        with self._lock:
            return next((notice for notice in self._queue if notice.receiver == receiver), None)

    def standing(self, since_ns: int) -> tuple[list[Mapping[str, Json]], list[Over]]:
        """What fires, and what ended after this time."""
        with self._lock:
            return list(self.firing.values()), [one for one in self.over.values() if one.at_ns > since_ns]

    def waiting(self) -> int:
        """Messages that have not arrived."""
        with self._lock:
            return len(self._queue)

    def done(self, notice: Notice) -> None:
        """It arrived."""
        with self._lock:
            self._queue = [one for one in self._queue if not _same(one, notice)]
            self._write()

    def later(self, notice: Notice, next_ns: int, error: str) -> None:
        """It did not; it is tried again."""
        with self._lock:
            tried = replace(notice, attempts=notice.attempts + 1, next_ns=next_ns, error=error)
            self._queue = [tried if _same(one, notice) else one for one in self._queue]
            self._write()

    def give_up(self, notice: Notice, error: str) -> None:
        """It will not."""
        with self._lock:
            self._queue = [one for one in self._queue if not _same(one, notice)]
            self.given_up = [*self.given_up, replace(notice, error=error)][-_GIVEN_UP:]
            self._write()

    def _write(self) -> None:
        streams = [
            {"stream": list(stream), "mark": asdict(self.bases[stream]) if stream in self.bases else None}
            | ({"told": list(self.told[stream])} if stream in self.told else {})
            for stream in sorted({*self.bases, *self.told})
        ]
        value = {
            "schema": SCHEMA,
            "streams": streams,
            "firing": list(self.firing.values()),
            "over": [asdict(one) for one in self.over.values()],
            "queue": [asdict(notice) for notice in self._queue],
            "given_up": [asdict(notice) for notice in self.given_up],
        }
        aside = self._path.with_suffix(".new")
        with aside.open("w", encoding="utf-8") as file:
            json.dump(value, file)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(self._path)
        sync_folder(self._path.parent)

    def _take(self, value: Json) -> None:
        if value["schema"] != SCHEMA:
            raise ValueError(value["schema"])
        for entry in value["streams"]:
            stream = Stream(*(str(part) for part in entry["stream"]))
            if entry["mark"] is not None:
                self.bases[stream] = _MARK.validate_python(entry["mark"])
            if "told" in entry:
                alert, since_ns, causes = entry["told"]
                self.told[stream] = Told(str(alert), int(since_ns), tuple(causes))
        self.firing = {body["alert"]: body for body in map(_whole, value["firing"])}
        over = map(_OVER.validate_python, value["over"])
        self.over = {_whole(one.body)["alert"]: one for one in over}
        self._queue = [_NOTICE.validate_python(entry) for entry in value["queue"]]
        self.given_up = [_NOTICE.validate_python(entry) for entry in value["given_up"]]


def _whole(body: Mapping[str, Json]) -> Mapping[str, Json]:
    wrong = [key for key, kinds in _SENT_AGAIN.items() if not isinstance(body[key], kinds)]
    texts = [text for key in ("causes", "failing_runs", "links") if key not in wrong for text in body[key]]
    bounds = [] if body["interval"] is None else body["interval"]
    if wrong or not all(isinstance(text, str) for text in texts) or len(bounds) not in (0, 2):
        raise ValueError(f"a message with a wrong {', '.join(wrong) or 'list'}")
    if not all(isinstance(bound, int | float) for bound in bounds):
        raise ValueError("an interval of no numbers")
    return body


def _same(one: Notice, other: Notice) -> bool:
    return (one.id, one.receiver) == (other.id, other.receiver)

"""What keeps a scorer's misbehaviour to itself: checks it died in are left out, and what it prints is bounded."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from typing import IO

from redfirst.collector_processor.metrics import Metrics

_DEATHS = 2
_REST = 600.0
_PASSED_ON = 64 << 10
"""Bytes of one child's messages."""


class Breaker:
    """Checks that the process died in, and until when they are not asked."""

    def __init__(self, *, deaths: int = _DEATHS, rest: float = _REST) -> None:
        """After so many ``deaths`` a check is left out for ``rest`` seconds."""
        self._most, self._rest = deaths, rest
        self._deaths: dict[str, int] = {}
        self._until: dict[str, tuple[float, str]] = {}

    def died_in(self, check: str, what: str, now: float) -> None:
        """The process died while this check was asked."""
        self._deaths[check] = self._deaths.get(check, 0) + 1
        if self._deaths[check] >= self._most:
            because = (
                f"the scorer died in it {self._deaths.pop(check)} times ({what}); it is asked again later"
            )
            self._until[check] = (now + self._rest, because)

    def left_out(self, now: float) -> Mapping[str, str]:
        """The checks that a new process does not ask, and why."""
        self._until = {check: one for check, one in self._until.items() if one[0] > now}
        return {check: because for check, (_, because) in self._until.items()}

    def closes(self, now: float) -> bool:
        """Whether a check that was left out is to be asked again, which a new process does."""
        return any(at <= now for at, _ in self._until.values())


def pass_on(stream: IO[bytes] | None, metrics: Metrics) -> None:
    """Have the beginning of what a child says passed on to our own messages, and the rest counted and dropped."""
    if stream is not None:
        threading.Thread(target=_drain, args=(stream, metrics), name="scorer output", daemon=True).start()


def _drain(stream: IO[bytes], metrics: Metrics) -> None:
    room = _PASSED_ON
    with stream:
        while data := os.read(stream.fileno(), 1 << 16):
            shown, room = data[:room], max(0, room - len(data))
            if shown:
                sys.stderr.write(shown.decode("utf-8", "replace"))
                sys.stderr.flush()
            if len(data) > len(shown):
                metrics.add("redfirst_scorer_output_dropped_bytes_total", len(data) - len(shown))

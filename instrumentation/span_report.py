"""The counts of a process under examination, kept in a file that outlives it however it ends."""

from __future__ import annotations

import atexit
import json
import os
import threading
import time
from dataclasses import asdict
from pathlib import Path

from redfirst.instrumentation.counting import SpanCounter
from redfirst.instrumentation.guard import guarded

_PAUSE = 0.05
"""Seconds between two writings of one process, but for the last ones."""


class SpanReport:
    """Writes ``PID-N.json`` in a folder now, and again whenever the counts have changed."""

    def __init__(self, counter: SpanCounter, folder: Path) -> None:
        self._counter, self._folder = counter, folder
        self._ending = False
        self._begin()
        counter.told = self.changed
        atexit.register(self._end)

    def changed(self) -> None:
        """The counts are others now."""
        if self._ending:
            self._write()
        elif self._pid != os.getpid():  # forked: threads stay behind, and locks as they were
            self._begin()
        else:
            self._due.set()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._due = threading.Event()
        self._lock = threading.Lock()  # one writing at a time
        self._write()
        threading.Thread(target=self._keep, name="redfirst-span-report", daemon=True).start()

    def _keep(self) -> None:
        while self._due.wait():
            time.sleep(_PAUSE)
            self._due.clear()
            self._write()

    def _end(self) -> None:
        self._ending = True  # the provider's own last flush may come after this
        self._write()

    def _write(self) -> None:
        with guarded("report the counts of spans"), self._lock:
            kept = self._folder / f"{os.getpid()}-{id(self._counter)}.json"
            draft = kept.with_suffix(".new")
            try:
                draft.write_text(json.dumps(asdict(self._counter.counts())), encoding="utf-8")
                draft.replace(kept)
            except FileNotFoundError:  # the folder is gone, and with it whoever asked
                self._counter.told = None

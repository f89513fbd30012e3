"""The store as the pipeline meets it: asked until it answers, its failures counted and told."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import TypeVar

from redfirst.collector_processor.metrics import Metrics

_T = TypeVar("_T")
_PAUSE = 0.25


class StoreAccess:
    """Whether the store works, for one thread; ``trouble`` may be read by any."""

    def __init__(self, metrics: Metrics) -> None:
        self.trouble: str | None = None
        """Why it cannot be used at the moment."""
        self._metrics = metrics

    def patiently(self, ask: Callable[[], _T]) -> _T:
        """Its answer, however long it takes to give one."""
        while True:
            try:
                answer = ask()
            except sqlite3.Error as problem:
                self.failed("read", problem)
                time.sleep(_PAUSE)
            else:
                self.worked()
                return answer

    def worked(self) -> None:
        """It did what it was asked."""
        self.trouble = None

    def failed(self, what: str, problem: sqlite3.Error) -> None:
        """It could not be read, or written."""
        self._metrics.add("redfirst_store_failures_total")
        self.trouble = f"the store cannot be {what}: {problem}"

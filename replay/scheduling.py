"""In which order concurrent calls are answered: as they come, or the later ones first.

A recording is read without waiting, so calls that took their time in production are all answered as they come.
An agent whose events depend on that order would agree with itself in every replay. One of two runs therefore
answers in another order.
"""

from __future__ import annotations

import threading
import time

ORDER = "the order in which concurrent calls are answered"
"""What the source is called."""
_FIRST_WAITS = 4
"""Turns that the first of several concurrent calls waits; each later one waits one less."""
_TURN_SECONDS = 0.005


class Schedule:
    """Has the first of several concurrent calls wait longest, when it is to ``vary``."""

    def __init__(self, *, vary: bool) -> None:
        self._vary = vary
        self.varied = False
        """Whether a call was made to wait."""
        self._lock = threading.Lock()
        self._place = 0

    def turn(self) -> None:
        """A model call or the end: what comes now is concurrent with nothing before it."""
        with self._lock:
            self._place = 0

    def turns(self) -> int:
        """How many turns of an event loop the next call waits for its answer."""
        if not self._vary:
            return 0
        with self._lock:
            self._place += 1
            self.varied = True
            return max(0, _FIRST_WAITS - self._place)

    def wait(self, turns: int) -> None:
        """Wait as many turns in a thread of the agent's; its main thread has nobody to wait for."""
        if turns and threading.current_thread() is not threading.main_thread():
            time.sleep(turns * _TURN_SECONDS)

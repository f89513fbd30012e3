"""In which order concurrent calls are answered: as they come, or the later ones first.

A recording is read without waiting, so calls that took their time in production are all answered as they come.
An agent whose events depend on that order would agree with itself in every replay. One of two runs therefore
answers in another order. In both, a thread waits for its answer, and they get them some time apart: where all had
them at once, the machine would decide which is seen to end first, and two runs might agree by chance.
"""

from __future__ import annotations

import threading
import time

ORDER = "the order in which concurrent calls are answered"
"""What the source is called."""
_FIRST_WAITS = 4
"""Turns of an event loop that the first of several concurrent calls waits; each later one waits one less."""
_QUIET_SECONDS = 0.05
"""How long no other thread may have called before the latest call is answered."""
_APART_SECONDS = 0.02
"""What a thread that was answered is left to work with its answer, before another call is."""


class Schedule:
    """Has earlier ones of several concurrent calls wait for the later ones, when it is to ``vary``."""

    def __init__(self, *, vary: bool) -> None:
        self._vary = vary
        self.varied = False
        """Whether a call was made to wait."""
        self.threads = False
        """Whether calls came from several threads within one turn of the model's."""
        self._heard: set[int] = set()
        self._place = 0
        self._waiting = threading.Condition()
        self._tickets: list[int] = []
        self._next = 0
        self._answering = threading.Lock()

    def turn(self) -> None:
        """A model call or the end: what comes now is concurrent with nothing before it."""
        self._place = 0
        self._heard.clear()

    def turns(self) -> int:
        """How many turns of its event loop the next call waits for its answer."""
        self._heard.add(threading.get_ident())
        self.threads = self.threads or len(self._heard) > 1
        if not self._vary:
            return 0
        self._place += 1
        self.varied = True
        return max(0, _FIRST_WAITS - self._place)

    def wait(self) -> None:
        """Wait in a thread of the agent's until the calls that came earlier, or with ``vary`` later, were answered.

        Its main thread has nobody to wait for.
        """
        if threading.current_thread() is threading.main_thread():
            return
        if not self._vary:
            with self._answering:
                time.sleep(
                    _APART_SECONDS
                )  # the first one, too: whoever waits for several has begun to wait by then
            return
        with self._waiting:
            ticket = self._next = self._next + 1
            self._tickets.append(ticket)
            self._waiting.notify_all()
            while self._tickets[-1] != ticket or self._waiting.wait_for(
                lambda: self._tickets[-1] != ticket, timeout=_QUIET_SECONDS
            ):
                self._waiting.wait_for(lambda: self._tickets[-1] == ticket)
                time.sleep(_APART_SECONDS)
            self._tickets.remove(ticket)
            self._waiting.notify_all()

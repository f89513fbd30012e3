"""How the process of an agent comes to its end: with its parent, with its threads, and in time."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from _thread import start_new_thread
from collections.abc import Callable
from contextlib import suppress

ENDING = 2.0
"""Seconds that threads an interpreter waits for are given to end."""
RUNNING_ON = 0.2
"""Seconds for the others: daemons that a library keeps for good."""
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel end this process when the one that waits for its result is gone (Linux)."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it went before the kernel was asked


def threads() -> frozenset[threading.Thread]:
    """The threads there are."""
    return frozenset(threading.enumerate())


def left_behind(before: frozenset[threading.Thread]) -> bool:
    """Let the threads the agent started end as a leaving interpreter would; whether one did not."""
    executors = sys.modules.get("concurrent.futures.thread")
    if executors is not None and len(threading.enumerate()) > len(before):
        with executors._global_shutdown_lock:  # noqa: SLF001 - what the interpreter does at its end
            executors._shutdown = True  # type: ignore[attr-defined]  # noqa: SLF001
        for queue in list(executors._threads_queues.values()):  # noqa: SLF001
            queue.put(None)
    begun = time.monotonic()
    for thread in _sorted(before):
        limit = RUNNING_ON if thread.daemon else ENDING
        with suppress(RuntimeError):  # a thread that stands in a list before it has begun
            thread.join(max(0.0, begun + limit - time.monotonic()))
    return any(thread.is_alive() for thread in _sorted(before))


def _sorted(before: frozenset[threading.Thread]) -> list[threading.Thread]:
    """The agent's threads, those that are waited for first."""
    return sorted(set(threading.enumerate()) - before, key=lambda thread: thread.daemon)


def later(seconds: float, act: Callable[[], None]) -> None:
    """Do something in a while, whatever the agent's threads do meanwhile."""

    def wait() -> None:
        time.sleep(seconds)
        act()

    start_new_thread(wait, ())

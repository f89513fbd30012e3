"""The end of the interpreter: spans of streams that were left unfinished end before their provider does."""

from __future__ import annotations

import atexit
import weakref
from typing import TYPE_CHECKING

from redfirst.instrumentation.guard import guarded

if TYPE_CHECKING:
    from redfirst.instrumentation.opened import Opened

unfinished: weakref.WeakSet[Opened] = weakref.WeakSet()
"""Spans of streams that somebody may still ask for more."""


def end_all() -> None:
    """End them."""
    for opened in list(unfinished):
        with guarded("end the span of an unfinished stream"):
            if opened.abandon is not None:
                opened.abandon(opened, None, early=True)


def watch_exit() -> None:
    """Have them ended at exit, before a provider that exists by now is shut down."""
    atexit.unregister(end_all)
    atexit.register(end_all)  # the last registered is called first

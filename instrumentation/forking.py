"""A forked child: it has the parent's objects and none of its threads."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable


def reset_in_children(reset: Callable[[], None]) -> None:
    """Have a bound method called in every forked child, as long as its object is there."""
    if not hasattr(os, "register_at_fork"):
        return
    kept = weakref.WeakMethod(reset)

    def forked() -> None:
        alive = kept()
        if alive is not None:
            alive()

    os.register_at_fork(after_in_child=forked)

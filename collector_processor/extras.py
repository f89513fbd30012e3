"""Packages that only some commands need."""

from __future__ import annotations

import importlib.util

from redfirst.evaluators.errors import RedfirstError


class MissingExtra(RedfirstError):
    """A command needs a package that is not installed."""


def need(*modules: str, extra: str, wanted: str) -> None:
    """See that the modules can be imported.

    Raises:
        MissingExtra: one cannot; the message names the extra that brings it.
    """
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{wanted} needs {', '.join(missing)}: pip install 'redfirst[{extra}]'.")

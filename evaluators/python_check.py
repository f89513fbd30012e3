"""Checks that are Python: a function of a run, named by a project's rules file, or one that a package installed.

Nothing is imported because a trace or a scenario says so: only ``load_rules`` builds these, of a file that the
project's configuration or the command line names. Packages offer theirs as entry points of the group
``redfirst.checks``; each is imported when a rule names it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points

from redfirst.evaluators.strict_yaml import nearest
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Verdict

GROUP = "redfirst.checks"
VERSION = 1


class UnusableFunction(ValueError):
    """A function that is named for a check and cannot be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonCheck:
    """``function(run, **params)``; what it raises is an evaluator error, as of any check."""

    reference: str
    function: Callable[..., Verdict] = field(compare=False)
    params: Mapping[str, object] = field(hash=False)
    source: str
    """Hash of the module's source and version: what the function means."""

    def __call__(self, run: Trajectory) -> Verdict:
        """Judges the run."""
        return self.function(run, **self.params)


def installed() -> dict[str, EntryPoint]:
    """The checks that installed packages offer, by name; none of them is imported."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda one: one.value)}


def python_check(reference: str, params: Mapping[str, object]) -> PythonCheck:
    """The check of ``module:function``, or of an installed check's name.

    Raises:
        UnusableFunction: it cannot be imported, is no function, or does not take a run and these parameters.
    """
    function = _imported(reference)
    if not callable(function):
        raise UnusableFunction(f"{reference} is {type(function).__name__}, which cannot be called with a run")
    try:
        inspect.signature(function).bind(None, **params)
    except (TypeError, ValueError) as problem:
        raise UnusableFunction(
            f"{reference} does not take (run{''.join(f', {name}=…' for name in params)}): {problem}"
        ) from problem
    return PythonCheck(
        reference=reference, function=function, params=params, source=_source_of(reference, function)
    )


def _imported(reference: str) -> object:
    module, _, name = reference.partition(":")
    if not name:
        known = installed()
        if reference not in known:
            offered = (
                f"installed: {', '.join(known)}; {nearest(reference, list(known))}"
                if known
                else "none is installed"
            )
            raise UnusableFunction(
                f"no installed check is named {reference} ({offered}); give module:function for one of your own"
            )
        module, name = known[reference].module, known[reference].attr
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except Exception as problem:
        what = " ".join(f"{type(problem).__name__}: {problem}".split())[:200]
        raise UnusableFunction(f"{reference} cannot be imported ({what})") from problem


def _source_of(reference: str, function: object) -> str:
    """The whole module counts, since what a function means hangs on what it calls there."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    try:
        text = inspect.getsource(module) if module is not None else ""
    except (OSError, TypeError):
        text = ""
    version = str(getattr(module, "__version__", ""))
    if not text and not version:
        raise UnusableFunction(
            f"{reference} has neither a readable source nor a module __version__ to be known by"
        )
    return hashlib.sha256(f"{version}\0{text}".encode("utf-8", "replace")).hexdigest()[:16]

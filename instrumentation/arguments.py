"""What a callable is called, what it says of itself, and a call's arguments by parameter name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

_OWNERS = ("self", "cls")
_MOST_FORMS = 64
"""So many forms of a call are remembered: a function with many optional parameters has more than are worth it."""


class Arguments:
    """Names the arguments of a call of one function. The object or class of a method is none of them."""

    __slots__ = (
        *("_exact", "_fitting", "_names", "_needed", "_owner", "_parameters", "_positional", "_signature"),
    )

    def __init__(self, function: Callable[..., Any]) -> None:
        self._signature = _signature(function)
        self._parameters: Mapping[str, inspect.Parameter] = (
            self._signature.parameters if self._signature is not None else {}
        )
        # a decorator below ours may hand the function other arguments than its signature says
        self._exact = isinstance(function, FunctionType) and not (
            function.__dict__.keys() & {"__wrapped__", "__signature__"}
        )
        first = next(iter(self._parameters), None)
        self._owner = first if first in _OWNERS else None
        simple = (
            self._signature is not None
            and self._owner is None
            and all(
                one.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
                for one in self._parameters.values()
            )
        )
        self._names = frozenset(self._parameters) if simple else None
        """Names of the parameters, where no bundle and no owner is among them."""
        self._positional = tuple(
            name
            for name, one in self._parameters.items()
            if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        self._needed = frozenset(
            name for name, one in self._parameters.items() if one.default is inspect.Parameter.empty
        )
        self._fitting: set[tuple[object, ...]] = set()
        """Calls that were found to fit before: how many arguments by position, and which by name."""

    def name(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by parameter name, ``**kwargs`` spread out; ``None`` when the call must raise TypeError."""
        count = len(args)
        form = (count, *kwargs)
        if form in self._fitting or self._fits(form, args, kwargs):
            if count == 0:
                return kwargs
            names = self._positional
            if count == 1:  # by far the most calls; the general way takes three times as long
                return {names[0]: args[0], **kwargs}
            if count == 2:
                return {names[0]: args[0], names[1]: args[1], **kwargs}
            named = dict(zip(names, args))  # noqa: B905 - naming strict= doubles what it costs
            named |= kwargs
            return named
        if self._signature is None:
            return self._unnamed(args, kwargs)
        try:
            bound = self._signature.bind(*args, **kwargs).arguments
        except TypeError:
            return None if self._exact else self._unnamed(args, kwargs)
        found: dict[str, Any] = {}
        for key, value in bound.items():
            if key == self._owner:
                continue
            if self._parameters[key].kind is inspect.Parameter.VAR_KEYWORD and not (
                value.keys() & bound.keys()
            ):
                found.update(value)
            else:
                found[key] = value
        return found

    def _fits(self, form: tuple[object, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether each argument is a parameter's, no two are the same one's, and none is missing."""
        if self._names is None or len(args) > len(self._positional):
            return False
        given = self._positional[: len(args)]
        named = kwargs.keys() | given
        fits = len(named) == len(args) + len(kwargs) and self._names >= named >= self._needed
        if fits and len(self._fitting) < _MOST_FORMS:
            self._fitting.add(form)
        return fits

    def _unnamed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        given = args[1:] if self._owner is not None else args
        return {**kwargs, "args": given} if given else dict(kwargs)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None  # some functions written in C have none


def behind(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a ``functools.partial`` stands for."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def called(function: Callable[..., Any]) -> str:
    """The name of the function, or of the class of a callable object."""
    return str(getattr(behind(function), "__name__", None) or type(function).__name__)


def body(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function whose kind (plain, coroutine, generator) is that of a call."""
    found = behind(function)
    if isinstance(found, type) or inspect.isroutine(found):
        return found
    call: Callable[..., Any] = getattr(type(found), "__call__", found)  # noqa: B004 - the method itself is wanted
    return call

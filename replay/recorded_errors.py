"""A recorded exception, raised again: in its own class wherever that can be had."""

from __future__ import annotations

import ast
import builtins
import importlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = Any

_MAIN = "__main__"


class RecordedError(Exception):
    """A recorded error whose own exception class cannot be had in this process."""


def recorded_error(error: Mapping[str, Json], *, program: str, missed: Callable[[str], None]) -> Exception:
    """The recorded exception: of its own class, whose ``str()`` says what was recorded, or a ``RecordedError``.

    Args:
        error: ``{type, message}``; the type as ``module.qualname``, built-in ones without a module.
        program: the agent's module; production may have run it as ``__main__``.
        missed: told in words what could not be rebuilt: the class, or later an attribute that the agent asks for.
    """
    name, message = str(error.get("type", "")), str(error.get("message", ""))
    found = _class(name, program)
    if found is None:
        missed(f"{name or 'an exception without a class'} (no exception class of that name can be imported)")
        return RecordedError(message)
    made = _constructed(found, message) or _unconstructed(found, message, missed)
    if made is None:
        missed(f"{name} (no instance of it can be made of what was recorded)")
        return RecordedError(message)
    return made


def _class(name: str, program: str) -> type[Exception] | None:
    """The class of this name, loaded or importable."""
    for module, path in _places(name, program):
        found: Any = module
        for part in path:
            found = getattr(found, part, None)
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return None


def _places(name: str, program: str) -> Iterator[tuple[object, list[str]]]:
    parts = name.split(".")
    if len(parts) == 1:
        yield builtins, parts
    if program and (len(parts) == 1 or parts[0] == _MAIN):
        yield _module(program), parts[parts[0] == _MAIN :]
        return
    for end in range(len(parts) - 1, 0, -1):  # a nested class has dots in its own name
        yield _module(".".join(parts[:end])), parts[end:]


def _module(name: str) -> types.ModuleType | None:
    if name in sys.modules:
        return sys.modules[name]
    try:
        return importlib.import_module(name)
    except Exception:  # noqa: BLE001 - a module's own code may raise anything; the class is then not to be had
        return None


def _constructed(kind: type[Exception], message: str) -> Exception | None:
    """Made of the message alone, where it then says the message."""
    for argument in _arguments(message):
        try:
            made = kind(argument)
            if isinstance(made, kind) and str(made) == message:
                return made
        except Exception:  # noqa: BLE001, S112 - its constructor wants more than a message
            continue
    return None


def _arguments(message: str) -> Iterator[object]:
    yield message
    try:
        yield ast.literal_eval(message)  # KeyError says the repr of its key
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return


def _unconstructed(kind: type[Exception], message: str, missed: Callable[[str], None]) -> Exception | None:
    """An instance without its constructor having run: it is caught as the class and says the message.

    What its constructor would have set is not recorded: an attribute that is asked for all the same is told.
    """

    def missing(self: Exception, name: str) -> Any:
        asking = str(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001 - our own probing is no reading
        if not name.startswith("__") and not asking.startswith("redfirst."):
            missed(f"{kind.__qualname__} (its attribute {name!r} is not recorded)")
        raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)

    body = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__str__": lambda _self: message,
        "__getattr__": missing,
    }
    native: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    try:
        own = types.new_class(kind.__name__, (kind,), exec_body=lambda space: space.update(body))
        made: Exception = native.__new__(own, message)
        object.__setattr__(made, "args", (message,))  # the class's own may refuse
    except Exception:  # noqa: BLE001 - a class that cannot be derived from, or whose parts are not recorded (a group)
        return None
    return made

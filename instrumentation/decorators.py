"""``@agent``, ``@model`` and ``@tool``: one span per call, and the host none the wiser.

The wrapped function runs outside every guard: its result and its exception are what they were.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable
from typing import Any, Literal, ParamSpec, TypeVar, cast, get_args, overload

from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation import door
from redfirst.instrumentation.arguments import body, called
from redfirst.instrumentation.guard import count, guarded
from redfirst.instrumentation.kinds import Agent, Kind, Model, Tool
from redfirst.instrumentation.rule_guard import Guard, guard_of

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["read", "write", "control"]

_log = logging.getLogger("redfirst.instrumentation")
_warned: set[str] = set()


def _decorate(function: Callable[P, R], describe: Callable[[Callable[..., Any]], Kind]) -> Callable[P, R]:
    if isinstance(function, staticmethod | classmethod):  # they bind what is inside them
        inside = _decorate(function.__func__, describe)
        return cast("Callable[P, R]", type(function)(inside))
    if not callable(function):
        raise ConfigurationError(
            f"The decorator was given {function!r}, which is not a function. Write it bare, or with name=… and the like."
        )
    kind: Kind | None = None
    is_async = False
    with guarded("describe a function"):
        runs = body(function)
        if inspect.isgeneratorfunction(runs) or inspect.isasyncgenfunction(runs):
            _leave(function)
        else:
            is_async = inspect.iscoroutinefunction(runs)
            kind = describe(function)
    return function if kind is None else _wrap(function, kind, is_async=is_async)


def _leave(function: Callable[..., Any]) -> None:
    """Say once that a generator function is left as it is; in a replay it would act for real, so that is a fault."""
    name = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', called(function))}"
    if name not in _warned:
        _warned.add(name)
        _log.warning("%s is a generator function, which is not traced; it is left as it is", name)
    if door.interceptor() is not None:
        count("trace a generator function")


def _wrap(function: Callable[P, R], kind: Kind, *, is_async: bool) -> Callable[P, R]:
    if is_async:

        @functools.wraps(function)
        async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
            opened = kind.open(args, kwargs)
            try:
                answer = kind.offer(opened, args, kwargs)
                call: Any = function
                if answer is not door.Door.PASS_THROUGH:
                    result = await door.arrived(answer)
                elif kind.door_kind != "model" or door.interceptor() is None:
                    result = await call(*args, **kwargs)
                else:
                    with door.let_through():
                        result = await call(*args, **kwargs)
            except BaseException as error:
                kind.fail(opened, error)
                raise
            kind.finish(opened, result)
            return result

        setattr(asynchronous, door.ANSWERED, kind.door_kind)
        return asynchronous  # type: ignore[return-value] # R is the coroutine's type

    @functools.wraps(function)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        opened = kind.open(args, kwargs)
        try:
            answer = kind.offer(opened, args, kwargs)
            result: R
            if answer is not door.Door.PASS_THROUGH:
                result = door.given(answer)
            elif kind.door_kind != "model" or door.interceptor() is None:
                result = function(*args, **kwargs)
            else:
                with door.let_through():
                    result = function(*args, **kwargs)
        except BaseException as error:
            kind.fail(opened, error)
            raise
        kind.finish(opened, result)
        return result

    setattr(synchronous, door.ANSWERED, kind.door_kind)
    return synchronous


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: Effect | None = None,
    idempotent: bool | None = None,
    poll: bool = False,
    schema: object = None,
    guard: Guard | str | os.PathLike[str] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Effect | None = None,
    idempotent: bool | None = None,
    poll: bool = False,
    schema: object = None,
    guard: Guard | str | os.PathLike[str] | None = None,
) -> Any:
    """Record each call of a tool, and let replay answer it.

    Args:
        name: the tool's name as the model knows it (default: the function's).
        effect: whether a call changes the world. Without it no check of writes can fire.
        idempotent: whether repeating a call has no further effect.
        poll: repeated equal calls are how this tool is meant to be used.
        schema: JSON Schema of the arguments, or a pydantic model class.
        guard: rules that are asked before each call, or the path of their file: a call that would complete a
            violation is not made, and raises ``CallRefused``.

    Raises:
        ConfigurationError: the effect is none of these, or the rules are wrong.
    """

    if effect is not None and effect not in get_args(Effect):
        raise ConfigurationError(
            f"The effect of a tool is {', '.join(get_args(Effect))} or unset, not {effect!r}."
        )

    rules = guard_of(guard)

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _decorate(
            target,
            lambda inside: Tool(
                inside, name, effect=effect, idempotent=idempotent, poll=poll, schema=schema, guard=rules
            ),
        )

    return decorate if function is None else decorate(function)


@overload
def model(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def model(
    *, name: str | None = None, provider: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def model(
    function: Callable[P, R] | None = None, /, *, name: str | None = None, provider: str | None = None
) -> Any:
    """Record each call of a model: messages, tools, reply, finish reason, tokens; replay may answer it.

    The wrapped function's parameters ``messages`` (or ``input``), ``tools`` and ``model`` are read by
    name; its return value in the shape of the vendor's response.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _decorate(target, lambda inside: Model(inside, name, provider=provider))

    return decorate if function is None else decorate(function)


@overload
def agent(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def agent(
    *, name: str | None = None, step_cap: int | None = None, version: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def agent(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    step_cap: int | None = None,
    version: str | None = None,
) -> Any:
    """Record one run of an agent: request, answer, and all that happens inside it.

    Args:
        name: the agent's name in rules, reports and alerts.
        step_cap: how many model turns its loop allows; tells a cap from an abandoned run.
        version: what a canary comparison and a proof call this version.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _decorate(target, lambda inside: Agent(inside, name, step_cap=step_cap, version=version))

    return decorate if function is None else decorate(function)

"""``@agent``, ``@model`` and ``@tool``: one span per call, and the host none the wiser.

The wrapped function runs outside every guard: its result and its exception are what they were.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, ParamSpec, TypeVar, cast, get_args, overload

from opentelemetry import trace

from redfirst.evaluators.errors import ConfigurationError
from redfirst.instrumentation import door, memory, streams
from redfirst.instrumentation.arguments import body
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.model_call import Model
from redfirst.instrumentation.provider import redact_places, settings
from redfirst.instrumentation.rule_guard import Guard, guard_of
from redfirst.instrumentation.steps import Agent, Chain, Guardrail, Handoff, Retriever
from redfirst.instrumentation.tool_call import GuardedTool, Tool

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["read", "write", "control"]

_WHOLE = frozenset({str, dict, list, tuple, int, float, bool, bytes, type(None)})
"""Types of results that are complete as they stand."""


def _decorate(function: Callable[P, R], describe: Callable[[Callable[..., Any]], Kind]) -> Callable[P, R]:
    if isinstance(function, staticmethod | classmethod):  # they bind what is inside them
        inside = _decorate(function.__func__, describe)
        return cast("Callable[P, R]", type(function)(inside))
    if not callable(function):
        raise ConfigurationError(
            f"The decorator was given {function!r}, which is not a function. Write it bare, or with name=… and the like."
        )
    made: Callable[..., Any] | None = None
    with guarded("describe a function"):
        runs = body(function)
        kind = describe(function)
        wrap = _synchronous
        if inspect.isasyncgenfunction(runs):
            wrap = streams.async_generator
        elif inspect.isgeneratorfunction(runs):
            wrap = streams.generator
        elif inspect.iscoroutinefunction(runs):
            wrap = _asynchronous
        made = wrap(function, kind)
        setattr(made, door.ANSWERED, kind.door_kind)
    return function if made is None else cast("Callable[P, R]", made)


# Both begin with a look whether anything is traced or remembered: where nothing is, it is all that a call costs.


def _asynchronous(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(function)
    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        opened = later = None
        if (
            settings.silent is not trace._TRACER_PROVIDER  # noqa: SLF001 - as in tracing()
            or settings.provider is not None
            or memory.Switch.on
        ):
            opened = kind.open(args, kwargs)
        try:
            if not kind.guarded and door.holder().interceptor is None:
                result = await function(*args, **kwargs)
            else:
                answer = kind.offer(opened, args, kwargs)
                if answer is not door.Door.PASS_THROUGH:
                    result = await door.arrived(answer)
                else:
                    with kind.letting_through():
                        result = await function(*args, **kwargs)
        except BaseException as error:
            kind.fail(opened, error)
            raise
        if opened is None:
            return result
        if type(result) not in _WHOLE:
            with guarded("look at a result"):
                later = streams.of_result(kind, opened, result)
            if later is not None:
                return later
        kind.finish(opened, result)
        return result

    return asynchronous


def _synchronous(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        opened = later = None
        if (
            settings.silent is not trace._TRACER_PROVIDER  # noqa: SLF001 - as in tracing()
            or settings.provider is not None
            or memory.Switch.on
        ):
            opened = kind.open(args, kwargs)
        try:
            if not kind.guarded and door.holder().interceptor is None:
                result = function(*args, **kwargs)
            else:
                answer = kind.offer(opened, args, kwargs)
                if answer is not door.Door.PASS_THROUGH:
                    result = door.given(answer)
                else:
                    with kind.letting_through():
                        result = function(*args, **kwargs)
        except BaseException as error:
            kind.fail(opened, error)
            raise
        if opened is None:
            return result
        if type(result) not in _WHOLE:
            with guarded("look at a result"):
                later = streams.of_result(kind, opened, result)
            if later is not None:
                return later
        kind.finish(opened, result)
        return result

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
    redact: str | Iterable[str] = (),
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
    redact: str | Iterable[str] = (),
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
        redact: keys and paths (``$.customer.email``) that are redacted on every span from now on.

    Raises:
        ConfigurationError: the effect is none of these, or the rules or a path are wrong.
    """

    if effect is not None and effect not in get_args(Effect):
        raise ConfigurationError(
            f"The effect of a tool is {', '.join(get_args(Effect))} or unset, not {effect!r}."
        )

    rules = guard_of(guard)
    if redact:
        redact_places(redact)

    declared: dict[str, Any] = {"effect": effect, "idempotent": idempotent, "poll": poll, "schema": schema}

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        if rules is not None:
            return _decorate(target, lambda inside: GuardedTool(inside, name, rules, **declared))
        return _decorate(target, lambda inside: Tool(inside, name, **declared))

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


@overload
def chain(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def chain(*, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def chain(function: Callable[P, R] | None = None, /, *, name: str | None = None) -> Any:
    """Record each call of a step that other steps are part of."""
    return _plainly(Chain, function, name)


@overload
def retriever(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def retriever(*, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def retriever(function: Callable[P, R] | None = None, /, *, name: str | None = None) -> Any:
    """Record each search for documents: texts, or objects with ``content``, ``page_content`` or ``text``."""
    return _plainly(Retriever, function, name)


@overload
def guardrail(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def guardrail(*, name: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def guardrail(function: Callable[P, R] | None = None, /, *, name: str | None = None) -> Any:
    """Record each check of what goes in or comes out."""
    return _plainly(Guardrail, function, name)


@overload
def handoff(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def handoff(
    *, name: str | None = None, to: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def handoff(
    function: Callable[P, R] | None = None, /, *, name: str | None = None, to: str | None = None
) -> Any:
    """Record that control passes to another agent: ``to``, or the function's name. It is no tool call."""

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _decorate(target, lambda inside: Handoff(inside, name, to=to))

    return decorate if function is None else decorate(function)


def _plainly(kind: type[Chain], function: Callable[P, R] | None, name: str | None) -> Any:
    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _decorate(target, lambda inside: kind(inside, name))

    return decorate if function is None else decorate(function)

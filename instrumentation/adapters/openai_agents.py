"""The OpenAI Agents SDK: function tools come to the door inside their own spans; models through the OpenAI client."""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from redfirst.instrumentation import door
from redfirst.instrumentation.adapters import hold
from redfirst.instrumentation.adapters.recorded import arguments_of, as_promised, comes_itself, unannotated
from redfirst.instrumentation.capture import plain

_INVOKE = "_invoke_function_tool_with_metadata"
_IMPLEMENTATION = "_invoke_tool_impl"


def tools(module: ModuleType) -> None:
    """Have every ``FunctionTool`` answered at the door; an agent as a tool runs, and its own calls are answered."""
    if not hasattr(module, "FunctionTool"):
        return  # many a project has a package of its own that is called agents
    (invoke,) = hold(module, _INVOKE)

    @functools.wraps(invoke)
    async def invoked(*, function_tool: Any, context: Any, arguments: str) -> Any:
        standing = door.interceptor()
        function = _function(function_tool)
        if standing is None or comes_itself(function):
            return await invoke(function_tool=function_tool, context=context, arguments=arguments)
        named = arguments_of(arguments)
        call = door.DoorCall(
            kind="tool",
            name=function_tool.name,
            arguments={"input": arguments} if named is None else plain(named),
            function=function,
        )
        if getattr(function_tool, "_is_agent_tool", False):
            standing.ran(call)
            return await invoke(function_tool=function_tool, context=context, arguments=arguments)
        if named is None:  # the SDK refuses it before the function is called
            standing.refused(call)
            return await invoke(function_tool=function_tool, context=context, arguments=arguments)

        async def answered(_context: Any, _arguments: str) -> Any:
            answer = standing.call(call)
            value = as_promised(await door.arrived(answer), function)
            if _of_a_server(function_tool) and not isinstance(value, str):
                value = json.dumps(value, ensure_ascii=False)  # as its server says it: in text
            if isinstance(answer, door.Played) and answer.failed:
                _mark_failed(call.name, value)
            return value

        stand_in = copy.copy(function_tool)
        stand_in.on_invoke_tool = _guarded(function_tool.on_invoke_tool, answered, stand_in)
        return await invoke(function_tool=stand_in, context=context, arguments=arguments)

    setattr(module, _INVOKE, invoked)


def _guarded(invoker: Any, answered: Callable[..., Any], stand_in: Any) -> Any:
    """What answers, with whatever the program has the SDK make of an exception around it."""
    if not hasattr(invoker, _IMPLEMENTATION):
        return answered  # made by hand: what it makes of an exception is its own code, which is not run
    again = copy.copy(invoker)
    setattr(again, _IMPLEMENTATION, answered)
    again._function_tool = stand_in
    return again


def _function(tool: Any) -> Callable[..., Any]:
    wrapped = getattr(tool.on_invoke_tool, "_get_wrapped_callable", None)
    found = wrapped() if wrapped is not None else None
    return found if callable(found) else unannotated


def _of_a_server(function_tool: Any) -> bool:
    """Whether it is a tool of the Model Context Protocol."""
    origin = getattr(function_tool, "_tool_origin", None)
    return str(getattr(getattr(origin, "type", None), "value", "")) == "mcp"


def _mark_failed(name: str, said: Any) -> None:
    """As the SDK marks the span of a call whose error it answered with a text."""
    from agents.tracing import get_current_span

    span = get_current_span()
    if span is not None:
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        span.set_error(
            {"message": "Error running tool (non-fatal)", "data": {"tool_name": name, "error": text}}
        )

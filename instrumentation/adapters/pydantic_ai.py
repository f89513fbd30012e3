"""pydantic-ai: functions of a ``FunctionToolset`` come to the door inside their spans; models through the OpenAI client."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from redfirst.instrumentation import door
from redfirst.instrumentation.adapters import hold
from redfirst.instrumentation.adapters.recorded import as_promised, comes_itself, unannotated
from redfirst.instrumentation.capture import plain


def tools(module: ModuleType) -> None:
    """Have every function tool answered at the door."""
    base = module.FunctionToolset
    (call_tool,) = hold(base, "call_tool")

    @functools.wraps(call_tool)
    async def called(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        standing = door.interceptor()
        function = _function(tool)
        if standing is None or comes_itself(function):
            return await call_tool(self, name, tool_args, ctx, tool)
        call = door.DoorCall(
            kind="tool", name=ctx.tool_name or name, arguments=plain(tool_args), function=function
        )

        async def answered(_arguments: dict[str, Any], _context: Any) -> Any:
            from pydantic_ai import ModelRetry

            answer = standing.call(call)
            if isinstance(answer, door.Failed) and answer.own:
                raise ModelRetry(str(answer.error))
            value = as_promised(await door.arrived(answer), function)
            if isinstance(answer, door.Played) and answer.failed:
                raise ModelRetry(str(value))
            return value

        return await call_tool(self, name, tool_args, ctx, dataclasses.replace(tool, call_func=answered))

    base.call_tool = called


def _function(tool: Any) -> Callable[..., Any]:
    schema = getattr(tool.call_func, "__self__", None)
    found = getattr(schema, "function", None)
    return found if callable(found) else unannotated

"""Clients of the Model Context Protocol: a session's tool calls come to the door instead of going to the server.

The session itself is real: a server that is started as a program says which tools it has. In recorded mode the network is
closed, so a server behind it cannot be reached.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from redfirst.instrumentation import door
from redfirst.instrumentation.adapters import hold
from redfirst.instrumentation.adapters.recorded import unannotated
from redfirst.instrumentation.capture import plain


def sessions(module: ModuleType) -> None:
    """Have every ``ClientSession.call_tool`` answered at the door; one inside an answered call is not made at all."""
    base = module.ClientSession
    (call_tool,) = hold(base, "call_tool")

    @functools.wraps(call_tool)
    async def called(
        self: Any, name: str, arguments: dict[str, Any] | None = None, *args: Any, **more: Any
    ) -> Any:
        standing = door.interceptor()
        if standing is None:
            return await call_tool(self, name, arguments, *args, **more)
        answer = standing.call(
            door.DoorCall(kind="tool", name=name, arguments=plain(arguments or {}), function=unannotated)
        )
        if isinstance(answer, door.Failed) and answer.own:
            return _result(str(answer.error), failed=True)
        value = await door.arrived(answer)
        return _result(value, failed=isinstance(answer, door.Played) and answer.failed)

    base.call_tool = called


def _result(value: Any, *, failed: bool) -> Any:
    """A recorded answer as the result of a call: as a server gave it, or made of what was told to the model."""
    from mcp.types import CallToolResult

    if isinstance(value, Mapping) and isinstance(value.get("content"), list):
        return CallToolResult.model_validate(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    structured = {"structuredContent": dict(value)} if isinstance(value, Mapping) else {}
    return CallToolResult.model_validate(
        {"content": [{"type": "text", "text": text}], "isError": failed, **structured}
    )

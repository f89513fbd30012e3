"""A call of a tool on its span."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from redfirst.evaluators import semconv
from redfirst.instrumentation import door, memory
from redfirst.instrumentation.arguments import behind
from redfirst.instrumentation.capture import plain, to_json
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.opened import Opened
from redfirst.instrumentation.provider import settings
from redfirst.instrumentation.rule_guard import Guard


class Tool(Kind):
    """A call of a tool."""

    door_kind = "tool"
    oi_kind = "TOOL"
    operation = "execute_tool"

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        *,
        effect: str | None = None,
        idempotent: bool | None = None,
        poll: bool = False,
        schema: object = None,
    ) -> None:
        super().__init__(function, name)
        self.declared = {"effect": effect, "idempotent": idempotent, "poll": poll}
        self.declare(
            OI_TOOL_NAME=self.name,
            TOOL_NAME=self.name,
            TOOL_EFFECT=effect,
            TOOL_IDEMPOTENT=idempotent,
            TOOL_POLL=poll or None,
        )
        with guarded("describe a tool"):
            description = inspect.getdoc(behind(function)) or None
            self.declare(TOOL_DESCRIPTION=description, OI_TOOL_DESCRIPTION=description)
        with guarded("describe the arguments of a tool"):
            if schema is not None:
                describe = getattr(schema, "model_json_schema", None)
                self.declare(OI_TOOL_PARAMETERS=to_json(describe() if callable(describe) else schema))

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        opened.frame = memory.current()
        frame = opened.frame or self.alone()
        if frame is not None:
            given = None if arguments is None else plain(arguments)
            opened.remembered = frame.begin(self.name, given, **self.declared)

    def alone(self) -> memory.Frame | None:
        """What remembers a call outside of any run."""
        return None

    def remember_result(self, opened: Opened, result: object) -> None:
        if opened.remembered is not None and opened.remembered.refused is None:
            memory.finish(opened.remembered, result=result)

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        if settings.content.inputs:
            opened.say_json(arguments, semconv.TOOL_CALL_ARGUMENTS, semconv.INPUT_VALUE)
            opened.data[semconv.INPUT_MIME_TYPE] = semconv.JSON_MIME

    def on_result(self, opened: Opened, result: object) -> None:
        if settings.content.outputs:
            opened.say_json(result, semconv.TOOL_CALL_RESULT, semconv.OUTPUT_VALUE)
            opened.data[semconv.OUTPUT_MIME_TYPE] = semconv.JSON_MIME


class GuardedTool(Tool):
    """A call of a tool that rules are asked before."""

    guarded = True

    def __init__(self, function: Callable[..., Any], name: str | None, guard: Guard, **declared: Any) -> None:
        super().__init__(function, name, **declared)
        self.guard = guard

    def alone(self) -> memory.Frame | None:
        return memory.Frame(memory.Memory(), None, ())

    def offer(self, opened: Opened | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> door.Answer:
        """Ask the guard first: a call that it refuses is offered to nobody."""
        pending = opened.remembered if opened is not None else None
        refused = self.guard.refused(self.name, pending, opened.frame if opened is not None else None)
        if refused is not None:
            with guarded("record a refusal"):
                if opened is not None:
                    opened.say(refused.rule, semconv.TOOL_REFUSED_BY)
                    opened.say(refused.because, semconv.TOOL_REFUSED_BECAUSE)
            if self.guard.refusal == "raise":
                return door.Failed(refused)
            return door.Played({"error": str(refused)})
        return super().offer(opened, args, kwargs)

"""What an agent, a tool and a model call write on their spans."""

from __future__ import annotations

import inspect
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

from redfirst.evaluators import semconv
from redfirst.instrumentation import conversation, door, memory
from redfirst.instrumentation.arguments import Arguments, behind, called
from redfirst.instrumentation.capture import bounded, clean, plain, to_json, to_text
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.opened import Note, Opened
from redfirst.instrumentation.provider import content, tracer
from redfirst.instrumentation.rule_guard import Guard


class Kind(ABC):
    """What one kind of span records of a call. One instance per decorated function."""

    door_kind: ClassVar[Literal["tool", "model"] | None] = None
    is_run: ClassVar[bool] = False

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.function = function
        self.name = clean(called(function) if name is None else name)
        self.arguments = Arguments(function)
        self.attributes: dict[str, Any] = {}
        self.notes: list[Note] = []

    def declare(self, **pairs: str | bool | int | None) -> None:
        """Take what is the same for every call, by name in ``semconv``; ``None`` is left out."""
        for name, value in pairs.items():
            key = getattr(semconv, name)
            if isinstance(value, str):
                value, note = bounded(value)
                if note is not None:
                    self.notes.append({"attribute": key, **note})
            if value is not None:
                self.attributes[key] = value

    @abstractmethod
    def span_name(self, arguments: Mapping[str, Any] | None) -> str:
        """The span's name; the arguments are missing where they could not be read."""
        ...

    @abstractmethod
    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        """Write what the call was given."""
        ...

    @abstractmethod
    def on_result(self, opened: Opened, result: object) -> None:
        """Write what the call returned."""
        ...

    # -- the moments of a call; every line stands in a guard, so that the host does not notice ours

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Opened | None:
        """Begin a span and make it the current one."""
        opened: Opened | None = None
        arguments: dict[str, Any] | None = None
        with guarded("read the arguments of a call"):
            arguments = self.arguments.name(args, kwargs)
        try:
            with guarded("open a span"):
                span = tracer().start_span(clean(self.span_name(arguments)), attributes=self.attributes)
                opened = Opened(span, self.notes)
                opened.enter(as_run=self.is_run)
            if memory.Switch.on and opened is not None:
                with guarded("remember a call"):
                    self.remember(opened, arguments)
            with guarded("record the arguments of a call"):
                if opened is not None and arguments is not None and opened.span.is_recording():
                    self.on_call(opened, arguments)
        except BaseException as error:  # an interrupt that struck here: the call is not made
            self.fail(opened, error)
            raise
        return opened

    def finish(self, opened: Opened | None, result: object) -> None:
        """The call returned: record that and end the span."""
        if opened is None:
            return
        if memory.Switch.on:
            with guarded("remember a result"):
                self.remember_result(opened, result)
        with guarded("leave a span"):
            opened.leave()
        try:
            with guarded("record a result"):
                if opened.span.is_recording():
                    opened.succeed()
                    self.on_result(opened, result)
        finally:
            with guarded("end a span"):
                opened.end()

    def fail(self, opened: Opened | None, error: BaseException) -> None:
        """The call raised: record that and end the span."""
        if opened is None:
            return
        if opened.remembered is not None:
            with guarded("remember an exception"):
                memory.finish(opened.remembered, error=error)
        with guarded("leave a span"):
            opened.leave()
        try:
            with guarded("record an exception"):
                if opened.span.is_recording():
                    opened.fail(error)
        finally:
            with guarded("end a span"):
                opened.end()

    @abstractmethod
    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        """Note in the memory of the run that the call begins."""
        ...

    @abstractmethod
    def remember_result(self, opened: Opened, result: object) -> None:
        """Note in the memory of the run what the call returned."""
        ...

    def offer(self, opened: Opened | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> door.Answer:  # noqa: ARG002 - a guard's
        """Ask whoever stands in the door; in production nobody does. What it raises is for the caller."""
        if self.door_kind is None:
            return door.Door.PASS_THROUGH
        standing = door.interceptor()
        if standing is None:
            return door.Door.PASS_THROUGH
        arguments = self.arguments.name(args, kwargs)
        if arguments is None:  # nothing real can happen: the call itself raises TypeError
            return door.Door.PASS_THROUGH
        return standing.call(
            door.DoorCall(
                kind=self.door_kind, name=self.name, arguments=plain(arguments), function=self.function
            )
        )


class Tool(Kind):
    """A call of a tool."""

    door_kind = "tool"

    def __init__(
        self,
        function: Callable[..., Any],
        name: str | None,
        *,
        effect: str | None,
        idempotent: bool | None,
        poll: bool,
        schema: object,
        guard: Guard | None = None,
    ) -> None:
        super().__init__(function, name)
        self.guard = guard
        self.declared = {"effect": effect, "idempotent": idempotent, "poll": poll}
        self.declare(
            OI_KIND="TOOL",
            OPERATION="execute_tool",
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

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - the interface's
        return f"execute_tool {self.name}"

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        opened.frame = memory.current()
        alone = memory.Frame(memory.Memory(), None, ()) if self.guard is not None else None
        frame = opened.frame or alone
        if frame is not None:
            given = None if arguments is None else plain(arguments)
            opened.remembered = frame.begin(self.name, given, **self.declared)

    def remember_result(self, opened: Opened, result: object) -> None:
        if opened.remembered is not None and opened.remembered.refused is None:
            memory.finish(opened.remembered, result=result)

    def offer(self, opened: Opened | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> door.Answer:
        """Ask the guard first: a call that it refuses is offered to nobody."""
        if self.guard is not None:
            pending = opened.remembered if opened is not None else None
            refused = self.guard.refused(self.name, pending, opened.frame if opened is not None else None)
            if refused is not None:
                with guarded("record a refusal"):
                    if opened is not None:
                        opened.set(semconv.TOOL_REFUSED_BY, refused.rule)
                        opened.set(semconv.TOOL_REFUSED_BECAUSE, refused.because)
                if self.guard.refusal == "raise":
                    return door.Failed(refused)
                return door.Played({"error": str(refused)})
        return super().offer(opened, args, kwargs)

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        if content().inputs:
            text = to_json(arguments)
            opened.set(semconv.TOOL_CALL_ARGUMENTS, text)
            opened.set(semconv.INPUT_VALUE, text)
            opened.span.set_attribute(semconv.INPUT_MIME_TYPE, semconv.JSON_MIME)

    def on_result(self, opened: Opened, result: object) -> None:
        if content().outputs:
            text = to_json(result)
            opened.set(semconv.TOOL_CALL_RESULT, text)
            opened.set(semconv.OUTPUT_VALUE, text)
            opened.span.set_attribute(semconv.OUTPUT_MIME_TYPE, semconv.JSON_MIME)


class Model(Kind):
    """A call of a model."""

    door_kind = "model"

    def __init__(self, function: Callable[..., Any], name: str | None, *, provider: str | None) -> None:
        super().__init__(function, name)
        self.declare(OI_KIND="LLM", OPERATION="chat", PROVIDER=provider, OI_PROVIDER=provider)

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        asked = plain(arguments or {})
        opened.asked = time.time_ns(), conversation.read_messages(asked.get("messages", asked.get("input")))

    def remember_result(self, opened: Opened, result: object) -> None:
        frame = memory.current()
        if frame is not None and opened.asked is not None:
            frame.answered(*opened.asked, conversation.read_reply(plain(result)))

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:
        model = (arguments or {}).get("model")
        return f"chat {model}" if isinstance(model, str) else "chat"

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        model = arguments.get("model")
        if isinstance(model, str):
            opened.set(semconv.REQUEST_MODEL, model)
            opened.set(semconv.OI_MODEL_NAME, model)
        if not content().requests:
            return
        request = plain(arguments)
        turns = conversation.read_messages(request.get("messages", request.get("input")))
        if turns is not None:
            opened.set_all(conversation.openinference_messages(semconv.OI_INPUT_MESSAGES, turns))
            opened.set(semconv.INPUT_MESSAGES, conversation.genai_messages(turns))
        tools = request.get("tools")
        if isinstance(tools, list):
            opened.set(semconv.TOOL_DEFINITIONS, to_json(tools))
        opened.set(semconv.INPUT_VALUE, to_json(request))
        opened.span.set_attribute(semconv.INPUT_MIME_TYPE, semconv.JSON_MIME)

    def on_result(self, opened: Opened, result: object) -> None:
        response = plain(result)
        if content().replies:
            opened.set(semconv.OUTPUT_VALUE, to_json(response))
            opened.span.set_attribute(semconv.OUTPUT_MIME_TYPE, semconv.JSON_MIME)
        reply = conversation.read_reply(response)
        if reply is not None:
            self._on_reply(opened, reply)

    def _on_reply(self, opened: Opened, reply: conversation.Reply) -> None:
        if reply.model is not None:
            opened.set(semconv.RESPONSE_MODEL, reply.model)
            opened.set(semconv.OI_MODEL_NAME, reply.model)
        if reply.response_id is not None:
            opened.set(semconv.RESPONSE_ID, reply.response_id)
        if reply.finish_reason is not None:
            opened.span.set_attribute(semconv.FINISH_REASONS, [clean(reply.finish_reason)])
            opened.set(semconv.OI_FINISH_REASON, reply.finish_reason)
        if reply.usage:
            opened.span.set_attributes(conversation.usage_attributes(reply.usage))
        if content().replies:
            opened.set_all(conversation.openinference_messages(semconv.OI_OUTPUT_MESSAGES, [reply.turn]))
            opened.set(
                semconv.OUTPUT_MESSAGES, conversation.genai_messages([reply.turn], reply.finish_reason)
            )


class Agent(Kind):
    """One run of an agent."""

    is_run = True

    def __init__(
        self, function: Callable[..., Any], name: str | None, *, step_cap: int | None, version: str | None
    ) -> None:
        super().__init__(function, name)
        self.declare(
            OI_KIND="AGENT",
            OPERATION="invoke_agent",
            AGENT_NAME=self.name,
            OI_AGENT_NAME=self.name,
            STEP_CAP=step_cap,
            AGENT_VERSION=version,
        )

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - the interface's
        return f"invoke_agent {self.name}"

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        value = next(iter(arguments.values())) if arguments and len(arguments) == 1 else arguments
        opened.tokens.append(memory.enter(self.name, None if value is None else to_text(value)[0]))

    def remember_result(self, opened: Opened, result: object) -> None:
        """Nothing: an agent's answer ends its run."""

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        if content().inputs and arguments:
            value = next(iter(arguments.values())) if len(arguments) == 1 else arguments
            _text(opened, semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE, value)

    def on_result(self, opened: Opened, result: object) -> None:
        if content().outputs and result is not None:
            _text(opened, semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE, result)


def _text(opened: Opened, key: str, mime_key: str, value: object) -> None:
    text, is_json = to_text(value)
    opened.set(key, text)
    opened.span.set_attribute(mime_key, semconv.JSON_MIME if is_json else semconv.TEXT_MIME)

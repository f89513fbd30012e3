"""``@agent``, ``@model`` and ``@tool``: one span per call, and the host none the wiser.

The wrapped function runs outside every guard: its result and its exception are what they were.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping
from contextvars import Token
from typing import Any, Literal, ParamSpec, TypeVar, overload

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Status, StatusCode

from redfirst.evaluators import semconv
from redfirst.instrumentation import conversation, door, run
from redfirst.instrumentation.capture import bounded, plain, to_json, to_text
from redfirst.instrumentation.guard import guarded
from redfirst.instrumentation.provider import content, tracer

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger("redfirst.instrumentation")


class _Open:
    """A span that was begun: what ``finish`` and ``fail`` need to end it once."""

    __slots__ = ("notes", "run_token", "span", "token")

    def __init__(self, span: trace.Span, token: Token[Any]) -> None:
        self.span = span
        self.token = token
        self.run_token: Token[run.Run | None] | None = None
        self.notes: list[dict[str, object]] = []

    def set(self, key: str, text: str) -> None:
        kept, note = bounded(text)
        if note is not None:
            self.notes.append({"attribute": key, **note})
        self.span.set_attribute(key, kept)

    def set_all(self, pairs: Iterable[tuple[str, str]]) -> None:
        for key, text in pairs:
            self.set(key, text)

    def close(self) -> None:
        if self.notes:
            self.span.set_attribute(semconv.TRUNCATED, to_json(self.notes))
        self.span.end()


class _Kind:
    """What one kind of span records of a call. One instance per decorated function."""

    attributes: dict[str, Any]
    door_kind: Literal["tool", "model"] | None = None

    def __init__(self, function: Callable[..., Any], name: str | None) -> None:
        self.function = function
        self.name = name or function.__name__
        self.signature = inspect.signature(function)
        first = next(iter(self.signature.parameters), None)
        self.bound_to = first if first in ("self", "cls") else None

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - subclasses use it
        return self.name

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The call's arguments by parameter name, ``**kwargs`` spread out.

        Raises:
            TypeError: as the call itself would, when they do not fit.
        """
        found: dict[str, Any] = {}
        for key, value in self.signature.bind(*args, **kwargs).arguments.items():
            if key == self.bound_to:
                continue
            if self.signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
                found.update(value)
            else:
                found[key] = value
        return found

    def on_call(self, opened: _Open, arguments: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def on_result(self, opened: _Open, result: object) -> None:
        raise NotImplementedError

    # -- the three moments of a call; each may fail on our side without the host noticing

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Open | None:
        opened: _Open | None = None
        with guarded("open a span"):
            try:
                arguments: dict[str, Any] | None = self.arguments(args, kwargs)
            except TypeError:
                arguments = None  # the call itself raises it to the caller a moment later
            span = tracer().start_span(self.span_name(arguments), attributes=self.attributes)
            opened = _Open(span, otel_context.attach(trace.set_span_in_context(span)))
            if span.is_recording() and arguments is not None:
                self.on_call(opened, arguments)
        return opened

    def finish(self, opened: _Open | None, result: object) -> None:
        if opened is None:
            return
        with guarded("detach a span"):
            self.leave(opened)
        with guarded("record a result"):
            if opened.span.is_recording():
                self.on_result(opened, result)
                opened.span.set_status(Status(StatusCode.OK))
        with guarded("end a span"):
            opened.close()

    def fail(self, opened: _Open | None, error: BaseException) -> None:
        if opened is None:
            return
        with guarded("detach a span"):
            self.leave(opened)
        with guarded("record an exception"):
            if opened.span.is_recording():
                opened.span.record_exception(error)
                opened.span.set_attribute(semconv.ERROR_TYPE, type(error).__qualname__)
                opened.span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        with guarded("end a span"):
            opened.close()

    def leave(self, opened: _Open) -> None:
        otel_context.detach(opened.token)

    def offer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> door.Answer:
        """Ask whoever stands in the door; in production nobody does."""
        standing = door.interceptor()
        if standing is None or self.door_kind is None:
            return door.Door.PASS_THROUGH
        call = door.DoorCall(
            kind=self.door_kind,
            name=self.name,
            arguments=plain(self.arguments(args, kwargs)),
            function=self.function,
        )
        return standing.call(call)


class _Tool(_Kind):
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
    ) -> None:
        super().__init__(function, name)
        self.attributes = {
            semconv.OI_KIND: "TOOL",
            semconv.OPERATION: "execute_tool",
            semconv.OI_TOOL_NAME: self.name,
            semconv.TOOL_NAME: self.name,
        }
        if effect is not None:
            self.attributes[semconv.TOOL_EFFECT] = effect
        if idempotent is not None:
            self.attributes[semconv.TOOL_IDEMPOTENT] = idempotent
        if poll:
            self.attributes[semconv.TOOL_POLL] = True
        if description := inspect.getdoc(function):
            self.attributes[semconv.TOOL_DESCRIPTION] = self.attributes[semconv.OI_TOOL_DESCRIPTION] = (
                description
            )
        if schema is not None:
            describe = getattr(schema, "model_json_schema", None)
            self.attributes[semconv.OI_TOOL_PARAMETERS] = to_json(
                describe() if callable(describe) else schema
            )

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - the interface's
        return f"execute_tool {self.name}"

    def on_call(self, opened: _Open, arguments: Mapping[str, Any]) -> None:
        if content().inputs:
            text = to_json(arguments)
            opened.set(semconv.TOOL_CALL_ARGUMENTS, text)
            opened.set(semconv.INPUT_VALUE, text)
            opened.span.set_attribute(semconv.INPUT_MIME_TYPE, semconv.JSON_MIME)

    def on_result(self, opened: _Open, result: object) -> None:
        if content().outputs:
            text = to_json(result)
            opened.set(semconv.TOOL_CALL_RESULT, text)
            opened.set(semconv.OUTPUT_VALUE, text)
            opened.span.set_attribute(semconv.OUTPUT_MIME_TYPE, semconv.JSON_MIME)


class _Model(_Kind):
    door_kind = "model"

    def __init__(self, function: Callable[..., Any], name: str | None, *, provider: str | None) -> None:
        super().__init__(function, name)
        self.attributes = {semconv.OI_KIND: "LLM", semconv.OPERATION: "chat"}
        if provider is not None:
            self.attributes[semconv.PROVIDER] = self.attributes[semconv.OI_PROVIDER] = provider

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:
        model = (arguments or {}).get("model")
        return f"chat {model}" if isinstance(model, str) else "chat"

    def on_call(self, opened: _Open, arguments: Mapping[str, Any]) -> None:
        model = arguments.get("model")
        if isinstance(model, str):
            opened.span.set_attribute(semconv.REQUEST_MODEL, model)
            opened.span.set_attribute(semconv.OI_MODEL_NAME, model)
        if not content().inputs:
            return
        request = plain(arguments)
        turns = conversation.read_messages(request.get("messages", request.get("input")))
        if turns is not None:
            flattened = list(conversation.openinference_messages(semconv.OI_INPUT_MESSAGES, turns))
            if len(flattened) <= conversation.FLATTENED_LIMIT:
                opened.set_all(flattened)
            opened.set(semconv.INPUT_MESSAGES, conversation.genai_messages(turns))
        tools = request.get("tools")
        if isinstance(tools, list):
            opened.set(semconv.TOOL_DEFINITIONS, to_json(tools))
        opened.set(semconv.INPUT_VALUE, to_json(request))
        opened.span.set_attribute(semconv.INPUT_MIME_TYPE, semconv.JSON_MIME)

    def on_result(self, opened: _Open, result: object) -> None:
        response = plain(result)
        reply = conversation.read_reply(response)
        if reply is not None:
            self._on_reply(opened, reply)
        if content().outputs:
            opened.set(semconv.OUTPUT_VALUE, to_json(response))
            opened.span.set_attribute(semconv.OUTPUT_MIME_TYPE, semconv.JSON_MIME)

    def _on_reply(self, opened: _Open, reply: conversation.Reply) -> None:
        if reply.model is not None:
            opened.span.set_attribute(semconv.RESPONSE_MODEL, reply.model)
            opened.span.set_attribute(semconv.OI_MODEL_NAME, reply.model)
        if reply.response_id is not None:
            opened.span.set_attribute(semconv.RESPONSE_ID, reply.response_id)
        if reply.finish_reason is not None:
            opened.span.set_attribute(semconv.FINISH_REASONS, [reply.finish_reason])
            opened.span.set_attribute(semconv.OI_FINISH_REASON, reply.finish_reason)
        if reply.usage:
            opened.span.set_attributes(conversation.usage_attributes(reply.usage))
        if content().outputs:
            opened.set_all(conversation.openinference_messages(semconv.OI_OUTPUT_MESSAGES, [reply.turn]))
            opened.set(
                semconv.OUTPUT_MESSAGES, conversation.genai_messages([reply.turn], reply.finish_reason)
            )


class _Agent(_Kind):
    def __init__(
        self, function: Callable[..., Any], name: str | None, *, step_cap: int | None, version: str | None
    ) -> None:
        super().__init__(function, name)
        self.attributes = {
            semconv.OI_KIND: "AGENT",
            semconv.OPERATION: "invoke_agent",
            semconv.AGENT_NAME: self.name,
            semconv.OI_AGENT_NAME: self.name,
        }
        if step_cap is not None:
            self.attributes[semconv.STEP_CAP] = step_cap
        if version is not None:
            self.attributes[semconv.AGENT_VERSION] = version

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:  # noqa: ARG002 - the interface's
        return f"invoke_agent {self.name}"

    def open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Open | None:
        opened = super().open(args, kwargs)
        if opened is not None:
            opened.run_token = run._current.set(run.Run(opened.span))  # noqa: SLF001 - one module in two files
        return opened

    def leave(self, opened: _Open) -> None:
        if opened.run_token is not None:
            run._current.reset(opened.run_token)  # noqa: SLF001 - one module in two files
        super().leave(opened)

    def on_call(self, opened: _Open, arguments: Mapping[str, Any]) -> None:
        if content().inputs:
            value = next(iter(arguments.values())) if len(arguments) == 1 else arguments
            _text(opened, semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE, value)

    def on_result(self, opened: _Open, result: object) -> None:
        if content().outputs and result is not None:
            _text(opened, semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE, result)


def _text(opened: _Open, key: str, mime_key: str, value: object) -> None:
    text, is_json = to_text(value)
    opened.set(key, text)
    opened.span.set_attribute(mime_key, semconv.JSON_MIME if is_json else semconv.TEXT_MIME)


def _wrap(function: Callable[P, R], kind: _Kind) -> Callable[P, R]:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        _log.warning("%s is a generator function, which is not traced; it is left as it is", kind.name)
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: P.args, **kwargs: P.kwargs) -> Any:
            opened = kind.open(args, kwargs)
            try:
                answer = kind.offer(args, kwargs)
                result = (
                    await function(*args, **kwargs) if answer is door.Door.PASS_THROUGH else _given(answer)
                )
            except BaseException as error:
                kind.fail(opened, error)
                raise
            kind.finish(opened, result)
            return result

        return asynchronous  # type: ignore[return-value] # R is the coroutine's type

    @functools.wraps(function)
    def synchronous(*args: P.args, **kwargs: P.kwargs) -> R:
        opened = kind.open(args, kwargs)
        try:
            answer = kind.offer(args, kwargs)
            result = function(*args, **kwargs) if answer is door.Door.PASS_THROUGH else _given(answer)
        except BaseException as error:
            kind.fail(opened, error)
            raise
        kind.finish(opened, result)
        return result

    return synchronous


def _given(answer: door.Answer) -> Any:
    if isinstance(answer, door.Failed):
        raise answer.error
    if isinstance(answer, door.Played):
        return answer.value
    raise AssertionError(answer)


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    effect: Literal["read", "write", "control"] | None = None,
    idempotent: bool | None = None,
    poll: bool = False,
    schema: object = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    effect: Literal["read", "write", "control"] | None = None,
    idempotent: bool | None = None,
    poll: bool = False,
    schema: object = None,
) -> Any:
    """Record each call of a tool, and let replay answer it.

    Args:
        name: the tool's name as the model knows it (default: the function's).
        effect: whether a call changes the world. Without it no check of writes can fire.
        idempotent: whether repeating a call has no further effect.
        poll: repeated equal calls are how this tool is meant to be used.
        schema: JSON Schema of the arguments, or a pydantic model class.
    """

    def decorate(target: Callable[P, R]) -> Callable[P, R]:
        return _wrap(
            target, _Tool(target, name, effect=effect, idempotent=idempotent, poll=poll, schema=schema)
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
        return _wrap(target, _Model(target, name, provider=provider))

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
        return _wrap(target, _Agent(target, name, step_cap=step_cap, version=version))

    return decorate if function is None else decorate(function)

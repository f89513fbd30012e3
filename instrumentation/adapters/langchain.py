"""LangChain and LangGraph: chat models and tools come to the door inside their own callbacks.

So whatever instruments the program by callbacks sees a run as ever. A streamed answer comes in one
chunk; caches and rate limiters are left out, as a recording needs neither.
"""

from __future__ import annotations

import copy
import functools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from redfirst.instrumentation import door
from redfirst.instrumentation.adapters import hold
from redfirst.instrumentation.adapters.recorded import arguments_of, as_promised, comes_itself, offer_model
from redfirst.instrumentation.capture import plain, to_json
from redfirst.instrumentation.conversation import Reply, read_reply

_OF_A_MESSAGE = ("type", "content", "name", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")


def models(module: ModuleType) -> None:
    """Have every ``BaseChatModel`` answered at the door."""
    base = module.BaseChatModel
    generate, agenerate, should_stream, stream, astream = hold(
        base, "_generate_with_cache", "_agenerate_with_cache", "_should_stream", "stream", "astream"
    )

    @functools.wraps(generate)
    def generated(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
        answer = _ask(self, messages, stop, more)
        if answer is door.Door.PASS_THROUGH:
            with door.let_through():
                return generate(self, messages, stop=stop, run_manager=run_manager, **more)
        return _result(door.given(answer))

    @functools.wraps(agenerate)
    async def agenerated(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any
    ) -> Any:
        answer = _ask(self, messages, stop, more)
        if answer is door.Door.PASS_THROUGH:
            with door.let_through():
                return await agenerate(self, messages, stop=stop, run_manager=run_manager, **more)
        return _result(door.given(answer))

    @functools.wraps(should_stream)
    def streams(self: Any, **more: Any) -> bool:
        return door.interceptor() is None and bool(should_stream(self, **more))

    @functools.wraps(stream)
    def streamed(self: Any, *args: Any, **more: Any) -> Any:
        for part in stream(self, *args, **more):
            yield _chunk(part)

    @functools.wraps(astream)
    async def astreamed(self: Any, *args: Any, **more: Any) -> Any:
        async for part in astream(self, *args, **more):
            yield _chunk(part)

    base._generate_with_cache = generated
    base._agenerate_with_cache = agenerated
    base._should_stream = streams
    base.stream = streamed
    base.astream = astreamed


def _ask(model: Any, messages: Sequence[Any], stop: Any, more: Mapping[str, Any]) -> door.Answer:
    if door.interceptor() is None:
        return door.Door.PASS_THROUGH
    given = dict(model._get_invocation_params(stop=stop, **more))
    name = given.pop("model", None) or given.pop("model_name", None)
    request = {"model": name, "messages": [_said(message) for message in messages], **given}
    return offer_model(type(model).__name__, request)


def _said(message: Any) -> dict[str, Any]:
    """A message without what names it only in this process."""
    whole = plain(message)
    return {key: whole[key] for key in _OF_A_MESSAGE if whole.get(key) not in (None, [])}


def _result(response: Any) -> Any:
    from langchain_core.messages import AIMessage
    from langchain_core.outputs import ChatGeneration, ChatResult

    reply = read_reply(response)
    if reply is None:
        raise TypeError(f"no recorded reply of a chat model: {to_json(response)[:200]}")
    calls, broken = [], []
    for wanted in reply.turn.calls:
        arguments = arguments_of(wanted.arguments)
        if arguments is None:
            said = {"name": wanted.name, "args": wanted.arguments, "id": wanted.call_id, "error": None}
            broken.append(said | {"type": "invalid_tool_call"})
        else:
            calls.append({"name": wanted.name, "args": arguments, "id": wanted.call_id, "type": "tool_call"})
    told = {"model_name": reply.model, "finish_reason": reply.finish_reason}
    message = AIMessage(
        content=reply.turn.text or "",
        tool_calls=calls,
        invalid_tool_calls=broken,
        id=f"run-{uuid.uuid4()}",  # of the frozen world, unlike the ids of LangChain's own
        response_metadata={key: value for key, value in told.items() if value is not None},
        usage_metadata=_usage(reply),
    )
    generation = ChatGeneration(message=message, generation_info={"finish_reason": reply.finish_reason})
    usage = response.get("usage") if isinstance(response, Mapping) else None
    return ChatResult(
        generations=[generation], llm_output={"model_name": reply.model, "token_usage": usage or {}}
    )


def _usage(reply: Reply) -> Any:
    from redfirst.evaluators import semconv

    counts = reply.usage or {}
    read, written = counts.get(semconv.INPUT_TOKENS), counts.get(semconv.OUTPUT_TOKENS)
    if read is None or written is None:
        return None
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_token_details": {"cache_read": counts.get(semconv.CACHED_TOKENS, 0)},
        "output_token_details": {"reasoning": counts.get(semconv.REASONING_TOKENS, 0)},
    }


def _chunk(part: Any) -> Any:
    """A whole message as the one chunk of its stream."""
    from langchain_core.messages import AIMessage, AIMessageChunk

    if not isinstance(part, AIMessage) or isinstance(part, AIMessageChunk):
        return part
    return AIMessageChunk(
        content=part.content,
        tool_calls=part.tool_calls,
        invalid_tool_calls=part.invalid_tool_calls,
        id=part.id,
        response_metadata=part.response_metadata,
        usage_metadata=part.usage_metadata,
    )


def tools(module: ModuleType) -> None:
    """Have every ``BaseTool`` answered at the door."""
    base = module.BaseTool
    run, arun, _ = hold(base, "run", "arun", "_filter_injected_args")

    @functools.wraps(run)
    def ran(self: Any, tool_input: Any, *args: Any, **more: Any) -> Any:
        standing = door.interceptor()
        function = _function(self)
        if standing is None or comes_itself(function):
            return run(self, tool_input, *args, **more)
        played = _Played(self, function, tool_input, more.get("tool_call_id"))
        try:
            return run(played.tool(), tool_input, *args, **more)
        finally:
            if not played.asked:
                standing.refused(played.call)

    @functools.wraps(arun)
    async def aran(self: Any, tool_input: Any, *args: Any, **more: Any) -> Any:
        standing = door.interceptor()
        function = _function(self)
        if standing is None or comes_itself(function):
            return await arun(self, tool_input, *args, **more)
        played = _Played(self, function, tool_input, more.get("tool_call_id"))
        try:
            return await arun(played.tool(), tool_input, *args, **more)
        finally:
            if not played.asked:
                standing.refused(played.call)

    base.run = ran
    base.arun = aran


def _function(tool: Any) -> Callable[..., Any]:
    found: Callable[..., Any] = (
        getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)._run
    )
    return found


def _raise_own(answer: door.Answer) -> None:
    """An error that a tool says of itself, as ``handle_tool_error`` knows it."""
    if isinstance(answer, door.Failed) and answer.own:
        from langchain_core.tools import ToolException

        raise ToolException(str(answer.error))


class _Played:
    """One call of a tool, answered where the tool's own function would have run: after its checks of the input."""

    def __init__(self, tool: Any, function: Callable[..., Any], tool_input: Any, call_id: str | None) -> None:
        self._tool = tool
        self._call_id = call_id
        named = (
            tool._filter_injected_args(tool_input)
            if isinstance(tool_input, dict)
            else {next(iter(tool.args), "input"): tool_input}
        )
        self.call = door.DoorCall(kind="tool", name=tool.name, arguments=plain(named), function=function)
        self.asked = False

    def tool(self) -> Any:
        """The tool with the recording in place of its function."""
        stand_in = copy.copy(self._tool)

        def _run(*_args: Any, **_more: Any) -> Any:
            answer = self._asked()
            _raise_own(answer)
            return self._told(answer, door.given(answer))

        async def _arun(*_args: Any, **_more: Any) -> Any:
            answer = self._asked()
            _raise_own(answer)
            return self._told(answer, await door.arrived(answer))

        object.__setattr__(stand_in, "_run", _run)
        object.__setattr__(stand_in, "_arun", _arun)
        return stand_in

    def _asked(self) -> door.Answer:
        self.asked = True
        standing = door.interceptor()
        if standing is None:
            raise AssertionError("the door was left in the middle of a call")
        return standing.call(self.call)

    def _told(self, answer: door.Answer, given: Any) -> Any:
        value = as_promised(given, self.call.function)
        pair = self._tool.response_format == "content_and_artifact"
        if isinstance(answer, door.Played) and answer.failed and self._call_id is not None:
            from langchain_core.messages import ToolMessage

            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            value = ToolMessage(text, name=self.call.name, tool_call_id=self._call_id, status="error")
        return (value, None) if pair else value

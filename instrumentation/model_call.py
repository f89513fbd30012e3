"""A call of a model on its span."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from redfirst.evaluators import semconv
from redfirst.instrumentation import conversation, memory
from redfirst.instrumentation.capture import clean, plain, to_json
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.model_requests import definitions_of, messages_of, model_of
from redfirst.instrumentation.opened import Opened
from redfirst.instrumentation.provider import settings
from redfirst.instrumentation.stream_replies import whole


class Model(Kind):
    """A call of a model."""

    door_kind = "model"
    oi_kind = "LLM"
    operation = "chat"
    named = False

    def __init__(
        self, function: Callable[..., Any], name: str | None, *, provider: str | None = None
    ) -> None:
        super().__init__(function, name)
        self.declare(PROVIDER=provider, OI_PROVIDER=provider)

    def remember(self, opened: Opened, arguments: Mapping[str, Any] | None) -> None:
        opened.asked = time.time_ns(), messages_of(plain(arguments or {}))

    def remember_result(self, opened: Opened, result: object) -> None:
        frame = memory.current()
        if frame is not None and opened.asked is not None:
            frame.answered(*opened.asked, conversation.read_reply(whole(plain(result))))

    def span_name(self, arguments: Mapping[str, Any] | None) -> str:
        model = model_of(arguments or {})
        return "chat" if model is None else clean(f"chat {model}")

    def on_call(self, opened: Opened, arguments: Mapping[str, Any]) -> None:
        model = model_of(arguments)
        if model is not None:
            opened.say(model, semconv.REQUEST_MODEL, semconv.OI_MODEL_NAME)
        if not settings.content.requests:
            return
        request = opened.revealed(arguments, semconv.INPUT_VALUE, semconv.INPUT_MESSAGES)
        turns = messages_of(request)
        if turns is not None:
            opened.say_all(conversation.openinference_messages(semconv.OI_INPUT_MESSAGES, turns))
            opened.say_all([(semconv.INPUT_MESSAGES, conversation.genai_messages(turns))])
        tools = definitions_of(request)
        if tools is not None:
            opened.say_all([(semconv.TOOL_DEFINITIONS, to_json(tools))])
        opened.say_all([(semconv.INPUT_VALUE, to_json(request))])
        opened.data[semconv.INPUT_MIME_TYPE] = semconv.JSON_MIME

    def on_items(self, opened: Opened, items: list[Any], result: object) -> None:
        self.on_result(opened, items if result is None else result)

    def on_result(self, opened: Opened, result: object) -> None:
        response = whole(opened.revealed(result, semconv.OUTPUT_VALUE, semconv.OUTPUT_MESSAGES))
        if settings.content.replies:
            opened.say_all([(semconv.OUTPUT_VALUE, to_json(response))])
            opened.data[semconv.OUTPUT_MIME_TYPE] = semconv.JSON_MIME
        reply = conversation.read_reply(response)
        if reply is not None:
            self._on_reply(opened, reply)

    def _on_reply(self, opened: Opened, reply: conversation.Reply) -> None:
        if reply.model is not None:
            opened.say_all([(semconv.RESPONSE_MODEL, reply.model), (semconv.OI_MODEL_NAME, reply.model)])
        if reply.response_id is not None:
            opened.say_all([(semconv.RESPONSE_ID, reply.response_id)])
        if reply.finish_reason is not None:
            opened.data[semconv.FINISH_REASONS] = (clean(reply.finish_reason),)
            opened.say_all([(semconv.OI_FINISH_REASON, reply.finish_reason)])
        if reply.usage:
            opened.data.update(conversation.usage_attributes(reply.usage))
        if settings.content.replies:
            opened.say_all(conversation.openinference_messages(semconv.OI_OUTPUT_MESSAGES, [reply.turn]))
            said = conversation.genai_messages([reply.turn], reply.finish_reason)
            opened.say_all([(semconv.OUTPUT_MESSAGES, said)])

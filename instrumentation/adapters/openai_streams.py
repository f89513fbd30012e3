"""Recorded answers of the OpenAI client as the streams that were asked for.

A recording keeps the whole answer, not how it was cut: texts come in words, a tool call's arguments in one part.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

_RAW = "X-Stainless-Raw-Response"
_WORDS = re.compile(r"\s*\S+\s*|\s+")


def parts_of_completion(whole: Any, more: Mapping[str, Any]) -> list[Any]:
    """A ``ChatCompletion`` as its chunks."""
    from openai.types.chat import ChatCompletionChunk

    choice = whole.choices[0]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _WORDS.findall(choice.message.content or "")]
    deltas += [
        {"tool_calls": [{"index": place, **call.model_dump()}]}
        for place, call in enumerate(choice.message.tool_calls or ())
    ]
    head = {"id": whole.id, "object": "chat.completion.chunk", "created": whole.created, "model": whole.model}
    bodies = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    bodies.append({"choices": [{"index": 0, "delta": {}, "finish_reason": choice.finish_reason}]})
    options = more.get("stream_options")
    if isinstance(options, Mapping) and options.get("include_usage"):
        bodies.append({"choices": [], "usage": whole.usage.model_dump()})
    return [ChatCompletionChunk.model_validate({**head, **body}) for body in bodies]


def parts_of_response(whole: Any, _more: Mapping[str, Any]) -> list[Any]:
    """A ``Response`` as its events."""
    from openai.types.responses import ResponseStreamEvent
    from pydantic import TypeAdapter

    body = whole.model_dump()
    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    events: list[dict[str, Any]] = [
        {"type": f"response.{step}", "response": begun} for step in ("created", "in_progress")
    ]
    for place, item in enumerate(body["output"]):
        at = {"output_index": place, "item_id": item["id"]}
        empty: dict[str, Any] = {"arguments": ""} if item["type"] == "function_call" else {"content": []}
        added = {"item": {**item, **empty, "status": "in_progress"}, "output_index": place}
        events.append({"type": "response.output_item.added", **added})
        events += _of_call(item, at) if item["type"] == "function_call" else _of_message(item, at)
        events.append({"type": "response.output_item.done", "item": item, "output_index": place})
    events.append({"type": "response.completed", "response": body})
    read: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    return [read.validate_python({**event, "sequence_number": n}) for n, event in enumerate(events)]


def _of_call(item: Mapping[str, Any], at: Mapping[str, Any]) -> list[dict[str, Any]]:
    kind = "response.function_call_arguments"
    done = {"arguments": item["arguments"], "name": item["name"]}
    return [
        {"type": f"{kind}.delta", "delta": item["arguments"], **at},
        {"type": f"{kind}.done", **done, **at},
    ]


def _of_message(item: Mapping[str, Any], at: Mapping[str, Any]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for place, part in enumerate(item["content"]):
        here = {"content_index": place, **at}
        events.append({"type": "response.content_part.added", "part": {**part, "text": ""}, **here})
        events += [
            {"type": "response.output_text.delta", "delta": word, "logprobs": [], **here}
            for word in _WORDS.findall(part["text"])
        ]
        events.append({"type": "response.output_text.done", "text": part["text"], "logprobs": [], **here})
        events.append({"type": "response.content_part.done", "part": part, **here})
    return events


class NoConnection:
    """In place of the response that an answer is read from."""

    status_code = 200
    request_id = None
    headers: Mapping[str, str] = MappingProxyType({})

    def close(self) -> None:
        """There is nothing to close."""

    async def aclose(self) -> None:
        """There is nothing to close."""


class RawAnswer(NoConnection):
    """What ``with_raw_response`` gives: the answer once it is parsed."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def parse(self) -> Any:
        """The answer."""
        return self._answer


class AsyncStreamedAnswer(NoConnection):
    """What ``with_streaming_response`` gives on an event loop."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    async def parse(self) -> Any:
        """The answer."""
        return self._answer

    async def close(self) -> None:  # type: ignore[override]
        """There is nothing to close."""


def as_raw(answer: Any, headers: Any, *, asynchronous: bool) -> Any:
    """The answer in the wrapping that was asked for by the client's own header."""
    asked = headers.get(_RAW) if isinstance(headers, Mapping) else None
    if asked is None:
        return answer
    return AsyncStreamedAnswer(answer) if asked == "stream" and asynchronous else RawAnswer(answer)


def stream_of(parts: Sequence[Any], *, asynchronous: bool) -> Any:
    """The parts as the client's own kind of stream."""
    import openai

    class Played(openai.Stream[Any]):
        """A stream that no connection stands behind."""

        def __init__(self) -> None:
            self._iterator: Iterator[Any] = iter(parts)
            self.response: Any = NoConnection()

    class AsyncPlayed(openai.AsyncStream[Any]):
        """The same for an event loop."""

        def __init__(self) -> None:
            self._iterator: AsyncIterator[Any] = _each(parts)
            self.response: Any = NoConnection()

    return AsyncPlayed() if asynchronous else Played()


async def _each(parts: Sequence[Any]) -> AsyncIterator[Any]:
    for part in parts:
        yield part

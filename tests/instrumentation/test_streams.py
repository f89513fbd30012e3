"""A stream's span ends once, with the right status, however the stream ends, and is never current outside of a step."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import inspect
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import pytest
from opentelemetry import trace

from redfirst.instrumentation import agent, chain, current_run, model, session, span, tool


@tool
def count(to: int) -> Iterator[int]:
    """Count."""
    for n in range(to):
        current_inside.append(trace.get_current_span().get_span_context().span_id)
        yield n


@tool
async def count_later(to: int) -> AsyncIterator[int]:
    """Count."""
    for n in range(to):
        current_inside.append(trace.get_current_span().get_span_context().span_id)
        await asyncio.sleep(0)
        yield n


current_inside: list[int] = []


def current() -> bool:
    return trace.get_current_span().get_span_context().is_valid


def run_out() -> None:
    assert list(count(3)) == [0, 1, 2]


def broken_off() -> None:
    for _ in count(3):
        assert not current()
        break


def sliced() -> None:
    assert list(itertools.islice(count(9), 2)) == [0, 1]
    gc.collect()


def closed() -> None:
    stream = count(3)
    next(stream)
    stream.close()
    stream.close()


def collected() -> None:
    stream: Any = count(3)
    next(stream)
    del stream
    gc.collect()


def raised_into() -> None:
    stream: Any = count(3)
    next(stream)
    with pytest.raises(KeyError):
        stream.throw(KeyError("k"))


def run_out_later() -> None:
    async def asked() -> list[int]:
        return [n async for n in count_later(3)]

    assert asyncio.run(asked()) == [0, 1, 2]


def broken_off_later() -> None:
    async def asked() -> None:
        async for _ in count_later(3):
            assert not current()
            break

    asyncio.run(asked())


def closed_later() -> None:
    async def asked() -> None:
        stream: Any = count_later(3)
        await anext(stream)
        await stream.aclose()

    asyncio.run(asked())


def left_to_the_loop() -> None:
    async def asked() -> None:
        left.append(count_later(3))
        await anext(left[0])

    left: list[Any] = []
    asyncio.run(asked())


def cancelled() -> None:
    async def forever() -> None:
        async for _ in count_later(10**9):
            pass

    async def asked() -> None:
        task = asyncio.create_task(forever())
        await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(asked())


WAYS: list[tuple[Callable[[], None], str, bool]] = [
    (run_out, "OK", False),
    (broken_off, "OK", True),
    (sliced, "OK", True),
    (closed, "OK", True),
    (collected, "OK", True),
    (raised_into, "ERROR", False),
    (run_out_later, "OK", False),
    (broken_off_later, "OK", True),
    (closed_later, "OK", True),
    (left_to_the_loop, "OK", True),
    (cancelled, "ERROR", False),
]


@pytest.mark.parametrize(("way", "status", "early"), WAYS, ids=[way.__name__ for way, *_ in WAYS])
def test_however_a_stream_ends_its_span_ends_once(
    way: Callable[[], None], status: str, early: bool, spans: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Not at the first item, not twice, and without "Failed to detach context"."""
    current_inside.clear()
    way()

    span = spans.one()
    assert span.status.status_code.name == status
    assert span.attributes.get("redfirst.stream.closed_early", False) is early
    assert set(current_inside) == {span.context.span_id}
    assert not current()
    assert not caplog.records


def test_a_stream_that_was_never_asked_is_no_call(spans: Any) -> None:
    """The function has not begun; neither has a span."""
    count(3)
    assert not spans.all()


def test_a_stream_may_be_asked_from_another_thread_and_context_each_time(
    spans: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Web servers hand a response's generator to a pool of threads."""
    stream = count(3)
    with ThreadPoolExecutor(3) as pool:
        items = [pool.submit(contextvars.copy_context().run, next, stream, None).result() for _ in range(4)]

    assert items == [0, 1, 2, None]
    assert spans.one().attributes["output.value"] == "[0,1,2]"
    assert not caplog.records


def test_what_is_called_in_a_stream_is_below_it_and_what_its_consumer_calls_is_not(spans: Any) -> None:
    """Also when the body itself holds a span across its items."""

    @tool
    def inside() -> None: ...

    @tool
    def outside() -> None: ...

    @agent
    def talk() -> Iterator[str]:
        current_run().event("begun")
        with span("chain", "held"):
            for word in ("a", "b"):
                inside()
                yield word
        inside()

    for _ in talk():
        outside()

    names = {one.context.span_id: one.name for one in spans.all()}
    parents = [(one.name, one.parent and names.get(one.parent.span_id)) for one in spans.all()]
    assert parents.count(("execute_tool outside", None)) == 2
    assert parents.count(("execute_tool inside", "held")) == 2
    assert parents.count(("execute_tool inside", "invoke_agent talk")) == 1
    inner = [one for one in spans.all() if one.name == "execute_tool inside"]
    assert {one.context.trace_id for one in inner} == {spans.one("invoke_agent talk").context.trace_id}
    assert [event.name for event in spans.one("invoke_agent talk").events] == ["redfirst.event"]
    assert spans.one("invoke_agent talk").attributes["output.value"] == "ab"


def test_a_stream_keeps_its_whole_protocol(spans: Any) -> None:
    """What is sent, thrown, returned and yielded is what it would be without us."""

    def told() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"
        return "end"

    for function in (told, chain(told)):
        stream = function()
        assert (next(stream), stream.send("x"), stream.throw(KeyError())) == (1, "x", "caught")
        with pytest.raises(StopIteration) as ended:
            next(stream)
        assert ended.value.value == "end"
    assert inspect.isgeneratorfunction(chain(told))
    assert spans.one().attributes["output.value"] == "end"


def test_an_async_stream_keeps_its_whole_protocol(spans: Any) -> None:
    """The same of asend and athrow."""

    async def told() -> Any:
        got = yield 1
        try:
            yield got
        except KeyError:
            yield "caught"

    async def asked(function: Any) -> None:
        stream = function()
        assert await anext(stream) == 1
        assert await stream.asend("x") == "x"
        assert await stream.athrow(KeyError()) == "caught"
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    for function in (told, chain(told)):
        asyncio.run(asked(function))
    assert inspect.isasyncgenfunction(chain(told))
    assert json.loads(spans.one().attributes["output.value"]) == [1, "x", "caught"]


def test_a_stream_that_ignores_being_closed_raises_its_own_error(spans: Any) -> None:
    """That is the generator's fault, and its consumer hears of it as ever."""

    @tool
    def stubborn() -> Iterator[int]:
        try:
            yield 1
        except GeneratorExit:
            yield 2

    stream: Any = stubborn()
    next(stream)
    with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
        stream.close()
    assert spans.one().status.status_code.name == "ERROR"


def test_a_call_that_returns_before_its_work_is_done_ends_when_the_work_does(spans: Any) -> None:
    """A plain function gives a generator, a coroutine or an async generator away: the span is theirs."""

    def numbers() -> Iterator[int]:
        yield 1
        with span("chain", "late"):
            yield 2

    async def number() -> int:
        await asyncio.sleep(0)
        return 7

    async def numbers_later() -> AsyncIterator[int]:
        yield 1

    async def asked() -> list[int]:
        return [await tool(lambda: number())(), *[n async for n in tool(lambda: numbers_later())()]]

    stream = tool(name="gives")(lambda: numbers())()
    assert not spans.all()
    assert list(stream) == [1, 2]
    assert asyncio.run(asked()) == [7, 1]

    assert spans.parent_of("late") == "execute_tool gives"
    assert [one.attributes["output.value"] for one in spans.all() if one.name != "late"] == [
        "[1,2]",
        "7",
        "[1]",
    ]


class Stream:
    """A vendor's stream object."""

    def __init__(self) -> None:
        self.response, self.closed = "http", False
        self._pieces = iter(["Hel", "lo"])

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True


def test_a_vendors_stream_object_stays_one(spans: Any) -> None:
    """Its class, its attributes and its context manager are there still; the pieces are read on their way."""

    @model
    def chat(messages: list[Any]) -> Stream:
        return Stream()

    stream = chat([])
    assert isinstance(stream, Stream)
    assert stream.response == "http"
    with stream as opened:
        assert list(opened) == ["Hel", "lo"]
    assert stream.closed
    assert spans.one().attributes["output.value"] == '"Hello"'

    spans.clear()
    left = chat([])
    next(left)
    del left
    gc.collect()
    assert spans.one().attributes["output.value"] == '"Hel"'
    assert spans.one().attributes["redfirst.stream.closed_early"] is True
    assert not current()

    spans.clear()
    begun = chat([])
    assert next(begun) == "Hel"
    rest = iter(begun)
    del begun
    gc.collect()
    assert list(rest) == ["lo"]
    assert spans.one().attributes["output.value"] == '"Hello"'
    assert "redfirst.stream.closed_early" not in spans.one().attributes


def test_a_session_reaches_what_a_stream_does(spans: Any) -> None:
    """Session and user are those in which the stream was first asked."""

    @tool
    def inner() -> None: ...

    @agent
    def talk() -> Iterator[int]:
        inner()
        yield 1

    with session("s-1", user="ann"):
        list(talk())
    assert {span.attributes["session.id"] for span in spans.all()} == {"s-1"}
    assert {span.attributes["user.id"] for span in spans.all()} == {"ann"}
    assert {span.attributes["gen_ai.conversation.id"] for span in spans.all()} == {"s-1"}


def test_spans_reach_the_file_however_the_interpreter_ends(tmp_path: Path) -> None:
    """A stream nobody finished, one whose async loop is gone, and ``sys.exit`` inside a call."""
    path = tmp_path / "spans.jsonl"
    code = f"""
import asyncio, sys
from redfirst.instrumentation import agent, configure, tool
configure(file={str(path)!r})
@tool
def words():
    yield "a"
    yield "b"
@tool
async def later():
    yield "c"
@agent
def leave():
    sys.exit(3)
kept = words(); next(kept)
other = later()
loop = asyncio.new_event_loop()
loop.run_until_complete(anext(other))
leave()
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )

    assert done.returncode == 3, done.stderr
    found = {}
    for line in path.read_text("utf-8").splitlines():
        for scope in json.loads(line)["resourceSpans"][0]["scopeSpans"]:
            for one in scope["spans"]:
                assert one["name"] not in found
                found[one["name"]] = one["status"].get("code")
    assert found == {"execute_tool words": 1, "execute_tool later": 1, "invoke_agent leave": 2}
    assert "detach" not in done.stderr

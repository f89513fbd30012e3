"""Streams: a span lives from the first item asked for to the last one given, and is current while one is made.

Nothing is attached across a ``yield``: what the consumer does between two items is not inside the span, and a
stream may be asked from another thread, task or context each time.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any

from redfirst.instrumentation import door
from redfirst.instrumentation.exit import unfinished
from redfirst.instrumentation.guard import count, guarded
from redfirst.instrumentation.kinds import Kind
from redfirst.instrumentation.opened import Opened


def generator(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    """A generator function that traces each generator of ``function``, and answers for it in a replay."""

    @functools.wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        opened = kind.open(args, kwargs)
        try:
            answer = kind.offer(opened, args, kwargs)
            source = (
                function(*args, **kwargs) if answer is door.Door.PASS_THROUGH else iter(_played(kind, answer))
            )
        except BaseException as error:
            kind.fail(opened, error)
            raise
        return (yield from _steps(kind, opened, source))

    return traced


def async_generator(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    """The same for an async generator function."""

    @functools.wraps(function)
    async def traced(*args: Any, **kwargs: Any) -> Any:
        opened = kind.open(args, kwargs)
        try:
            answer = kind.offer(opened, args, kwargs)
            source = (
                function(*args, **kwargs)
                if answer is door.Door.PASS_THROUGH
                else _later(_played(kind, answer))
            )
        except BaseException as error:
            kind.fail(opened, error)
            raise
        stream = _async_steps(kind, opened, source)
        step = _begun_inside(stream)
        while True:  # what ``yield from`` would be
            try:
                item = await step
            except StopAsyncIteration:
                return
            try:
                given = yield item
            except GeneratorExit:
                await stream.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the stream, which raises what it makes of it
                step = stream.athrow(error)
            else:
                step = stream.asend(given)

    return traced


def _played(kind: Kind, answer: Any) -> Iterable[Any]:
    """The items of a recorded stream: those of a list, otherwise the text of all as one."""
    value = door.given(answer)
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return [value]
    count("play a stream")  # the replay is refused: which pieces the consumer had is not known
    raise TypeError(f"The recorded stream of {kind.name} is neither a list of items nor a text.")


def _begun_inside(stream: Any) -> Any:
    """The first step of a stream inside ours: the event loop closes the outermost, and that one those inside."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=None)
    try:
        return stream.__anext__()
    finally:
        sys.set_asyncgen_hooks(*hooks)


async def _later(items: Iterable[Any]) -> Any:
    for item in items:
        yield item


def _steps(kind: Kind, opened: Opened | None, source: Any) -> Any:
    """Hand on what a stream gives and takes, with the span current during each step."""
    step, value = next, None
    sends = hasattr(source, "send")
    _begun(kind, opened)
    try:
        while True:
            kind.resume(opened)
            try:
                with kind.letting_through():
                    item = source.send(value) if sends and step is next else step(source)
            except StopIteration as stop:
                kind.finish_stream(opened, stop.value)
                return stop.value
            kind.pause(opened, item)
            step = next
            try:
                value = yield item
            except GeneratorExit:
                kind.resume(opened)
                _close(source)
                kind.finish_stream(opened, None, early=True)
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the stream, which raises what it makes of it
                step = functools.partial(_throw, error)
    except GeneratorExit:
        raise
    except BaseException as error:
        kind.fail(opened, error)
        raise


async def _async_steps(kind: Kind, opened: Opened | None, source: Any) -> Any:
    thrown: BaseException | None = None
    value: Any = None
    sends, begun = inspect.isasyncgen(source), False
    _begun(kind, opened)
    try:
        while True:
            kind.resume(opened)
            try:
                with kind.letting_through():
                    if thrown is not None:
                        item = await _athrow(thrown, source)
                    elif not begun:
                        begun = True
                        item = await _begun_inside(source)
                    else:
                        item = await (source.asend(value) if sends else source.__anext__())
            except StopAsyncIteration:
                kind.finish_stream(opened, None)
                return
            kind.pause(opened, item)
            thrown = None
            try:
                value = yield item
            except GeneratorExit:
                kind.resume(opened)
                close = getattr(source, "aclose", None)
                if close is not None:
                    await close()
                kind.finish_stream(opened, None, early=True)
                raise
            except BaseException as error:  # noqa: BLE001 - handed to the stream, which raises what it makes of it
                thrown = error
    except GeneratorExit:
        raise
    except BaseException as error:
        if error is thrown and type(error).__name__ == "CancelledError":
            kind.finish_stream(
                opened, None, early=True
            )  # the loop ends before it came to closing a stream that was left
        else:
            kind.fail(opened, error)
        raise


def _begun(kind: Kind, opened: Opened | None) -> None:
    with guarded("watch over a stream"):
        if opened is not None:
            opened.abandon = kind.finish_stream
            unfinished.add(opened)


def _close(source: Any) -> None:
    close = getattr(source, "close", None)
    if close is not None:
        close()


def _throw(error: BaseException, source: Any) -> Any:
    throw = getattr(source, "throw", None)
    if throw is None:
        raise error
    return throw(error)


async def _athrow(error: BaseException, source: Any) -> Any:
    throw = getattr(source, "athrow", None)
    if throw is None:
        raise error
    return await throw(error)


def of_result(kind: Kind, opened: Opened | None, result: Any) -> Any:
    """What the caller gets where a call returned before its work was done: the same with the span's end in it.

    ``None`` where the result is complete as it stands.
    """
    if opened is None:
        return None
    if inspect.iscoroutine(result):
        kind.pause(opened)
        return _awaited(kind, opened, result)
    if inspect.isgenerator(result):
        kind.pause(opened)
        return _steps(kind, opened, result)
    if inspect.isasyncgen(result):
        kind.pause(opened)
        return _async_steps(kind, opened, result)
    if kind.door_kind == "model":
        if hasattr(type(result), "__anext__"):
            kind.pause(opened)
            return _AsyncStream(kind, opened, result)
        if hasattr(type(result), "__next__"):
            kind.pause(opened)
            return _Stream(kind, opened, result)
    return None


async def _awaited(kind: Kind, opened: Opened, result: Coroutine[Any, Any, Any]) -> Any:
    kind.resume(opened)
    try:
        with kind.letting_through():
            value = await result
    except BaseException as error:
        kind.fail(opened, error)
        raise
    later = of_result(kind, opened, value)
    if later is not None:
        return later
    kind.finish(opened, value)
    return value


class _Handed:
    """Stands for a vendor's stream object: everything but iterating is the object's own."""

    def __init__(self, kind: Kind, opened: Opened, stream: Any) -> None:
        self._redfirst = stream
        self._redfirst_kind, self._redfirst_opened = kind, opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._redfirst, name)

    @property  # type: ignore[misc] # isinstance asks for it
    def __class__(self) -> type:
        return type(self._redfirst)

    def _redfirst_end(self) -> None:
        self._redfirst_kind.finish_stream(self._redfirst_opened, None, early=True)


class _Stream(_Handed):
    def __init__(self, kind: Kind, opened: Opened, stream: Any) -> None:
        super().__init__(kind, opened, stream)
        self._redfirst_steps = _steps(kind, opened, iter(stream))
        weakref.finalize(self, kind.finish_stream, opened, None, early=True).atexit = False

    def __iter__(self) -> Iterator[Any]:
        return self  # as long as somebody iterates, it is no garbage

    def __next__(self) -> Any:
        return next(self._redfirst_steps)

    def __enter__(self) -> Any:
        self._redfirst.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        self._redfirst_end()
        return self._redfirst.__exit__(*error)

    def close(self) -> None:
        """Close the stream, and end its span."""
        self._redfirst_end()
        _close(self._redfirst)


class _AsyncStream(_Handed):
    def __init__(self, kind: Kind, opened: Opened, stream: Any) -> None:
        super().__init__(kind, opened, stream)
        self._redfirst_steps = _async_steps(kind, opened, aiter(stream))
        weakref.finalize(self, kind.finish_stream, opened, None, early=True).atexit = False

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._redfirst_steps)

    async def __aenter__(self) -> Any:
        await self._redfirst.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        self._redfirst_end()
        return await self._redfirst.__aexit__(*error)

    async def close(self) -> None:
        """Close the stream, and end its span."""
        self._redfirst_end()
        await self._redfirst.close()

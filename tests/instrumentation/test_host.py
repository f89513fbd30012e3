"""A wrapped function is the function it was."""

from __future__ import annotations

import abc
import asyncio
import functools
import inspect
import pickle
import typing
from collections.abc import Callable, Generator
from decimal import Decimal
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from redfirst.evaluators import ConfigurationError
from redfirst.instrumentation import agent, faults, model, tool

DECORATORS = [tool, model, agent, tool(name="n", effect="read"), model(provider="p"), agent(name="a")]


class Broken(Exception):
    """An exception that cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@tool
def module_level(x: int) -> int:
    """Twice."""
    return 2 * x


def refund(
    order_id: str, /, amount: Decimal = Decimal(1), *rest: int, note: str = "", **more: object
) -> dict[str, Any]:
    """Pay back."""
    return {"order_id": order_id, "amount": amount, "rest": rest, "note": note, "more": more}


@pytest.mark.parametrize("decorate", DECORATORS)
def test_signature_docstring_annotations_and_name_are_untouched(decorate: Any) -> None:
    """Frameworks that build a tool's schema from the function see the original."""
    wrapped = decorate(refund)

    assert inspect.signature(wrapped) == inspect.signature(refund)
    assert typing.get_type_hints(wrapped) == typing.get_type_hints(refund)
    assert (wrapped.__doc__, wrapped.__name__, wrapped.__qualname__, wrapped.__module__) == (
        refund.__doc__,
        refund.__name__,
        refund.__qualname__,
        refund.__module__,
    )
    assert not inspect.iscoroutinefunction(wrapped)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_coroutine_function_stays_one(decorate: Any) -> None:
    """asyncio and web frameworks ask before they await."""

    async def work(x: int) -> int:
        return x + 1

    assert inspect.iscoroutinefunction(decorate(work))
    assert asyncio.run(decorate(work)(1)) == 2


@pytest.mark.parametrize("decorate", DECORATORS)
def test_the_very_result_and_the_very_exception_come_back(decorate: Any, spans: Any) -> None:
    """No copy, no wrapper, and every end is on a span that ended once."""
    given = object()
    problem = Broken()

    def raises() -> None:
        raise problem

    async def raises_later() -> None:
        raise problem

    assert decorate(lambda: given)() is given
    for call in (decorate(raises), lambda: decorate(raises_later)().send(None)):
        with pytest.raises(Broken) as caught:
            call()
        assert caught.value is problem
        assert problem.__cause__ is None
        assert problem.__context__ is None
    assert [span.status.status_code for span in spans.all()] == [
        StatusCode.OK,
        StatusCode.ERROR,
        StatusCode.ERROR,
    ]


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_ends_that_are_no_exceptions_pass_through_and_end_the_span(
    end: type[BaseException], spans: Any
) -> None:
    """Ctrl-C, exit, close and cancel are recorded and go on."""

    @tool
    def stops() -> None:
        raise end

    with pytest.raises(end):
        stops()

    assert spans.attributes()["error.type"] == end.__name__


def test_a_cancelled_task_ends_its_span(spans: Any) -> None:
    """The task is cancelled, as it was asked to be."""

    @tool
    async def waits() -> None:
        await asyncio.sleep(60)

    async def main() -> bool:
        task = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    assert asyncio.run(main())
    assert spans.one().status.status_code is StatusCode.ERROR


def test_a_coroutine_closed_in_another_context_is_no_fault(
    spans: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A garbage collector closes where it runs; nothing is logged, the span ends, and no context is left over."""
    import contextvars

    class Pause:
        def __await__(self) -> Generator[None]:
            yield

    @agent
    async def waits() -> None:
        await Pause()

    coroutine = waits()
    contextvars.Context().run(coroutine.send, None)
    coroutine.close()

    assert spans.attributes()["error.type"] == "GeneratorExit"
    assert not caplog.records
    assert not faults()


@pytest.mark.parametrize(
    ("args", "kwargs", "recorded"),
    [
        (("A",), {}, {"order_id": "A"}),
        (("A", 2, 3, 4), {"note": "n"}, {"order_id": "A", "amount": 2, "rest": [3, 4], "note": "n"}),
        (("A",), {"why": "late"}, {"order_id": "A", "why": "late"}),
        (("A",), {"order_id": "B"}, {"order_id": "A", "more": {"order_id": "B"}}),
    ],
)
def test_arguments_are_recorded_by_parameter_name(
    args: tuple[Any, ...], kwargs: dict[str, Any], recorded: dict[str, Any], spans: Any
) -> None:
    """Positional-only, defaults, *args and **kwargs; a keyword of the same name as a positional one hides nothing."""
    assert tool(refund)(*args, **kwargs) == refund(*args, **kwargs)
    assert spans.arguments() == recorded


def test_a_call_that_does_not_fit_raises_its_own_type_error(spans: Any) -> None:
    """Word for word what Python says, and the span shows it."""

    def plain(a: int) -> int:
        return a

    with pytest.raises(TypeError) as expected:
        plain()  # type: ignore[call-arg]
    with pytest.raises(TypeError) as caught:
        tool(plain)()  # type: ignore[call-arg]

    assert str(caught.value) == str(expected.value)
    assert spans.attributes()["error.type"] == "TypeError"


def test_a_decorator_below_ours_may_hand_over_other_arguments(spans: Any) -> None:
    """The signature it copies is not that of the call; the call works and its arguments are recorded."""

    def with_connection(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def inner(*args: int, **kwargs: int) -> int:
            return function(40, *args, **kwargs)

        return inner

    @tool
    @with_connection
    def add(connection: int, x: int) -> int:
        return connection + x

    assert add(x=2) == 42
    assert add(2) == 42
    assert [span.attributes["gen_ai.tool.call.arguments"] for span in spans.all()] == [
        '{"x":2}',
        '{"args":[2]}',
    ]


class Shop:
    """Methods of every kind."""

    def __init__(self, name: str = "shop") -> None:
        self.name = name

    @tool
    def bound(self, x: int) -> tuple[str, int]:
        """A method."""
        return self.name, x

    @tool
    async def later(self, x: int) -> tuple[str, int]:
        """An async method."""
        return self.name, x

    @classmethod
    @tool
    def klass(cls, x: int) -> tuple[str, int]:
        """A class method, decorated below."""
        return cls.__name__, x

    @tool
    @classmethod
    def klass_above(cls, x: int) -> tuple[str, int]:
        """A class method, decorated above."""
        return cls.__name__, x

    @staticmethod
    @tool
    def static(x: int) -> tuple[str, int]:
        """A static method, decorated below."""
        return "static", x

    @tool(name="static_above")
    @staticmethod
    def static_above(x: int) -> tuple[str, int]:
        """A static method, decorated above."""
        return "static", x

    def __call__(self, x: int) -> tuple[str, int]:
        """A callable object."""
        return self.name, x


class SubShop(Shop):
    """Inherits."""


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (lambda: Shop("s").bound(1), ("s", 1)),
        (lambda: Shop.bound(Shop("s"), x=1), ("s", 1)),
        (lambda: asyncio.run(Shop("s").later(1)), ("s", 1)),
        (lambda: SubShop.klass(1), ("SubShop", 1)),
        (lambda: SubShop().klass(x=1), ("SubShop", 1)),
        (lambda: SubShop.klass_above(1), ("SubShop", 1)),
        (lambda: Shop.static(1), ("static", 1)),
        (lambda: Shop().static(1), ("static", 1)),
        (lambda: Shop.static_above(1), ("static", 1)),
        (lambda: Shop().static_above(x=1), ("static", 1)),
        (lambda: tool(Shop("s"))(1), ("s", 1)),
        (lambda: tool(Shop("s").bound)(1), ("s", 1)),
    ],
)
def test_methods_of_every_kind_work_and_record_their_own_arguments(
    call: Callable[[], Any], result: Any, spans: Any
) -> None:
    """The object or class is no argument of the tool."""
    assert call() == result
    assert all('"x":1' in span.attributes["gen_ai.tool.call.arguments"] for span in spans.all())
    assert all("Shop" not in span.attributes["gen_ai.tool.call.arguments"] for span in spans.all())


def test_partials_callable_objects_and_builtins_are_named_and_described(spans: Any) -> None:
    """A callable without ``__name__`` or signature is a tool like any other."""

    class Search:
        """Find books."""

        async def __call__(self, q: str) -> str:
            return q

    async def fetch(a: int, b: int) -> int:
        """Fetch it."""
        return a + b

    assert asyncio.run(tool(Search())("x")) == "x"
    assert asyncio.run(tool(functools.partial(fetch, 1))(2)) == 3
    assert tool(max)(1, 2) == 2
    assert [(s.name, s.attributes.get("tool.description", "")[:9]) for s in spans.all()] == [
        ("execute_tool Search", "Find book"),
        ("execute_tool fetch", "Fetch it."),
        ("execute_tool max", "max(itera"),
    ]
    assert spans.all()[2].attributes["gen_ai.tool.call.arguments"] == '{"args":[1,2]}'


def test_a_decorated_function_pickles_and_keeps_its_marks() -> None:
    """Process pools find it by name; abstract methods stay abstract."""

    class Base(abc.ABC):
        @tool
        @abc.abstractmethod
        def work(self) -> int: ...

    assert pickle.loads(pickle.dumps(module_level))(2) == 4
    assert Base.__abstractmethods__ == {"work"}


@pytest.mark.parametrize("wrong", ["refund", 7, property(lambda self: 1)])
def test_a_decorator_given_something_else_says_so(wrong: Any) -> None:
    """``@tool("refund")`` is a slip, named where it is made."""
    with pytest.raises(ConfigurationError, match="is not a function"):
        tool(wrong)


def test_an_unknown_effect_is_refused() -> None:
    """A misspelt ``write`` would silently protect nothing."""
    with pytest.raises(ConfigurationError, match="not 'wirte'"):
        tool(effect="wirte")  # type: ignore[call-overload]

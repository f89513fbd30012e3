"""What a type checker knows of decorated functions. It is checked, never run."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from redfirst.instrumentation import Run, agent, current_run, faults, model, tool


@tool
def bare(order_id: str, *, amount: int = 1) -> dict[str, int]:
    """A tool."""
    return {order_id: amount}


@tool(name="refund", effect="write", idempotent=True, poll=False, schema={"type": "object"})
async def refund(order_id: str) -> list[int]:
    """An async tool."""
    return [len(order_id)]


@model(provider="openai")
def chat(messages: list[dict[str, Any]]) -> str:
    """A model."""
    return str(messages)


@agent(name="support", step_cap=12, version="1")
async def handle(request: str) -> int:
    """An agent."""
    return len(request)


async def awaited() -> None:
    """Coroutines stay coroutines, with their results."""
    assert_type(await refund("A-1"), list[int])
    assert_type(await handle("hi"), int)


class Shop:
    """Methods."""

    @tool
    def bound(self, x: int) -> str:
        """A method."""
        return str(x)

    @staticmethod
    @tool(effect="read")
    def static(x: int) -> str:
        """A static method."""
        return str(x)

    @classmethod
    @tool
    def klass(cls, x: int) -> str:
        """A class method."""
        return str(x)


assert_type(bare("A-1", amount=2), dict[str, int])
assert_type(chat([]), str)
assert_type(Shop().bound(1), str)
assert_type(Shop.static(1), str)
assert_type(Shop.klass(1), str)
assert_type(current_run(), Run)
assert_type(current_run().trace_id, str)
assert_type(faults(), dict[str, int])
as_callback: Callable[[str], Coroutine[Any, Any, list[int]]] = refund

bare(1)  # type: ignore[arg-type]
bare("A-1", 2)  # type: ignore[call-arg]
Shop().bound("x")  # type: ignore[arg-type]
tool(effect="wirte")  # type: ignore[call-overload]

"""The one door through which a replay reaches a call."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from redfirst.instrumentation import agent, current_run, door, faults, kinds, model, tool
from redfirst.instrumentation.door import Door, DoorCall, Failed, Played


class Standing:
    """Gives the answers it was given, and remembers what it was asked."""

    def __init__(self, answer: door.Answer | BaseException | Callable[[DoorCall], door.Answer]) -> None:
        self.answer = answer
        self.calls: list[DoorCall] = []
        self.states: list[Mapping[str, object]] = []

    def call(self, call: DoorCall) -> door.Answer:
        self.calls.append(call)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(call) if callable(self.answer) else self.answer

    def state(self, snapshot: Mapping[str, object]) -> Mapping[str, object]:
        self.states.append(snapshot)
        return {"replayed": True}


class Stop(BaseException):
    """Ends a run."""


def live() -> str:
    raise AssertionError("the real function was called")


async def live_later() -> str:
    raise AssertionError("the real function was called")


def call(function: Callable[[], Any]) -> Any:
    """Call it, and run what it gives when that is a coroutine."""
    found = function()
    return asyncio.run(found) if asyncio.iscoroutine(found) else found


@pytest.mark.parametrize("decorate", [tool, model])
@pytest.mark.parametrize("function", [live, live_later])
def test_a_played_value_comes_back_and_nothing_real_happens(decorate: Any, function: Any, spans: Any) -> None:
    """The very object the interceptor gave; the span records it as the result."""
    value = {"content": "recorded"}

    with door.occupied(Standing(Played(value))):
        assert call(decorate(function)) is value

    assert spans.attributes()["output.value"] == '{"content":"recorded"}'
    assert spans.one().status.is_ok


@pytest.mark.parametrize("decorate", [tool, model])
@pytest.mark.parametrize("function", [live, live_later])
@pytest.mark.parametrize("error", [KeyError("A-9"), Stop("off the tape")])
def test_a_failed_answer_and_an_interceptors_own_exception_reach_the_caller(
    decorate: Any, function: Any, error: BaseException, spans: Any
) -> None:
    """The very object, on a span that shows the error; a BaseException ends the run."""
    answer = Failed(error) if isinstance(error, Exception) else error

    with door.occupied(Standing(answer)), pytest.raises(type(error)) as caught:
        call(decorate(function))

    assert caught.value is error
    assert spans.one().status.status_code is StatusCode.ERROR
    assert spans.attributes()["error.type"] == type(error).__name__


def test_pass_through_makes_the_real_call(spans: Any) -> None:
    """The model may be live while the tools are played."""

    @tool
    def twice(x: int) -> int:
        return 2 * x

    @tool
    async def twice_later(x: int) -> int:
        return 2 * x

    with door.occupied(standing := Standing(Door.PASS_THROUGH)):
        assert twice(2) == 4
        assert asyncio.run(twice_later(x=3)) == 6

    assert [(c.kind, c.name, c.arguments) for c in standing.calls] == [
        ("tool", "twice", {"x": 2}),
        ("tool", "twice_later", {"x": 3}),
    ]
    assert standing.calls[0].function(5) == 10


def test_the_interceptor_is_told_plain_arguments_by_name(spans: Any) -> None:
    """What a recording of the call would hold, whatever objects the agent passed."""

    class Shop:
        @tool(name="refund")
        def give(self, order: Any, *, amount: Any, **more: Any) -> str:
            return live()

    with door.occupied(standing := Standing(Played("ok"))):
        Shop().give({1, 2}, amount=float("nan"), note="\ud800")

    assert standing.calls[0].arguments == {"order": [1, 2], "amount": None, "note": "\ud800"}
    assert standing.calls[0].name == "refund"


def test_a_call_that_does_not_fit_is_not_offered(spans: Any) -> None:
    """Its own TypeError is what the agent met in production; nothing real can happen."""

    @tool
    def refund(order_id: str) -> str:
        return live()

    with (
        door.occupied(standing := Standing(Played("ok"))),
        pytest.raises(TypeError, match=r"refund\(\) got an unexpected keyword argument 'order'"),
    ):
        refund(order="A-1")  # type: ignore[call-arg]

    assert not standing.calls


def test_a_wrapper_whose_signature_lies_is_offered_all_the_same(spans: Any) -> None:
    """A replay never slips past the door into a live tool."""

    def refund(*args: Any, **kwargs: Any) -> str:
        return live()

    refund.__signature__ = __import__("inspect").signature(lambda order_id: None)  # type: ignore[attr-defined]

    with door.occupied(standing := Standing(Played("ok"))):
        assert tool(refund)(1, 2, x=3) == "ok"

    assert standing.calls[0].arguments == {"args": [1, 2], "x": 3}


def test_agents_are_never_offered_and_states_are_replaced(spans: Any) -> None:
    """The agent's own code is what is under test."""

    @agent
    def handle() -> str:
        current_run().state({"live": True})
        return "ran"

    with door.occupied(standing := Standing(Played("no"))):
        assert handle() == "ran"

    assert not standing.calls
    assert standing.states == [{"live": True}]
    assert spans.one().events[0].attributes["redfirst.state.value"] == '{"replayed":true}'


def test_a_thread_with_an_empty_context_meets_the_process_wide_interceptor(spans: Any) -> None:
    """An executor inside the agent's framework is no way round."""
    found: list[Any] = []
    door.occupy_process(standing := Standing(Played("recorded")))

    def work() -> None:
        found.append(tool(live)())
        found.append(asyncio.run(tool(live_later)()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    door.occupy_process(None)

    assert found == ["recorded", "recorded"]
    assert len(standing.calls) == 2
    assert door.interceptor() is None


def test_the_door_of_a_context_comes_before_that_of_the_process(spans: Any) -> None:
    """And is left again, whatever happened inside."""
    door.occupy_process(outer := Standing(Played("outer")))
    with door.occupied(Standing(Played("inner"))):
        assert tool(live)() == "inner"
    with pytest.raises(ZeroDivisionError), door.occupied(Standing(ZeroDivisionError())):
        tool(live)()

    assert tool(live)() == "outer"
    assert len(outer.calls) == 1


def test_an_answer_that_is_none_is_the_interceptors_mistake(spans: Any) -> None:
    """It is not taken for permission to call the real tool."""
    with door.occupied(Standing(None)), pytest.raises(AssertionError):  # type: ignore[arg-type]
        tool(live)()


@pytest.mark.parametrize(("recorded", "given"), [("no", ["no"]), ([1, 2], [1, 2])])
def test_a_recorded_stream_is_played_as_its_items_or_its_text(
    recorded: Any, given: list[Any], spans: Any
) -> None:
    """Nothing real happens, also asynchronously."""

    def stream() -> Any:
        raise AssertionError("live")
        yield

    async def later() -> Any:
        raise AssertionError("live")
        yield

    async def asked() -> list[Any]:
        return [item async for item in tool(later)()]

    with door.occupied(Standing(Played(recorded))):
        assert list(tool(stream)()) == given
        assert asyncio.run(asked()) == given
    assert [span.status.status_code.name for span in spans.all()] == ["OK", "OK"]


def test_a_recorded_stream_of_which_the_pieces_are_not_known_is_a_fault(spans: Any) -> None:
    """A reply put together from its pieces cannot be taken apart again, and the replay must be able to say so."""

    @model
    def chat(messages: list[Any]) -> Any:
        yield {}

    with door.occupied(Standing(Played({"content": "hi"}))), pytest.raises(TypeError, match="neither a list"):
        next(chat([]))
    assert faults() == {"play a stream": 1}


def test_with_nobody_at_the_door_it_costs_one_context_variable_read(spans: Any) -> None:
    """A traced call looks once who stands there and does no other work for a replay's sake."""

    @tool
    def look(x: int) -> int:
        return x

    look(1)
    entered: list[str] = []
    inside: list[str] = []

    def count(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name
        if event == "call":
            entered.append(f"{frame.f_globals.get('__name__')}.{name}")
        if event == "c_call" and frame.f_code is look.__code__:  # type: ignore[attr-defined]
            inside.append(arg.__qualname__)

    sys.setprofile(count)
    try:
        look(1)
    finally:
        sys.setprofile(None)

    assert not [name for name in entered if name.startswith(door.__name__)]
    assert inside == ["ContextVar.get"]
    assert f"{kinds.__name__}.Kind.offer" not in entered
    assert entered.count("redfirst.instrumentation.arguments.Arguments.name") == 1
    assert "redfirst.instrumentation.capture.plain" not in entered

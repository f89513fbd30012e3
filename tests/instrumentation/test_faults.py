"""Whatever of ours breaks, the host does not notice."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from redfirst.instrumentation import (
    Guard,
    agent,
    arguments,
    capture,
    configure,
    conversation,
    current_run,
    decorators,
    faults,
    force_flush,
    guard,
    kinds,
    memory,
    model,
    opened,
    provider,
    rule_guard,
    run,
    run_so_far,
    shutdown,
    tool,
)

STRUCTURE = {
    "Kind.open",
    "Kind.finish",
    "Kind.fail",
    "Kind.offer",
    "Tool.offer",
    *("Guard.__init__", "Guard.refused", "guard_of"),
    *("Run.trace_id", "Run.state", "Run.event", "Run.stop", "Run.__init__", "current_run"),
    *("configure", "isolate", "reset", "shutdown", "force_flush", "_in_use"),
    *("Content.__init__", "Content.from_environment", "limit_from_environment"),
}
"""Lines that the guards stand in, and what the host calls by name."""


def internal() -> Iterator[tuple[object, str, str]]:
    """Every function and method that runs in a traced call, with its owner."""
    modules = (arguments, capture, conversation, kinds, memory, opened, provider, rule_guard, run, run_so_far)
    for module in modules:
        yield from _functions(module, module.__name__, "")


def _functions(owner: object, module: str, prefix: str) -> Iterator[tuple[object, str, str]]:
    for name, value in vars(owner).items():
        if getattr(value, "__module__", None) != module:
            continue
        path = f"{prefix}{name}"
        if isinstance(value, FunctionType) and path not in STRUCTURE:
            yield owner, name, f"{module.rpartition('.')[2]}.{path}"
        elif inspect.isclass(value) and isinstance(owner, ModuleType):
            yield from _functions(value, module, f"{name}.")


INTERNAL = list(internal())
GUARD = Guard(Path(__file__).with_name("guard_rules.yaml"))
REPLY = {
    "id": "r",
    "model": "m-1",
    "choices": [
        {
            "finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": "hi",
                "tool_calls": [{"id": "c", "function": {"name": "f"}}],
            },
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2},
}


def work() -> object:
    """A run that touches every internal function, decorated anew so that decoration is broken too."""

    @tool(effect="write", schema={"type": "object"}, guard=GUARD)
    def good(x: object) -> object:
        """Give it back."""
        return x

    @tool
    def bad(x: int) -> None:
        raise KeyError(x)

    @model
    async def chat(messages: list[dict[str, Any]], tools: list[Any], model: str) -> object:
        return REPLY

    @agent(version="1")
    def handle(text: str, *, more: int) -> object:
        current_run().state({"a": 1, "b": {2, 3}})
        current_run().event("approval", by="ann")
        current_run().stop("step_cap", cap=2)
        odd = {"day": object(), "n": 10**400, "huge": "x" * 300, ("k",): 1, "s": "\ud800"}
        try:
            bad(1)
        except KeyError as error:
            caught = error
        said: list[dict[str, Any]] = [
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi"}, {"type": "tool_result", "tool_use_id": 1}],
            },
            {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        ]
        replied = asyncio.run(chat(said, [], model="m")) is REPLY
        return text, more, good(odd) is odd, caught.args, replied

    assert list(inspect.signature(handle).parameters) == ["text", "more"]
    return handle("hello", more=2)


EXPECTED = ("hello", 2, True, (1,), True)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are cut early."""
    monkeypatch.setattr(capture, "MAX_CHARACTERS", 256)


def test_the_run_used_here_reaches_every_internal_function(
    spans: Any, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the fault-injection test below would prove nothing about what it does not reach."""
    seen: set[str] = set()
    for owner, name, path in INTERNAL:
        original = getattr(owner, name)

        def spy(*args: Any, _path: str = path, _original: Any = original, **kwargs: Any) -> Any:
            seen.add(_path)
            return _original(*args, **kwargs)

        monkeypatch.setattr(owner, name, spy)
    for module in (kinds, opened, run, conversation, decorators, memory, rule_guard, run_so_far):
        for name in vars(module).copy():
            for owner, other, _ in INTERNAL:
                if (
                    name == other
                    and isinstance(owner, ModuleType)
                    and isinstance(vars(module)[name], FunctionType)
                ):
                    monkeypatch.setattr(module, name, getattr(owner, other))

    assert work() == EXPECTED
    missed = {path for *_, path in INTERNAL} - seen
    assert missed <= {
        # made only at import, by configure, or for one shape of value that test_capture and test_models cover
        "capture._dumped",
        "conversation._number",
        "arguments.Arguments._unnamed",
        "kinds.Kind.span_name",
        "kinds.Kind.on_call",
        "kinds.Kind.on_result",
        *("kinds.Kind.remember", "kinds.Kind.remember_result"),
        *("rule_guard.CallRefused.__init__", "rule_guard.Guard._open"),  # test_rule_guard refuses calls
        *(path for path in missed if path.startswith("provider.")),
        *(
            path
            for path in missed
            if path.endswith(("__init__", "__eq__", "__repr__", "__hash__", "__setattr__"))
        ),
        *(path for path in missed if path.endswith(("__delattr__", "__getstate__", "__setstate__"))),
    }


@pytest.mark.parametrize(("owner", "name", "path"), INTERNAL, ids=[path for *_, path in INTERNAL])
def test_each_internal_function_may_raise_and_the_host_goes_on(
    owner: object,
    name: str,
    path: str,
    spans: Any,
    short: None,
    faults_swallowed: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Same results and exceptions as without us; every kind of fault is counted and logged once."""
    called = []

    def broken(*args: Any, **kwargs: Any) -> Any:
        called.append(args)
        raise ZeroDivisionError(path)

    original = getattr(owner, name)
    for place in (owner, decorators, kinds, opened, run, conversation, memory, rule_guard, run_so_far):
        if vars(place).get(name) is original:
            monkeypatch.setattr(place, name, broken)

    for _ in range(2):  # a context of its own: a span that could not be left stays current in it
        assert contextvars.copy_context().run(work) == EXPECTED
    ours = [record for record in caplog.records if record.name == "redfirst.instrumentation"]
    assert len(ours) == len(faults())
    if called and not path.startswith("capture._") and path != "capture.shown":
        assert faults(), f"{path} was called and its fault was not counted"


def test_a_broken_span_processor_is_counted_and_the_call_goes_on(
    faults_swallowed: None, caplog: pytest.LogCaptureFixture
) -> None:
    """Other people's processors run inside our calls."""

    class Bad(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            raise OSError("start")

        def on_end(self, span: Any) -> None:
            raise OSError("end")

    tracing = TracerProvider(shutdown_on_exit=False)
    tracing.add_span_processor(Bad())
    configure(provider=tracing)

    assert tool(lambda: 1)() == 1
    assert tool(lambda: 1)() == 1
    assert faults() == {"open a span": 2}
    assert len(caplog.records) == 1


def test_a_log_handler_that_raises_does_not_reach_the_host(
    spans: Any, faults_swallowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even the note of a fault is ours to keep."""

    class Loud(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise OSError("no log today")

    logger = logging.getLogger("redfirst.instrumentation")
    loud = Loud()
    logger.addFilter(loud)
    monkeypatch.setattr(opened, "to_json", lambda value: 1 / 0)
    try:
        assert tool(lambda: 1)() == 1
    finally:
        logger.removeFilter(loud)
    assert faults() == {"record the arguments of a call": 1, "record a result": 1}


def test_a_schema_that_cannot_be_written_leaves_the_tool_traced(spans: Any, faults_swallowed: None) -> None:
    """Decoration runs at import: it never breaks the host's module."""

    class Schema:
        @staticmethod
        def model_json_schema() -> object:
            raise ValueError("no schema for this")

    assert tool(schema=Schema)(lambda: 1)() == 1
    assert faults() == {"describe the arguments of a tool": 1}
    assert spans.one().name == "execute_tool <lambda>"


def test_faults_are_raised_where_a_test_asks_for_it(spans: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """That is how every other test here would show one."""
    monkeypatch.setattr(opened, "to_json", lambda value: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        tool(lambda: 1)()


def test_an_interrupt_inside_our_lines_is_the_hosts(
    spans: Any, faults_swallowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C is not ours to swallow, wherever it strikes; the span ends and nothing stays current."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for moment in ("on_call", "on_result"):
        with monkeypatch.context() as patched:
            patched.setattr(kinds.Tool, moment, interrupted)
            with pytest.raises(KeyboardInterrupt):
                tool(lambda: 1)()

    assert len(spans.all()) == 1  # before the first, none had begun
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("finish", [force_flush, shutdown])
def test_flushing_a_provider_that_raises_is_our_fault_only(
    finish: Callable[[], object], faults_swallowed: None
) -> None:
    """The last line of a program does not fail for its telemetry."""

    class Odd(TracerProvider):
        def force_flush(self, timeout_millis: int = 30000) -> bool:
            raise OSError("gone")

    configure(provider=Odd(shutdown_on_exit=False))

    assert not finish()
    assert faults() == {"flush the spans": 1}


def test_a_host_that_recurses_too_deeply_gets_its_own_error(spans: Any, faults_swallowed: None) -> None:
    """There may be no room left for our lines; the error is the host's, and nothing stays current."""

    @tool
    def deeper(n: int) -> int:
        return deeper(n + 1)

    with pytest.raises(RecursionError):
        deeper(0)

    assert not trace.get_current_span().get_span_context().is_valid
    assert tool(lambda: 1)() == 1


def test_counts_survive_many_threads(faults_swallowed: None) -> None:
    """Counting is exact."""
    from concurrent.futures import ThreadPoolExecutor

    def fault(_: int) -> None:
        with guard.guarded("count"):
            raise ValueError

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fault, range(400)))

    assert faults() == {"count": 400}

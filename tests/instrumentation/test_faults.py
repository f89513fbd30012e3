"""Whatever of ours breaks, the host does not notice."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from redfirst.instrumentation import (
    Guard,
    Redaction,
    agent,
    arguments,
    blocks,
    capture,
    chain,
    configure,
    conversation,
    current,
    current_run,
    decorators,
    fast_spans,
    faults,
    force_flush,
    guard,
    handoff,
    infra,
    kinds,
    memory,
    model,
    model_call,
    model_requests,
    opened,
    propagation,
    provider,
    redaction,
    retriever,
    rule_guard,
    run,
    run_so_far,
    shutdown,
    span,
    steps,
    stream_replies,
    streams,
    tool,
    tool_call,
    tracing,
    web,
)
from redfirst.instrumentation.session import session

session_of = sys.modules["redfirst.instrumentation.session"]

STRUCTURE = {
    *("Kind.open", "Kind.finish", "Kind.finish_stream", "Kind.finish_without", "Kind._close", "Kind.fail"),
    *("Kind.offer", "Kind.pause", "Kind.resume", "Kind.letting_through", "GuardedTool.offer"),
    *("Guard.__init__", "Guard.refused", "guard_of"),
    *("Run.trace_id", "Run.state", "Run.event", "Run.stop", "Run.feedback", "Run.__init__", "current_run"),
    *(
        "configure",
        "isolate",
        "reset",
        "shutdown",
        "force_flush",
        "_in_use",
        "redact_places",
        "_set_redactor",
    ),
    *("Content.__init__", "Content.from_environment", "limit_from_environment"),
    *("inject", "extract", "environment", "in_context", "wrap_executor", "session", "_TracedExecutor.submit"),
    *("_TracedExecutor.__init__", "_TracedExecutor.shutdown", "_TracedExecutor.__getattr__"),
    *("span.__init__", "span.__enter__", "span.__exit__", "span.input", "span.output", "span.set"),
    *("TraceIds.filter", "trace_ids", "trace_header", "TraceASGI.__init__", "TraceWSGI.__init__"),
    *(
        "Redaction.__init__",
        "Redactor.__init__",
        "_pattern",
        "_path",
        "_names",
        "Pattern.__init__",
        "_literals",
        "_pairs",
    ),
    *(
        "generator",
        "async_generator",
        "_steps",
        "_async_steps",
        "_awaited",
        "_begun_inside",
        "_later",
        "_throw",
    ),
    *("_athrow", "_close", "_begun", "_played", "of_result"),
}
"""Lines that the guards stand in, what the host calls by name, and the steps of its own streams."""
MODULES = (
    *(arguments, blocks, capture, conversation, current, fast_spans, infra, kinds, memory, model_call),
    *(model_requests, opened, propagation, provider, redaction, rule_guard, run, run_so_far, session_of),
    *(steps, stream_replies, streams, tool_call, tracing, web),
)


def internal() -> Iterator[tuple[object, str, str]]:
    """Every function and method that runs in a traced call, with its owner."""
    for module in MODULES:
        yield from _functions(module, module.__name__, "")


def _functions(owner: object, module: str, prefix: str) -> Iterator[tuple[object, str, str]]:
    for name, value in vars(owner).items():
        if getattr(value, "__module__", None) != module or (name.startswith("__") and name != "__init__"):
            continue
        path = f"{prefix}{name}"
        if isinstance(value, FunctionType) and path not in STRUCTURE:
            yield owner, name, f"{module.rpartition('.')[2]}.{path}"
        elif inspect.isclass(value) and isinstance(owner, ModuleType):
            yield from _functions(value, module, f"{name}.")


def everywhere(owner: object, name: str, original: object) -> Iterator[tuple[object, str]]:
    """Where the function is known, under whatever name."""
    yield owner, name
    for module in (*MODULES, decorators) if isinstance(owner, ModuleType) else ():
        for other, value in vars(module).items():
            if value is original and (module, other) != (owner, name):
                yield module, other


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
    with session("s", user="u"):
        return (*handle("hello", more=2), *streamed())


def streamed() -> tuple[object, ...]:
    """Streams of every make, the other kinds, and a block."""

    @chain
    def words() -> Iterator[str]:
        yield "a"
        yield "b"

    @model
    async def pieces(contents: Any) -> AsyncIterator[Any]:
        for vendor in PIECES:
            yield vendor

    @model
    def given(prompt: str) -> Any:
        return iter(PIECES[:2])

    @chain
    def later() -> Any:
        async def number() -> int:
            return 7

        return number()

    @retriever
    def search(query: str) -> Any:
        return [{"content": "x", "id": 1, "score": 0.5, "metadata": {"a": 1}}, "y"]

    @handoff(to="billing")
    def pass_on() -> None: ...

    @tool
    def slow() -> None:
        raise TimeoutError("late")

    async def asked() -> list[Any]:
        return [piece async for piece in pieces([{"role": "user", "parts": [{"text": "hi"}]}])]

    stream = words()
    first = next(stream)
    stream.close()
    left = asyncio.run(asked()) == PIECES
    with pytest.raises(TimeoutError):
        slow()
    pass_on()
    with span("tool", "block") as block:
        block.input({"a": 1})
        block.set("own", "x")
        block.output("y")
    return first, left, list(given("hi")) == PIECES[:2], asyncio.run(later()), len(search("q"))


PIECES: list[Any] = [
    {
        "choices": [
            {"delta": {"content": "x", "tool_calls": [{"index": 0, "id": "c", "function": {"name": "f"}}]}}
        ]
    },
    {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}},
    {"n": 1},
]
EXPECTED = ("hello", 2, True, (1,), True, "a", True, True, 7, 2)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values are cut early."""
    monkeypatch.setattr(capture, "MAX_CHARACTERS", 256)


def test_the_run_used_here_reaches_every_internal_function(
    spans: Any, short: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the fault-injection test below would prove nothing about what it does not reach."""
    seen: set[str] = set()
    hide()
    for owner, name, path in INTERNAL:
        original = vars(owner)[name]

        def spy(*args: Any, _path: str = path, _original: Any = original, **kwargs: Any) -> Any:
            seen.add(_path)
            return _original(*args, **kwargs)

        for place, known_as in [*everywhere(owner, name, original)]:
            monkeypatch.setattr(place, known_as, spy)

    assert work() == EXPECTED
    missed = {path for *_, path in INTERNAL} - seen
    assert missed <= {
        *(path for path in missed if path.endswith("__init__")),
        *(
            path for path in missed if path.startswith(("provider.", "tracing."))
        ),  # made before the first call
        *(path for path in missed if re.match(ELSEWHERE, path)),
    }


ELSEWHERE = "|".join(
    (
        r"capture\._dumped|arguments\.Arguments\._unnamed|kinds\.Kind\.|rule_guard\.Guard\._open|tool_call\.(Guarded)?Tool\.alone",
        r"fast_spans\.(usable|_same|_seen|_bound|_uncounted|_counter|_says|_Fixed|FastSpan|FastTracing\.(_unrecorded|_refresh))",
        r"stream_replies\._(is_|chat|add_call|keep|responses|anthropic|google|bedrock|add_block|add_part|parsed)|conversation\._answer",
        r"streams\._(Handed|Stream|AsyncStream|played)|current\.|propagation\.|web\.|redaction\.(_failed|Redactor|Redaction|_leaves|_written|_hints|_unescaped)",
        r"session\.identity|blocks\.|infra\._(of_status|grpc)|opened\.Opened\.(revealed|end)|model_requests\._system|steps\.",
    )
)
"""Made before the first call, or for a shape that other tests of this folder give."""


def hide() -> None:
    """Have values redacted, so that those lines run, too."""
    configure(
        provider=provider.settings.provider,  # type: ignore[arg-type] # the SDK's
        redact=Redaction(keys=["password"], patterns=["email"]),
    )


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
    hide()

    def broken(*args: Any, **kwargs: Any) -> Any:
        called.append(args)
        raise ZeroDivisionError(path)

    original = vars(owner)[name]
    for place, known_as in [*everywhere(owner, name, original)]:
        monkeypatch.setattr(place, known_as, broken)

    for _ in range(2):  # a context of its own: a span that could not be left stays current in it
        assert contextvars.copy_context().run(work) == EXPECTED
    ours = [record for record in caplog.records if record.name == "redfirst.instrumentation"]
    assert len(ours) == len(faults())
    if called and not re.match(QUIETLY, path):
        assert faults(), f"{path} was called and its fault was not counted"


QUIETLY = r"capture\._|capture\.shown|infra\.|redaction\.Redactor\._(walk|string|matched|between|no_)"
"""What these cannot do is done in another way, or fails closed."""


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
            patched.setattr(tool_call.Tool, moment, interrupted)
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

"""One trace across threads, processes and services; its id on log records and in responses."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import structlog
from opentelemetry import trace

from redfirst.instrumentation import (
    TraceASGI,
    TraceIds,
    TraceWSGI,
    agent,
    configure,
    current_run,
    environment,
    extract,
    force_flush,
    in_context,
    inject,
    session,
    shutdown,
    tool,
    trace_header,
    trace_ids,
    wrap_executor,
)
from redfirst.instrumentation.provider import reset, settings

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
"""The example of the W3C's recommendation."""


@tool
def step(n: int) -> int:
    """A step."""
    return n


def test_an_executor_runs_tasks_in_the_run_they_were_submitted_in(spans: Any) -> None:
    """Also by map, also from an event loop; an executor that is not wrapped loses them."""

    @agent
    async def handle(text: str) -> list[int]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(2) as inner:
            pool = wrap_executor(inner)
            return [
                pool.submit(step, 1).result(),
                *pool.map(step, [2, 3]),
                await loop.run_in_executor(pool, step, 4),
            ]

    with session("s"):
        assert asyncio.run(handle("x")) == [1, 2, 3, 4]
    assert {spans.parent_of_span(one) for one in spans.all()} == {"invoke_agent handle", None}
    assert {one.attributes["session.id"] for one in spans.all()} == {"s"}


def test_a_thread_runs_in_the_context_it_is_given(spans: Any) -> None:
    """``in_context`` takes it along, for any number of threads at once."""

    @agent
    def handle(text: str) -> None:
        threads = [threading.Thread(target=in_context(step), args=(n,)) for n in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    handle("x")
    assert [spans.parent_of_span(one) for one in spans.all()] == ["invoke_agent handle"] * 3 + [None]


def in_child(n: int) -> str:
    step(n)
    return current_run().trace_id


def _configured(path: str) -> None:
    configure(file=path)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_pool_stays_in_the_trace(method: str, tmp_path: Path) -> None:
    """Trace, session and user; and nothing is lost when the workers leave."""
    path = tmp_path / "spans.jsonl"
    _configured(str(path))

    @agent
    def handle(text: str) -> list[str]:
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(1, context, initializer=_configured, initargs=(str(path),)) as inner:
            return list(wrap_executor(inner).map(in_child, [1, 2]))

    with session("s", user="ann"):
        ids = handle("x")
    shutdown()

    found = [
        span
        for line in path.read_text("utf-8").splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]
    (root,) = [span for span in found if span["name"] == "invoke_agent handle"]
    steps = [span for span in found if span["name"] == "execute_tool step"]
    assert ids == [root["traceId"]] * 2
    assert [span["parentSpanId"] for span in steps] == [root["spanId"]] * 2
    sessions = {
        attribute["value"]["stringValue"]
        for span in steps
        for attribute in span["attributes"]
        if attribute["key"] == "session.id"
    }
    assert sessions == {"s"}


def test_a_subprocess_goes_on_with_the_trace_of_its_environment(tmp_path: Path) -> None:
    """TRACEPARENT out and in; its root span is a child."""
    path = tmp_path / "child.jsonl"
    configure(file=tmp_path / "parent.jsonl")
    code = (
        "from redfirst.instrumentation import configure, tool\n"
        f"configure(file={str(path)!r})\n"
        "tool(lambda: 1)()"
    )

    @agent
    def handle(text: str) -> str:
        subprocess.run([sys.executable, "-c", code], env=environment(), check=True)
        return current_run().trace_id

    trace_id = handle("x")
    (span,) = json.loads(path.read_text("utf-8"))["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert span["traceId"] == trace_id
    assert span["parentSpanId"]


def test_the_trace_goes_over_http_and_back_in(spans: Any) -> None:
    """W3C traceparent in any case of letters."""

    @agent
    def asks(text: str) -> dict[str, str]:
        return dict(inject({"accept": "text/plain"}))

    headers = asks("x")
    assert headers["accept"] == "text/plain"
    with extract({"TraceParent": headers["traceparent"]}):
        step(1)
    assert spans.parent_of("execute_tool step") == "invoke_agent asks"
    assert not trace.get_current_span().get_span_context().is_valid


@agent
def answer(text: str) -> str:
    """An agent behind a web server."""
    return text


def test_an_asgi_caller_hears_the_trace_id_and_hands_on_its_trace(spans: Any) -> None:
    """The header is the run's, and with traceparent the run is the caller's child."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        text = answer("hi")
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": text.encode()})

    async def call(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await TraceASGI(app)({"type": "http", "headers": headers}, None, send)
        assert len(sent) == 2
        return dict(sent[0]["headers"])

    alone = asyncio.run(call([]))
    assert alone[b"a"] == b"b"
    assert int(alone[b"x-trace-id"], 16) == spans.one().context.trace_id
    spans.clear()
    joined = asyncio.run(call([(b"traceparent", PARENT.encode())]))
    assert joined[b"x-trace-id"].decode() == PARENT[3:35]
    assert spans.one().parent.span_id == int(PARENT[36:52], 16)


def test_a_wsgi_caller_hears_it_too(spans: Any) -> None:
    """The same for the older kind of server."""
    told: list[Any] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        text = answer("hi")
        assert trace_header() == {"x-trace-id": PARENT[3:35]}
        start_response("200 OK", [("a", "b")])
        return [text.encode()]

    body = TraceWSGI(app)({"HTTP_TRACEPARENT": PARENT}, lambda *given: told.append(given))
    assert list(body) == [b"hi"]
    assert told == [("200 OK", [("a", "b"), ("x-trace-id", PARENT[3:35])])]
    assert trace_header() == {}


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What a logger with our filter writes."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(TraceIds())
    handler.setFormatter(logging.Formatter("%(trace_id)s/%(span_id)s %(message)s"))
    logger = logging.getLogger("bookshop")
    logger.addHandler(handler)
    yield out
    logger.removeHandler(handler)


def test_log_records_carry_trace_and_span_id(spans: Any, lines: io.StringIO) -> None:
    """Also outside of a trace, where the texts are empty and the format still works."""

    @agent
    def handle(text: str) -> None:
        logging.getLogger("bookshop.inner").warning("inside")

    handle("x")
    logging.getLogger("bookshop").warning("outside")

    context = spans.one().context
    inside = f"{context.trace_id:032x}/{context.span_id:016x} inside"
    assert lines.getvalue().splitlines() == [inside, "/ outside"]


def test_structlog_events_carry_them_too(spans: Any) -> None:
    """The processor stands in structlog's own chain."""
    out = io.StringIO()
    log = structlog.wrap_logger(
        structlog.PrintLogger(out), processors=[trace_ids, structlog.processors.JSONRenderer(sort_keys=True)]
    )

    @agent
    def handle(text: str) -> None:
        log.info("inside")

    handle("x")
    log.info("outside")
    inside, outside = map(json.loads, out.getvalue().splitlines())
    assert inside["trace_id"] == f"{spans.one().context.trace_id:032x}"
    assert outside == {"event": "outside"}


def test_a_process_without_traceparent_has_no_parent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor one with a broken one."""
    monkeypatch.setenv("TRACEPARENT", "00-nonsense")
    configure(file=tmp_path / "a.jsonl")
    step(1)
    assert force_flush()
    (span,) = json.loads((tmp_path / "a.jsonl").read_text("utf-8"))["resourceSpans"][0]["scopeSpans"][0][
        "spans"
    ]
    assert "parentSpanId" not in span
    reset()
    assert settings.parent is None

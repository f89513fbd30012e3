"""The head of a request has its bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvicorn

from redfirst.collector_processor.receiving.refusals import Refusal
from tests.otlp.items import proves

HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n"

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


def talked(talk: Talk, *, seconds: float) -> tuple[bytes, list[Refusal]]:
    """What a conversation with the server gave, and what was counted."""
    from redfirst.collector_processor.receiving.headers import bounded_headers

    refused: list[Refusal] = []

    async def app(scope: object, receive: Callable[[], Awaitable[dict[str, object]]], send: object) -> None:
        while (await receive()).get("more_body"):
            continue
        await send({"type": "http.response.start", "status": 204, "headers": []})  # type: ignore[operator]
        await send({"type": "http.response.body", "body": b""})  # type: ignore[operator]

    async def main() -> bytes:
        config = uvicorn.Config(
            app,
            http=bounded_headers(refused.append, seconds=seconds, most=1000),
            lifespan="off",
            log_config=None,
            ws="none",
        )
        config.load()
        state = uvicorn.server.ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),
            "127.0.0.1",
            0,
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        try:
            return await asyncio.wait_for(talk(reader, writer), 10)
        finally:
            writer.close()
            server.close()

    return asyncio.run(main()), refused


async def _say_the_beginning(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(HEAD)
    return await reader.read()


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    return await reader.read()


async def _never_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(HEAD + b"x: " + b"y" * 2000)
    return await reader.read()


async def _ask_then_dawdle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 204")
    writer.write(b"POST /v1")
    return await reader.read()


async def _send_a_slow_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(HEAD + b"Content-Length: 2\r\n\r\n1")
    await asyncio.sleep(0.5)
    writer.write(b"2")
    return await reader.readuntil(b"\r\n\r\n")


@proves(20)
@pytest.mark.parametrize("talk", [_say_the_beginning, _ask_then_dawdle])
def test_a_head_that_does_not_end_is_408(talk: Talk) -> None:
    """On a new connection and on one that has served; the connection is closed and the refusal counted."""
    answer, refused = talked(talk, seconds=0.2)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert refused == [Refusal.TOO_SLOW]


@proves(20)
def test_a_head_without_end_is_431() -> None:
    """Before it fills the memory."""
    answer, refused = talked(_never_end, seconds=30)

    assert answer.startswith(b"HTTP/1.1 431 ")
    assert refused == [Refusal.LARGE_HEADERS]


@proves(20)
def test_a_connection_that_says_nothing_is_closed_and_is_no_refusal() -> None:
    """A load balancer looks whether the port is open."""
    assert talked(_say_nothing, seconds=0.2) == (b"", [])


def test_a_slow_body_is_not_the_heads_affair() -> None:
    """It has a time limit of its own."""
    answer, refused = talked(_send_a_slow_body, seconds=0.2)

    assert answer.startswith(b"HTTP/1.1 204")
    assert refused == []

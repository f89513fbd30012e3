# ruff: noqa: E501 - one source a line
"""One program, and a source of chance planted in it: what it must be refused for, or that it is frozen."""

from __future__ import annotations

from dataclasses import dataclass

_THREADS = """came = []

    def one(place):
        READ("AC-1")
        came.append(place)

    runs = [contextvars.copy_context().run for _ in "abc"]
    threads = [threading.Thread(target=run, args=(one, place)) for run, place in zip(runs, "abc")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    return "".join(came)"""
_POOL = """with ThreadPoolExecutor(3) as pool:
        work = {pool.submit(contextvars.copy_context().run, READ, "AC-1"): place for place in "abc"}
        return "".join(work[done] for done in as_completed(work))"""
_TASKS = """came = []

    async def one(place):
        await AREAD("AC-1")
        came.append(place)

    async def both():
        await asyncio.gather(*map(one, "abc"))

    asyncio.run(both())
    return "".join(came)"""
_RUN = "return subprocess.run({}, capture_output=True, text=True, check=True).stdout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A source of chance in the note that the program writes."""

    kind: str
    what: str
    body: str
    """The body of the function that gives the note."""
    named: str | None
    """Words of the refusal; ``None``: it is frozen, and the program is proven."""


def _value(expression: str) -> str:
    return f"return str({expression})"


PLANTED = tuple(
    Planted(kind=kind, what=what, body=body, named=named)
    for kind, what, body, named in (
        ("clock", "time.monotonic", _value("time.monotonic()"), "time.monotonic"),
        ("clock", "time.perf_counter_ns", _value("time.perf_counter_ns()"), "time.perf_counter_ns"),
        ("clock", "the time of a file", "Path('made').write_text('x')\n    return str(Path('made').stat().st_mtime)", "the time of a file"),
        ("clock", "datetime.now", _value("datetime.now()"), None),
        ("clock", "time.strftime with the zone", _value("time.strftime('%c %Z')"), None),
        ("clock", "the program date", _RUN.format("['date', '+%c %Z']"), None),
        ("uuid", "uuid of os.urandom", _value("uuid.UUID(bytes=os.urandom(16))"), "os.urandom"),
        ("uuid", "uuid of the kernel", "return Path('/proc/sys/kernel/random/uuid').read_text()", "/proc/sys/kernel/random/uuid"),
        ("uuid", "secrets.token_hex", _value("secrets.token_hex()"), "os.urandom"),
        ("uuid", "uuid.uuid4", _value("uuid.uuid4()"), None),
        ("uuid", "uuid.uuid1", _value("uuid.uuid1()"), None),
        ("random", "random.SystemRandom", _value("random.SystemRandom().random()"), "os.urandom"),
        ("random", "numpy.random.default_rng", _value("__import__('numpy').random.default_rng().random()"), "os.urandom"),
        ("random", "/dev/urandom", "return open('/dev/urandom', 'rb').read(4).hex()", "/dev/urandom"),
        ("random", "random.random", _value("random.random()"), None),
        ("random", "random.Random()", _value("random.Random().random()"), None),
        ("set order", "a set of words", "return ''.join({'ash', 'birch', 'cedar', 'elm', 'fir', 'oak', 'pine', 'yew'})", "PYTHONHASHSEED"),
        ("set order", "hash of a text", _value("hash('ash')"), "PYTHONHASHSEED"),
        ("set order", "the address of an object", _value("object()"), "address of an object"),
        ("set order", "a set that is sorted", "return ''.join(sorted({'ash', 'birch', 'cedar', 'elm', 'fir', 'oak'}))", None),
        ("thread", "threads, as they end", _THREADS, "concurrent calls"),
        ("thread", "as_completed of a pool", _POOL, "concurrent calls"),
        ("thread", "tasks, as they end", _TASKS, "concurrent calls"),
        ("thread", "a pool's map", "with ThreadPoolExecutor(3) as pool:\n        return str([done.result() for done in [pool.submit(contextvars.copy_context().run, READ, 'AC-1') for _ in 'abc']])", None),
        ("environment", "a variable", _value("os.environ['HOME']"), "environment variable HOME"),
        ("environment", "a home folder", _value("Path.home()"), "environment variable HOME"),
        ("environment", "the machine's name", _value("socket.gethostname()"), "socket.gethostname"),
        ("environment", "the process id", _value("os.getpid()"), "the process id"),
        ("environment", "the working folder", _value("Path.cwd()"), "the working folder"),
        ("environment", "the locale", _RUN.format("['locale']"), None),
        ("environment", "a variable that is listed", _value("os.environ['LISTED']"), None),
    )
)  # fmt: skip
LISTED = {"LISTED": "as the project says"}
"""The environment variables that the project sets for its agent."""

SOURCE = """\
import asyncio
import contextvars
import json
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import datetime
from pathlib import Path

from redfirst.instrumentation import agent, model, tool

os.environ.setdefault("LISTED", "in production")


@tool(effect="read")
def find_account(key: str) -> dict:
    return {{"key": key}}


@tool(effect="write")
def close_account(key: str, request_id: str) -> str:
    return "closed"


@tool(name="find_account", effect="read")
async def find(key: str) -> dict:
    return {{"key": key}}


READ, AREAD = find_account, find


@model(provider="scripted")
def chat(messages: list) -> dict:
    place = sum(message["role"] == "assistant" for message in messages)
    wanted = ["find_account", "close_account"][place:][:1]
    calls = [{{"id": f"c{{place}}", "name": name, "arguments": {{"key": "AC-1"}}}} for name in wanted]
    return {{"content": "" if calls else "It is closed.", "tool_calls": calls}}


def note():
    {body}


def make():
    @agent(name="planted", step_cap=5, version="1")
    def handle(request):
        messages = [{{"role": "user", "content": request}}]
        for _ in range(5):
            reply = chat(messages)
            messages.append({{"role": "assistant", **reply}})
            for call in reply["tool_calls"]:
                if call["name"] == "close_account":
                    answer = close_account(call["arguments"]["key"], note())
                else:
                    answer = find_account(**call["arguments"])
                messages.append({{"role": "tool", "tool_call_id": call["id"], "content": json.dumps(answer)}})
            if not reply["tool_calls"]:
                return reply["content"]

    return handle
"""
RULE: dict[str, object] = {
    "kind": "require_before",
    "id": "verify-first",
    "call": "close_account",
    "needs": "verify_account",
}

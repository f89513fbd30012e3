"""A hundred and more programs: each its own tools, its own way of calling them, its own fault.

The source of a program is text, as a team's would be, and imports nothing from here. Its incident is recorded by running it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WAYS = ("loop", "gather", "generator", "threads", "coroutine", "pool")
"""How a program makes the calls of one model turn: every other way makes them at once."""
CONCURRENT = frozenset({"gather", "threads", "pool"})
ASYNCHRONOUS = frozenset({"gather", "coroutine"})
FAULTS = ("acts_unchecked", "acts_twice", "asks_again", "runs_out")
"""What a model does wrong: skips the check before the write, writes twice, reads the same again and again, or never ends."""
FROZEN = (
    "uuid.uuid4().hex[:8]",
    "f'{random.random():.6f}'",
    "datetime.now().isoformat()",
    "str(random.Random().randint(0, 10**6))",
    "time.strftime('%F')",
    "f'{random.choice(sorted(TOPICS))}-{int(time.time())}'",
)
"""What a program writes into a note that is compared: time and chance, all of it frozen."""
_NOUNS = (
    "order",
    "ticket",
    "invoice",
    "claim",
    "account",
    "parcel",
    "booking",
    "device",
    "loan",
    "course",
    "meter",
    "visit",
)
_READS = ("find", "list", "price", "trace", "audit", "weigh")
_WRITES = ("cancel", "refund", "close", "move", "renew", "block")
_CAP = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program and the rule that its run breaks."""

    name: str
    way: str
    fault: str
    source: str
    rule: dict[str, object] | None
    """The rule its run breaks; ``None`` where a default check of every run tells."""

    @property
    def concurrent(self) -> bool:
        """Whether it makes calls in tasks or threads."""
        return self.way in CONCURRENT


def programs(number: int) -> Iterator[Program]:
    """The first of them; always the same."""
    for place in range(number):
        yield _program(place)


def _program(place: int) -> Program:
    chance = random.Random(place)  # noqa: S311 - the same programs every time
    noun = _NOUNS[place % len(_NOUNS)]
    way, fault = WAYS[place % len(WAYS)], FAULTS[(place // len(WAYS)) % len(FAULTS)]
    read, other = (f"{verb}_{noun}" for verb in chance.sample(_READS, 2))
    write, check = f"{chance.choice(_WRITES)}_{noun}", f"verify_{noun}"
    key = f"{noun[:2].upper()}-{100 + place}"
    turns = _turns(fault, read, other, check, write, key, chance.randint(0, 2))
    rule: dict[str, object] | None = None
    if fault == "acts_unchecked":
        rule = {"kind": "require_before", "id": f"{check}-first", "call": write, "needs": check}
    elif fault == "acts_twice":
        rule = {"kind": "max_calls", "id": f"one-{write}", "call": write, "max": 1}
    source = _SOURCE.format(
        name=f"{noun}-desk-{place}", read=read, other=other, check=check, write=write, turns=turns, cap=_CAP,
        note=FROZEN[place % len(FROZEN)] if place % 2 else "'none'", calls=_CALLS[way], handle=_HANDLE[way],
        asynchronous="async " if way in ASYNCHRONOUS else "", await_="await " if way in ASYNCHRONOUS else "",
    )  # fmt: skip
    return Program(name=f"program_{place:03}", way=way, fault=fault, source=source, rule=rule)


def _turns(
    fault: str, read: str, other: str, check: str, write: str, key: str, more: int
) -> Sequence[Sequence[tuple[str, dict[str, str]]]]:
    """What the model asks for, turn by turn: after the last it answers, unless it never ends."""
    both = [
        (read, {"key": key}),
        (other, {"key": key}),
        *((read, {"key": f"{key}-{n}"}) for n in range(more)),
    ]
    if fault == "acts_unchecked":
        return [both, [(write, {"key": key})]]
    if fault == "acts_twice":
        return [both, [(check, {"key": key})], [(write, {"key": key})], [(write, {"key": key})]]
    if fault == "asks_again":
        return [both, *[[(read, {"key": key})]] * 4]
    return [both, *([(read, {"key": f"{key}/{n}"}), (other, {"key": f"{key}/{n}"})] for n in range(_CAP))]


_CALLS = {
    "loop": "    return [answer(call) for call in wanted]",
    "generator": "    return list(map(answer, wanted))",
    "coroutine": "    return [await aanswer(call) for call in wanted]",
    "gather": "    return await asyncio.gather(*(aanswer(call) for call in wanted))",
    "pool": "    with ThreadPoolExecutor(4) as pool:\n        contexts = [contextvars.copy_context() for _ in wanted]\n"
    "        return list(pool.map(lambda context, call: context.run(answer, call), contexts, wanted))",
    "threads": """    found = {}
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(lambda n, c: found.update({n: answer(c)}), n, c))
        for n, c in enumerate(wanted)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[n] for n in sorted(found)]""",
}
_HANDLE = {
    "loop": "    return handle",
    "threads": "    return handle",
    "pool": "    return handle",
    "gather": "    return lambda request: asyncio.run(handle(request))",
    "coroutine": "    return handle",
    "generator": """
    def stream(request):
        for word in handle(request).split(" "):
            yield word + " "

    return stream""",
}
_SOURCE = """\
import asyncio
import contextvars
import json
import random
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from redfirst.instrumentation import agent, current_run, model, tool

TURNS = {turns!r}
TOPICS = {{"late", "lost", "torn", "new", "old"}}


@tool(effect="read")
def {read}(key: str) -> dict:
    return {{"key": key, "state": "open", "words": sorted(TOPICS)}}


@tool(effect="read")
def {other}(key: str) -> list:
    return [key, len(key), None]


@tool(effect="read")
def {check}(key: str) -> bool:
    return True


@tool(effect="write")
def {write}(key: str, request_id: str = "") -> dict:
    return {{"key": key, "done": True, "by": request_id}}


TOOLS = {{tool.__name__: tool for tool in ({read}, {other}, {check}, {write})}}


@model(provider="scripted")
def chat(messages: list) -> dict:
    place = sum(message["role"] == "assistant" for message in messages)
    wanted = TURNS[place] if place < len(TURNS) else []
    calls = [{{"id": f"c{{place}}-{{n}}", "name": name, "arguments": given}} for n, (name, given) in enumerate(wanted)]
    return {{"content": "" if calls else "It is done.", "tool_calls": calls}}


def answer(call):
    given = dict(call["arguments"])
    if call["name"] == "{write}":
        given["request_id"] = {note}
    return json.dumps(TOOLS[call["name"]](**given))


async def aanswer(call):
    await asyncio.sleep(0)
    return answer(call)


{asynchronous}def answers(wanted):
{calls}


def make():
    @agent(name="{name}", step_cap={cap}, version="1")
    {asynchronous}def handle(request):
        messages = [{{"role": "user", "content": request}}]
        for _ in range({cap}):
            reply = chat(messages)
            messages.append({{"role": "assistant", **reply}})
            if not reply["tool_calls"]:
                return reply["content"]
            found = {await_}answers(reply["tool_calls"])
            for call, text in zip(reply["tool_calls"], found):
                messages.append({{"role": "tool", "tool_call_id": call["id"], "content": text}})
        current_run().stop("step_cap", cap={cap})
        return "I could not finish."

{handle}
"""

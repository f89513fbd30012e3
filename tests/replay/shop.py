"""A very small agent, copied into a project folder by the tests: factories that each differ in one thing."""

from __future__ import annotations

import asyncio
import json
import os
import random
import secrets
import socket
import subprocess
import threading
import time
import uuid
from datetime import datetime
from pathlib import Path

from redfirst.instrumentation import agent, current_run, model, tool

ORDERS = {"A-1": {"customer": "C-1", "status": "open"}, "A-2": {"customer": "C-2", "status": "open"}}


class NoSuchOrder(Exception):
    """The order does not exist."""


def make(*, guard=False, note=None, chat=None, extra=None, after=None, cap=8, lets_go=False, key="status"):
    """The factory all others vary: an agent that looks an order up, then cancels it."""
    rows = json.loads(json.dumps(ORDERS))

    @tool(effect="read")
    def lookup(order: str) -> dict:
        if order not in rows:
            raise NoSuchOrder(f"no order {order}")
        return {"order": order, "customer": rows[order]["customer"], key: rows[order]["status"]}

    @tool(effect="read")
    def verify(customer: str) -> dict:
        return {"customer": customer, "verified": True}

    @tool(effect="write")
    def cancel(order: str, note: str | None = None) -> dict:
        rows[order]["status"] = "cancelled"
        return {"order": order, "status": "cancelled"}

    tools = {"lookup": lookup, "verify": verify, "cancel": cancel}
    ask = model(chat or hasty)

    @agent(name="shop", step_cap=cap, version="1")
    def handle(request: str) -> str:
        current_run().state({"orders": rows})
        messages = [{"role": "user", "content": request}]
        verified = False
        for _ in range(cap):
            reply = ask(messages)
            messages.append({"role": "assistant", **reply})
            if not reply["tool_calls"]:
                current_run().state({"orders": rows})
                return reply["content"] + (after() if after else "")
            for call in reply["tool_calls"]:
                arguments = dict(call["arguments"])
                if extra:
                    extra(tools)
                try:
                    if call["name"] == "cancel" and guard and not verified:
                        raise PermissionError("verify first")
                    if call["name"] == "cancel" and note:
                        arguments["note"] = note()
                    result = tools[call["name"]](**arguments)
                    verified = verified or call["name"] == "verify"
                    text = json.dumps(result)
                except Exception as error:
                    if lets_go:
                        raise
                    text = f"Error: {error}"
                if call["name"] == "cancel":
                    current_run().state({"orders": rows})
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        current_run().stop("step_cap", cap=cap)
        return "out of steps"

    return handle


def _say(text):
    return {"content": text, "tool_calls": []}


def _want(name, place, **arguments):
    return {"content": "", "tool_calls": [{"id": f"c{place}", "name": name, "arguments": arguments}]}


def hasty(messages) -> dict:
    """A model that cancels without verifying, unless it is told to."""
    order = "A-1" if "A-1" in messages[0]["content"] else "A-9"
    answers = [m["content"] for m in messages if m["role"] == "tool"]
    if not answers:
        return _want("lookup", 0, order=order)
    if "no order" in answers[0]:
        return _say("there is no such order")
    if "verify first" in answers[-1]:
        return _want("verify", len(answers), customer="C-1")
    if '"cancelled"' in answers[-1]:
        return _say("cancelled")
    return _want("cancel", len(answers), order=order)


def careful(messages) -> dict:
    """A model that verifies before it cancels."""
    answers = [m["content"] for m in messages if m["role"] == "tool"]
    if len(answers) == 1:
        return _want("verify", 1, customer="C-1")
    return hasty(messages)


def bad():
    return make()


def guarded():
    return make(guard=True)


def with_careful_model():
    return make(chat=careful)


def sometimes():
    def chat(messages):
        return (careful if random.random() < 0.5 else hasty)(messages)

    return make(chat=chat)


def raising():
    def fail(tools):
        raise KeyError("tier")

    return make(extra=fail)


def answering_only():
    return lambda request: "done"


def off_tape():
    return make(extra=lambda tools: tools["lookup"]("A-2"))


def token():
    return make(note=lambda: secrets.token_hex(16))


def dated():
    return make(
        note=lambda: subprocess.run(["date"], capture_output=True, text=True, check=True).stdout.strip()
    )


def set_order():
    return make(note=lambda: "".join({"alpha", "beta", "gamma", "delta", "epsilon", "zeta"}))


def frozen():
    """Uses everything that is frozen; two runs agree."""
    return make(note=lambda: f"{datetime.now()} {time.time()} {uuid.uuid4()} {random.random()}")


def threaded():
    def extra(tools):
        found = []
        thread = threading.Thread(target=lambda: found.append(tools["lookup"]("A-1")))
        thread.start()
        thread.join()
        if not found:
            raise RuntimeError("the thread found no order")

    return make(extra=extra)


def swallowing():
    """Swallows even what ends the run, and goes on."""

    def extra(tools):
        try:
            tools["lookup"]("A-2")
        except BaseException:
            pass

    return make(extra=extra)


def snooping():
    def extra(tools):
        for folder in os.environ["SNOOP_IN"].split(":"):
            for path in Path(folder).rglob("scenario.yaml"):
                path.read_text()

    return make(extra=extra)


def online():
    def extra(tools):
        socket.create_connection(("127.0.0.1", 9), timeout=1)

    return make(extra=extra)


def dying():
    return make(extra=lambda tools: os._exit(7))


def stuck():
    return make(extra=lambda tools: time.sleep(60))


def asynchronous():
    """The same agent as a coroutine function."""
    inner = make()

    async def handle(request: str) -> str:
        await asyncio.sleep(0)
        return inner(request)

    return handle


def model_down():
    """The model cannot be reached."""

    def chat(messages):
        raise ConnectionError("connection refused")

    return make(chat=chat)


def model_breaks():
    """The agent's own code breaks before it has done anything."""

    def chat(messages):
        raise KeyError("tier")

    return make(chat=chat)


def looking(messages) -> dict:
    """A model that looks the order up, again after an error, and says what it found."""
    answers = [m["content"] for m in messages if m["role"] == "tool"]
    found = any('"status"' in text for text in answers)
    return _say("it is open") if found else _want("lookup", len(answers), order="A-1")


def persistent(*, step_cap=8):
    """Hands a tool's error to its model, which asks again; needs two steps without one."""
    return make(chat=looking, cap=step_cap)


def fragile():
    """Lets the error of a tool end the run."""
    return make(chat=looking, lets_go=True)


def renamed():
    """Its lookup answers under another key than it did."""
    return make(key="state")


def silent_model(messages) -> dict:
    """A model that answers without looking."""
    return _say("cancelled")


def answers_unchecked():
    return make(chat=silent_model)


def raises_at_once():
    def handle(request: str) -> str:
        raise ValueError("no such customer")

    return handle


def claiming(messages) -> dict:
    """A model that looks once and says that all is well, whatever it was told."""
    return _say("it is open") if len(messages) > 1 else _want("lookup", 0, order="A-1")


def claims_anyway():
    return make(chat=claiming)


def handing_on(messages) -> dict:
    """A model that looks once and repeats what it was told."""
    return _say(messages[-1]["content"]) if len(messages) > 1 else _want("lookup", 0, order="A-1")


def hands_on():
    return make(chat=handing_on)


def never_green(*, step_cap=8):
    """Cancels without verifying, in three steps; a lower cap cuts it."""
    return make(cap=step_cap)

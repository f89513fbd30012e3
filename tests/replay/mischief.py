"""Agents that try to be proven without being executed, or to keep their executor waiting; each varies ``shop.make``."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from opentelemetry import trace
from shop import make

from redfirst.evaluators import semconv
from redfirst.instrumentation import agent, door, tool


def writing_spans():
    """Writes the spans of its incident, and calls nothing."""

    @agent(name="shop", step_cap=8, version="1")
    def handle(request):
        for name in ("lookup", "cancel"):
            with trace.get_tracer(semconv.SCOPE).start_as_current_span(f"execute_tool {name}") as span:
                span.set_attributes(
                    {
                        semconv.OI_KIND: "TOOL",
                        semconv.OPERATION: "execute_tool",
                        semconv.TOOL_NAME: name,
                        semconv.TOOL_CALL_ARGUMENTS: json.dumps({"order": "A-1"}),
                        semconv.TOOL_CALL_RESULT: "{}",
                    }
                )
        return "cancelled"

    return handle


def out_of_the_door():
    """Puts the replay aside and calls its tools for real."""

    def handle(request):
        door.occupy_process(None)
        return make()(request)

    return handle


FORGED = {
    "imported": True, "pid": 1, "stop": None, "error": None, "answer": "x", "events": [], "tape_decisions": 1,
    "live_decisions": [], "unfrozen": {}, "varied": [], "closed": "", "spans": {},
}  # fmt: skip


def forging():
    """Writes a result of its own into every descriptor and leaves."""

    def handle(request):
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, json.dumps(FORGED).encode())
            except OSError:
                continue
        os._exit(0)

    return handle


def returning_twice():
    """Forks, and both return."""

    def handle(request):
        child = os.fork()
        if child == 0:
            return "I am the copy"
        os.waitpid(child, 0)
        return make()(request)

    return handle


def leaving_a_fork():
    """Leaves a process behind that holds every pipe open."""

    def handle(request):
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        os._exit(9)

    return handle


def worked_by_another_process():
    """Has a copy of itself do the work."""

    def handle(request):
        child = os.fork()
        if child == 0:
            make()(request)
            os._exit(0)
        os.waitpid(child, 0)
        return "cancelled"

    return handle


def trying_for_ever():
    """Swallows what ends the run, again and again."""

    def extra(tools):
        while True:
            try:
                tools["lookup"]("A-2")
            except BaseException:  # noqa: BLE001 - that is its mischief
                time.sleep(0.01)

    return make(extra=extra)


def printing():
    """Prints more than anybody wants to keep."""

    def handle(request):
        for _ in range(200):
            os.write(1, b"x" * (1 << 20))
        return make()(request)

    return handle


def running_on():
    """Leaves a daemon that goes on for ever."""

    def handle(request):
        answer = make()(request)
        threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
        return answer

    return handle


def waiting():
    """Sleeps, waits and times out on the event loop, and works in its executor."""
    inner = make()

    async def handle(request):
        await asyncio.wait_for(asyncio.sleep(0.01), 5)
        try:
            await asyncio.wait_for(asyncio.sleep(30), 0.05)
        except TimeoutError:
            return await asyncio.to_thread(inner, request)
        return "no time passed"

    return handle


def streaming():
    """Streams its answer."""
    inner = make()

    def handle(request):
        yield from inner(request)

    return handle


def asynchronously_streaming():
    """Streams its answer on the event loop."""
    inner = make()

    async def handle(request):
        for part in inner(request):
            yield part

    return handle


def unseeded():
    return make(note=lambda: str(random.Random().random()))


def as_class_attributes():
    """Keeps functions of the clock and of chance as attributes of a class."""

    class Tools:
        clock = time.perf_counter
        draw = random.random

    return make(note=lambda: str(Tools().clock() > 0) + str(Tools().draw()))


def _noting(function):
    return lambda: make(note=lambda: str(function()))


monotonic = _noting(lambda: int(time.monotonic()))
process_id = _noting(os.getpid)
folder = _noting(os.getcwd)
temporary = _noting(tempfile.mktemp)
variable = _noting(lambda: os.getenv("HOME"))
machine = _noting(socket.gethostname)
drawn_by_the_kernel = _noting(lambda: Path("/proc/sys/kernel/random/uuid").read_text())


def _date(*arguments):
    return subprocess.run(["date", *arguments], capture_output=True, text=True, check=True).stdout.strip()


today = _noting(lambda: f"{_date('+%F %H:%M')} then {_date('-d', '2020-01-01', '+%F')}")
switched_by_variable = _noting(lambda: "home" if os.environ["HOME"] else "nowhere")


def _threads(ordered):
    """Looks an order up in two threads, and notes which was answered first, or only that both were."""

    def extra(tools):
        came = []

        def one(place):
            tools["lookup"]("A-1")
            came.append(place)

        threads = [threading.Thread(target=one, args=(place,)) for place in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        noted[0] = "".join(sorted(came) if ordered else came)

    noted = [""]
    return make(extra=extra, note=lambda: noted[0])


def racing_threads():
    return _threads(ordered=False)


def sorted_threads():
    return _threads(ordered=True)


def racing_tasks():
    """Looks an order up in two tasks, and notes which was answered first."""

    @tool(effect="read")
    async def lookup(order: str) -> dict:
        raise AssertionError("a replay reached a live tool")

    async def both():
        came = []

        async def one(place):
            await lookup("A-1")
            came.append(place)

        await asyncio.gather(one("a"), one("b"))
        return "".join(came)

    noted = [""]

    def extra(tools):
        noted[0] = asyncio.run(both())

    return make(extra=extra, note=lambda: noted[0])


local_time = _noting(lambda: time.strftime("%H:%M %Z"))
addressed = _noting(object)


CHECK = "verify-before-cancel"


def grep(folder):
    """What grep finds of the check."""
    found = subprocess.run(["grep", "-rsl", CHECK, folder], capture_output=True, text=True)
    return found.stdout.strip() or "nothing"


def read_natively(folder):
    """What C's own open finds."""
    descriptor = ctypes.CDLL(None).open(f"{folder}/scenario.yaml".encode(), os.O_RDONLY)
    if descriptor < 0:
        return "nothing"
    os.close(descriptor)
    return "a descriptor"


def read_in_a_fork(folder):
    """What another Python finds, without our hook in it."""
    code = "import pathlib, sys; print(len(pathlib.Path(sys.argv[1], 'scenario.yaml').read_text()))"
    found = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    return found.stdout.strip() or "nothing"


LOOKS = {"grepping": grep, "reading_natively": read_natively, "reading_in_a_fork": read_in_a_fork}


def _looking(look):
    def handle(request):
        answer = make()(request)
        print(json.dumps(look(os.environ["SNOOP_IN"])))
        return answer

    return lambda: handle


grepping, reading_natively, reading_in_a_fork = map(_looking, LOOKS.values())
walking = _looking(lambda folder: [path.read_text() for path in Path(folder).glob("*.yaml")])
walking_past = _noting(lambda: "nothing")


def calling_out():
    """Has another program connect."""
    code = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1]))); print('reached')"

    def handle(request):
        answer = make()(request)
        called = subprocess.run(
            [sys.executable, "-c", code, os.environ["CALL_AT"]], capture_output=True, text=True
        )
        print(json.dumps(called.stdout.strip() or "nothing"))
        return answer

    return handle


def file_time():
    Path("made").write_text("now")
    return make(note=lambda: str(int(Path("made").stat().st_mtime)))


def needing(argument):
    return make()


def nothing():
    return None


async def later():
    return make()


def leaving():
    sys.exit("not today")

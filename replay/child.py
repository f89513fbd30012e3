"""The process an agent is executed in: ``python -m redfirst.replay.child``, a job on standard input.

It sees the request, the recorded answers and the agent's reference. It never sees the checks, and it
is kept from reading the scenario's folder and, in recorded mode, from the network, by an audit hook:
that stops code that looks around, not code that means to get round Python.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from redfirst.replay.environment import Environment
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import ModelTape, ModelTurn, Response, ToolFixture, ToolTape
from redfirst.replay.world import StreamIds, World

Json = Any


def main() -> None:
    """Run the job on standard input and write its result to the file descriptor named by the argument."""
    job = json.load(sys.stdin)
    with os.fdopen(int(sys.argv[1]), "w", encoding="utf-8") as out:
        json.dump(run(job), out)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads the agent left behind must not keep the verdict waiting


def run(job: Mapping[str, Json]) -> dict[str, Json]:
    """Execute the agent once; the result is plain JSON."""
    # imported before the clock is frozen: what they do at import is no part of the agent's run
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from redfirst.evaluators import semconv
    from redfirst.instrumentation import door, faults, provider
    from redfirst.instrumentation.capture import to_text
    from redfirst.instrumentation.otlp_file import to_otlp_json

    world = World(**job["world"])
    environment = Environment(
        tools=ToolTape(
            (
                ToolFixture(
                    name=item["name"],
                    effect=item["effect"],
                    responses=tuple(
                        Response(tool=item["name"], **response) for response in item["responses"]
                    ),
                    args=item["args"],
                    ignore=tuple(item["ignore"]),
                )
                for item in job["tools"]
            ),
            sources=job["sources"],
        ),
        model=None if job["model"] is None else ModelTape(ModelTurn(**turn) for turn in job["model"]),
        state=job["state"],
        world=world,
        live_off_tape=job["live_off_tape"],
    )
    spans = InMemorySpanExporter()
    tracing = TracerProvider(
        resource=Resource({"service.name": "redfirst-replay", semconv.REPLAY_SCENARIO: job["scenario"]}),
        id_generator=StreamIds(world),
    )
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    provider.isolate(tracing)
    door.occupy_process(environment)
    sys.path[:0] = job["path"]
    watch(environment, world, closed=job["closed"], network=job["model"] is None or job["live_off_tape"])
    world.freeze()

    answer: object = None
    error: BaseException | None = None
    imported = False
    try:
        agent = load(job["agent"])
        imported = True
        answer = call(agent, job["request"])
    except BaseException as problem:  # noqa: BLE001 - the agent's own end, whatever it is, is the result
        error = problem
    world.thaw_clock()
    environment.finish(None if answer is None else to_text(answer)[0], error)
    if faults():
        environment.latch(
            HarnessStop(StopKind.OUR_FAULT, f"redfirst's instrumentation failed in this run: {faults()}")
        )
    stop = environment.latched
    return {
        "imported": imported,
        "stop": None if stop is None else {"kind": stop.kind.value, "message": stop.message},
        "error": None
        if error is None or isinstance(error, HarnessStop)
        else {
            "type": type(error).__name__,
            "message": str(error),
            "trace": "".join(traceback.format_exception(error, limit=-8)),
        },
        "answer": None if answer is None else to_text(answer)[0],
        "events": environment.events,
        "tape_decisions": environment.tape_decisions,
        "live_decisions": environment.live_decisions,
        "unfrozen": dict(world.unfrozen),
        "spans": to_otlp_json(spans.get_finished_spans()),
    }


def load(reference: str) -> Callable[..., Any]:
    """The agent that ``module:factory`` makes."""
    module, _, factory = reference.partition(":")
    made: Any = importlib.import_module(module)
    for part in factory.split("."):
        made = getattr(made, part)
    agent: Callable[..., Any] = made()
    return agent


def call(agent: Callable[..., Any], request: Mapping[str, Json]) -> object:
    """Call the agent with its request; a coroutine is run to its end."""
    if "arguments" in request:
        answer = agent(**request["arguments"])
    else:
        answer = agent(request["messages"] if "messages" in request else request["text"])
    if not inspect.iscoroutine(answer):
        return answer
    import asyncio

    return asyncio.run(answer)


def watch(environment: Environment, world: World, *, closed: list[str], network: bool) -> None:
    """Hear of every file, process, thread and connection of this process from now on."""
    folders = tuple(str(Path(folder).resolve()) for folder in closed)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir", "glob.glob") and folders:
            if isinstance(args[0], str | bytes) and _inside(os.fsdecode(args[0]), folders):
                stop(
                    StopKind.GRADER_READ,
                    f"the agent opened {os.fsdecode(args[0])}, the scenario it is judged by",
                )
        elif event in ("socket.connect", "socket.sendto") and not network:
            if isinstance(args[1], tuple):
                stop(
                    StopKind.NETWORK,
                    f"the agent connected to {args[1][0]}:{args[1][1]}; in recorded mode nothing may",
                )
        elif event == "socket.getaddrinfo" and not network:
            stop(StopKind.NETWORK, f"the agent looked up {args[0]}; in recorded mode nothing may")
        elif event in ("subprocess.Popen", "os.posix_spawn", "os.system", "os.exec"):
            world.unfrozen[f"the output of subprocess {os.fsdecode(args[0])!r}"] += 1
        elif event == "_thread.start_new_thread":
            world.unfrozen["the order of threads"] += 1

    def stop(kind: StopKind, message: str) -> None:
        stopped = HarnessStop(kind, message)
        environment.latch(stopped)
        raise stopped

    sys.addaudithook(hook)


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    full = os.path.realpath(path)
    return any(full == folder or full.startswith(folder + os.sep) for folder in folders)


if __name__ == "__main__":
    main()

"""The process an agent is executed in: ``python -m redfirst.replay.child FD``, a job on standard input.

It sees the request, the recorded answers and the agent's reference. It never sees the checks, and it
is kept from reading the scenario's folder and, in recorded mode, from the network, by an audit hook:
that stops code that looks around, not code that means to get round Python.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from redfirst.replay import leaving
from redfirst.replay.calling import converse, load
from redfirst.replay.environment import Environment
from redfirst.replay.injection import FaultKind, Injection
from redfirst.replay.landlock import lock
from redfirst.replay.scheduling import ORDER, Schedule
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.tape import ModelTape, ModelTurn, Response, ToolFixture, ToolTape
from redfirst.replay.watching import watch
from redfirst.replay.world import EVERYTHING, StreamIds, World

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

Json = Any

STOP_GRACE = 2.0
"""Seconds an agent has to end after the harness stopped it: one that swallows the stop may go on for ever."""


def main() -> None:
    """Run the job on standard input and write its result to the file descriptor named by the argument."""
    leaving.die_with_parent()
    writing = int(sys.argv.pop())  # the agent's own reading of its arguments must not find it
    os.set_inheritable(writing, False)
    job = json.load(sys.stdin)
    reply = Reply(writing, job.pop("seal"))
    reply.send(run(job, reply))


class Reply:
    """The one result of this process. Sending it ends the process."""

    def __init__(self, descriptor: int, seal: str) -> None:
        self._descriptor = descriptor
        self._seal = seal
        self._process = os.getpid()
        self._lock = threading.Lock()  # guards the descriptor: the run's end and its watchdog may meet here

    def send(self, result: Mapping[str, Json]) -> None:
        """Write the result; threads the agent left behind must not keep the verdict waiting."""
        if os.getpid() != self._process:
            os._exit(0)  # a fork of the agent's that came back here is not the run
        body = json.dumps(result).encode()
        with self._lock:
            for stream in (sys.stdout, sys.stderr):
                try:
                    stream.flush()
                except Exception:  # noqa: BLE001, S112 - the agent may have closed or replaced it
                    continue
            left = memoryview(f"\n{self._seal} {len(body)}\n".encode() + body)
            while left:
                left = left[os.write(self._descriptor, left) :]
            os._exit(0)


def run(job: Mapping[str, Json], reply: Reply) -> dict[str, Json]:
    """Execute the agent once; the result is plain JSON."""
    # imported before the clock is frozen: what they do at import is no part of the agent's run
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from redfirst.evaluators import semconv
    from redfirst.instrumentation import adapters, door, faults, provider
    from redfirst.instrumentation.capture import shown, to_text
    from redfirst.instrumentation.otlp_file import to_otlp_json

    world = World(**job["world"], held=job["held"], vary=job["vary"])
    schedule = Schedule(vary=bool({ORDER, EVERYTHING}.intersection(job["vary"])))
    environment = _environment(job, world, schedule)
    spans = InMemorySpanExporter()
    tracing = TracerProvider(
        resource=Resource({"service.name": "redfirst-replay", semconv.REPLAY_SCENARIO: job["scenario"]}),
        id_generator=StreamIds(world),
    )
    tracing.add_span_processor(SimpleSpanProcessor(spans))
    provider.isolate(tracing)
    _gather(tracing)
    door.occupy_process(environment)
    adapters.install()
    sys.path[:0] = job["path"]
    imported = False

    def result(answer: str | None, error: BaseException | None) -> dict[str, Json]:
        stop = environment.latched
        return {
            "imported": imported,
            "pid": os.getpid(),
            "stop": None if stop is None else {"kind": stop.kind.value, "message": stop.message},
            "error": None
            if error is None or isinstance(error, HarnessStop)
            else {
                "type": type(error).__name__,
                "message": shown(error, str),
                "trace": "".join(traceback.format_exception(error, limit=-8)),
            },
            "answer": answer,
            "events": environment.events,
            "tape_decisions": environment.tape_decisions,
            "live_decisions": environment.live_decisions,
            "unrebuilt": environment.unrebuilt,
            "turns_left": environment.turns_left,
            "unfrozen": {**world.unfrozen, **({ORDER: 1} if schedule.threads else {})},
            "injected": environment.injected,
            "varied": sorted({*world.varied, *([ORDER] if schedule.varied else ())}),
            "closed": locked.said(),
            "locked": locked.names(),
            "spans": to_otlp_json(spans.get_finished_spans()),
        }

    begun = leaving.threads()
    network = job["model"] is None or job["live_off_tape"] or job["live_reads"]
    locked = lock(job["closed"], network=network)
    watch(environment, world, closed=job["closed"], network=network)
    world.freeze(own=job["path"])
    environment.when_latched = lambda: leaving.later(STOP_GRACE, lambda: reply.send(result(None, None)))

    answer: object = None
    error: BaseException | None = None
    try:
        agent = load(job["agent"], job["options"])
        imported = True
        with _conversation(job["request"], tracing):
            answer = converse(agent, job["request"], environment.hears)
    except BaseException as problem:  # noqa: BLE001 - the agent's own end, whatever it is, is the result
        error = problem
    if leaving.left_behind(begun):
        world.unfrozen["a thread that outlived the agent"] += 1
    world.thaw_clock()
    told = None if answer is None else to_text(answer)[0]
    environment.finish(told, error)
    if faults():
        environment.latch(
            HarnessStop(StopKind.OUR_FAULT, f"redfirst's instrumentation failed in this run: {faults()}")
        )
    return result(told, error)


@contextmanager
def _conversation(request: Mapping[str, Json], tracing: TracerProvider) -> Iterator[None]:
    """One run of all the user's turns: of one turn, the agent's own span is the run."""
    if not request.get("later"):
        yield
        return
    with tracing.get_tracer("redfirst.replay").start_as_current_span("conversation"):
        yield


def _gather(tracing: TracerProvider) -> None:
    """Have every provider that the agent makes, and gives to an instrumentor, trace into this one: no span leaves."""
    from opentelemetry.sdk.trace import TracerProvider

    tracer_of = TracerProvider.get_tracer

    def get_tracer(_own: TracerProvider, *args: Any, **more: Any) -> Tracer:
        return tracer_of(tracing, *args, **more)

    TracerProvider.get_tracer = get_tracer  # type: ignore[method-assign, assignment]


def _environment(job: Mapping[str, Json], world: World, schedule: Schedule) -> Environment:
    return Environment(
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
        live_reads=job["live_reads"],
        injection=None if job["inject"] is None else Injection(job["inject"][0], FaultKind(job["inject"][1])),
        schedule=schedule,
        program=job["agent"].partition(":")[0],
    )


if __name__ == "__main__":
    main()

"""Executes an agent once in a child process and brings back what it did."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from redfirst.evaluators import ConfigurationError, Span
from redfirst.evaluators.otlp import decode_traces
from redfirst.replay import process
from redfirst.replay.environment import event_lines
from redfirst.replay.files import CannotWrite
from redfirst.replay.frozen_programs import frozen_programs
from redfirst.replay.stop import StopKind

Json = Any

TIMEOUT_SECONDS = 60.0
FROZEN_VARIABLES = {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
"""Local time is part of the wall clock, and the locale of what programs print; machines differ in both."""
LAGGING = ("subprocess", "process that was forked", "clock", "time of a file")
"""Words in the names of sources that may give the same value twice within a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything a child needs to know to execute an agent once."""

    agent: str
    """``module:factory``."""
    request: Mapping[str, Json]
    """``{"messages": …}``, ``{"text": …}`` or ``{"arguments": …}``."""
    world: Mapping[str, Json]
    """``start`` (Unix seconds), ``tick`` (seconds) and ``seed``."""
    tools: tuple[Mapping[str, Json], ...]
    sources: tuple[str, ...]
    """Which recordings may answer tools, the preferred first."""
    model: tuple[Mapping[str, Json], ...] | None
    """The recorded turns; ``None`` lets the model answer live."""
    live_off_tape: bool = False
    """Let the model answer live where the tape holds no turn for its request, instead of ending the run."""
    state: Mapping[str, Json] | None
    scenario: str
    options: Mapping[str, Json] = field(default_factory=dict)
    """Keyword arguments of the factory."""
    live_reads: bool = False
    """Let tools that are recorded as reads answer live."""
    inject: tuple[str, str] | None = None
    """A tool and the ``FaultKind`` that one call of it meets."""
    closed: tuple[str, ...] = ()
    """Folders the agent may not read."""
    path: tuple[str, ...] = ()
    """What is put before ``sys.path``: where the agent's code is."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that the project sets for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """What one execution of an agent did."""

    spans: tuple[Span, ...] = ()
    otlp_json: Mapping[str, Json] = field(default_factory=dict)
    stop: StopKind | None = None
    stop_message: str = ""
    error: Mapping[str, str] | None = None
    """The exception that left the agent: ``type``, ``message``, ``trace``."""
    answer: str | None = None
    events: tuple[str, ...] = ()
    """What happened, as canonical lines: equal executions have equal lines."""
    tape_decisions: int = 0
    live_decisions: tuple[str, ...] = ()
    unrebuilt: tuple[str, ...] = ()
    """Recorded exceptions that the agent was given otherwise than they were, in words."""
    turns_left: int = 0
    """Recorded model turns that were not asked for."""
    unfrozen: Mapping[str, int] = field(default_factory=dict)
    """Sources of chance that were used and are not frozen."""
    varied: tuple[str, ...] = ()
    """Sources that another value was given of, as a run was told to."""
    closed: str = ""
    """What kept it from the scenario and the network, in words."""
    locked: tuple[str, ...] = ()
    """What the kernel kept it from, beside the audit hook: ``files``, ``tcp``."""
    places: Mapping[str, str] = field(default_factory=dict)
    """Values that were this process's alone, and what they are: found in an event, they name its source."""
    output: str = ""
    """The end of what the agent printed."""
    injected: bool = False
    """Whether the fault that was to be put in was."""
    requests: tuple[Mapping[str, Json], ...] = ()
    """The arguments of its model calls, in order."""

    @property
    def may_lag(self) -> bool:
        """Whether it used a source that may change only by the second: two runs in one second say little."""
        return any(word in source for source in self.unfrozen for word in LAGGING)


def execute(
    job: Job, *, hash_seed: int, timeout: float = TIMEOUT_SECONDS, vary: Sequence[str] = ()
) -> Execution:
    """Execute the agent in a fresh Python process, in an empty folder.

    Args:
        job: what to execute.
        hash_seed: the child's ``PYTHONHASHSEED``; two runs with different ones expose set order.
        vary: names of sources that the agent's code is to be given another value of, as another machine would;
            ``"*"``: all that it uses.
        timeout: seconds after which the child is killed.

    Raises:
        ConfigurationError: the agent's reference does not import or makes nothing callable.
        CannotWrite: there is no room for the folder it runs in.
    """
    # what switches tracing or its content off out there must not blind the checks in here
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "OPENINFERENCE_", "REDFIRST_"))
    }
    environment |= {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
    held = {**FROZEN_VARIABLES, **job.variables}
    seal = secrets.token_hex(16)
    with _folder() as place:
        folder = os.path.join(place, "work")  # noqa: PTH118 - a text, as the child is given it
        os.mkdir(folder)  # noqa: PTH102
        environment |= frozen_programs(place, environment.get("PATH", ""), job.world["start"])
        ended = process.converse(
            lambda writing: [sys.executable, "-m", "redfirst.replay.child", str(writing)],
            _encoded(job, seal, held=sorted(held), vary=list(vary)),
            complete=lambda heard: sealed(heard, seal) is not None,
            folder=folder,
            environment=environment | held | {"TMPDIR": folder},
            timeout=timeout,
        )
    output = ended.output.decode("utf-8", "replace")
    body = sealed(ended.result, seal)
    found = None if body is None else _read(body)
    if found is not None:
        return _execution(job, found, output, folder)
    if ended.timed_out:
        return Execution(
            stop=StopKind.TIMED_OUT, stop_message=f"the agent did not end within {timeout:g} s", output=output
        )
    last = output.strip().splitlines()[-1:] or ["nothing was printed"]
    return Execution(
        stop=StopKind.CHILD_DIED,
        stop_message=f"the agent's process ended with status {ended.status} and no result: {last[0]}",
        output=output,
    )


@contextmanager
def _folder() -> Iterator[str]:
    try:
        made = tempfile.TemporaryDirectory(prefix="redfirst-", ignore_cleanup_errors=True)
    except OSError as problem:
        raise CannotWrite(
            f"No folder could be made to run the agent in: {problem}. Make room, or set TMPDIR."
        ) from problem
    with made as folder:
        yield os.path.realpath(folder)


def _encoded(job: Job, seal: str, **more: Json) -> bytes:
    return json.dumps({"seal": seal} | {name: getattr(job, name) for name in job.__slots__} | more).encode()


def sealed(heard: bytes | bytearray, seal: str) -> bytes | None:
    """The result under this seal; ``None`` when it is not there, or not yet whole.

    An agent that writes into every descriptor it finds cannot pass for the child: it was not told the seal.
    """
    mark = f"\n{seal} ".encode()
    at = heard.find(mark)
    if at < 0:
        return None
    begin = heard.find(b"\n", at + len(mark))
    size = bytes(heard[at + len(mark) : begin])
    if begin < 0 or not size.isdigit() or len(heard) - begin - 1 < int(size):
        return None
    return bytes(heard[begin + 1 : begin + 1 + int(size)])


def _read(body: bytes) -> Mapping[str, Json] | None:
    try:
        found: Mapping[str, Json] = json.loads(body)
    except (ValueError, RecursionError):
        return None  # something else wrote into the middle of it
    return found


def _execution(job: Job, found: Mapping[str, Json], output: str, folder: str) -> Execution:
    error = found["error"]
    if not found["imported"] and found["stop"] is None:
        asks = error["message"].startswith(f"{job.agent.partition(':')[2]}() missing ")
        raise ConfigurationError(
            f"agent {job.agent}: it cannot be made: {error['type']}: {' '.join(error['message'].split())}. "
            + (
                "Name a factory: it is called without arguments, and what it returns is called with the request."
                if asks
                else f"Name it as module:factory, importable from {', '.join(job.path) or 'sys.path'}."
            )
        )
    return Execution(
        spans=tuple(decode_traces(json.dumps(found["spans"]).encode(), content="json"))
        if found["spans"]
        else (),
        otlp_json=found["spans"],
        stop=None if found["stop"] is None else StopKind(found["stop"]["kind"]),
        stop_message="" if found["stop"] is None else found["stop"]["message"],
        error=error,
        answer=found["answer"],
        events=tuple(event_lines(found["events"])),
        tape_decisions=found["tape_decisions"],
        live_decisions=tuple(found["live_decisions"]),
        unrebuilt=tuple(found["unrebuilt"]),
        turns_left=found["turns_left"],
        unfrozen=found["unfrozen"],
        varied=tuple(found["varied"]),
        closed=found["closed"],
        locked=tuple(found["locked"]),
        places={folder: "the working folder", str(found["pid"]): "the process id"},
        output=output,
        injected=found["injected"],
        requests=tuple(event["arguments"] for event in found["events"] if event["kind"] == "model"),
    )

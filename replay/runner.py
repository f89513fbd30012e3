"""Executes an agent once in a child process and brings back what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from redfirst.evaluators import ConfigurationError, Span
from redfirst.evaluators.otlp import decode_traces
from redfirst.replay.environment import event_lines
from redfirst.replay.stop import StopKind

Json = Any

TIMEOUT_SECONDS = 60.0


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
    closed: tuple[str, ...] = ()
    """Folders the agent may not read."""
    path: tuple[str, ...] = ()
    """What is put before ``sys.path``: where the agent's code is."""


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
    unfrozen: Mapping[str, int] = field(default_factory=dict)
    """Sources of chance that were used and are not frozen."""
    output: str = ""
    """What the agent printed."""

    @property
    def used_subprocess(self) -> bool:
        """Whether the agent ran another program, whose output may depend on the second it ran in."""
        return any("subprocess" in source for source in self.unfrozen)


def execute(job: Job, *, hash_seed: int, timeout: float = TIMEOUT_SECONDS) -> Execution:
    """Execute the agent in a fresh Python process, in an empty folder.

    Args:
        job: what to execute.
        hash_seed: the child's ``PYTHONHASHSEED``; two runs with different ones expose set order.
        timeout: seconds after which the child is killed.

    Raises:
        ConfigurationError: the agent's reference does not import or makes nothing callable.
    """
    reading, writing = os.pipe()
    # what switches tracing or its content off out there must not blind the checks in here
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "OPENINFERENCE_", "REDFIRST_"))}
    environment |= {"PYTHONHASHSEED": str(hash_seed), "PYTHONDONTWRITEBYTECODE": "1"}
    with (
        tempfile.TemporaryDirectory(prefix="redfirst-") as folder,
        os.fdopen(reading, "rb") as result,
        tempfile.TemporaryFile() as printed,
    ):
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "redfirst.replay.child", str(writing)],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            pass_fds=(writing,),
        )
        os.close(writing)
        try:
            raw, timed_out = _converse(child, _encoded(job), result, timeout)
        finally:
            child.kill()
            child.wait()
        printed.seek(0)
        output = printed.read().decode("utf-8", "replace")
    if timed_out:
        return Execution(
            stop=StopKind.TIMED_OUT, stop_message=f"the agent did not end within {timeout:g} s", output=output
        )
    if not raw:
        last = output.strip().splitlines()[-1:] or ["nothing was printed"]
        return Execution(
            stop=StopKind.CHILD_DIED,
            stop_message=f"the agent's process ended with status {child.returncode} and no result: {last[0]}",
            output=output,
        )
    return _execution(job, json.loads(raw), output)


def _encoded(job: Job) -> bytes:
    return json.dumps({name: getattr(job, name) for name in job.__slots__}).encode()


def _converse(child: subprocess.Popen[bytes], job: bytes, result: Any, timeout: float) -> tuple[bytes, bool]:
    import threading

    killed = threading.Event()

    def kill() -> None:
        killed.set()
        child.kill()

    timer = threading.Timer(timeout, kill)
    timer.start()
    try:
        if child.stdin is None:
            raise AssertionError("the child was started with a pipe")
        try:
            child.stdin.write(job)
            child.stdin.close()
        except BrokenPipeError:
            pass  # the child died before reading its job; its empty result says so
        raw: bytes = result.read()
    finally:
        timer.cancel()
    return raw, killed.is_set()


def _execution(job: Job, found: Mapping[str, Json], output: str) -> Execution:
    error = found["error"]
    if not found["imported"] and found["stop"] is None:
        raise ConfigurationError(
            f"agent {job.agent}: it cannot be made: {error['type']}: {error['message']}. "
            f"Name it as module:factory, importable from {', '.join(job.path) or 'sys.path'}."
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
        unfrozen=found["unfrozen"],
        output=output,
    )

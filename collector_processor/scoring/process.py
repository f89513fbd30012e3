"""Scoring in a process of its own: started, watched, and started again; its death never loses a run."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from redfirst.collector_processor.journal.format import Position
from redfirst.collector_processor.metrics import Metrics
from redfirst.collector_processor.scoring.containing import Breaker, pass_on
from redfirst.collector_processor.scoring.worker import message

Json = Any

_MODULE = "redfirst.collector_processor.scoring.worker"
_CHUNK = 64
_LOOK = 0.1
_BACKOFF = (0.1, 0.5, 2.0, 5.0, 15.0)
LARGEST_ANSWER = 256 << 20
"""Bytes of one answer beyond which the child is taken to have gone wrong."""
_ATTEMPTS = 2
"""How often a run may be what the scorer died of before it is stored as unscored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run to judge."""

    run_id: str
    positions: Sequence[Position]
    spans: int = 0
    """About how many, for who is to judge it."""
    traces: Mapping[str, Sequence[Position]] | None = None
    """The traces to judge together; the run's own when there are none."""
    older_left_out: bool = False
    """Whether there are older traces of the same conversation than these."""
    abandoned: bool = False
    """Nothing came for it for the abandon time."""
    again: bool = False
    """It is judged again because the checks are others, not because spans came."""


_NAMED = frozenset({"too_slow", "too_much_output"})
"""Deaths that say more of a run than that there was an error."""


class Scoring(Protocol):
    """Judges runs. ``submit`` returns at once; every job is answered exactly once, in any order, by ``on_answer``
    from another thread: with the scorer's result, or with ``{"state": "unscored", "reason", "because"}`` when the
    run cannot be judged. ``close`` gives up what was not answered."""

    def submit(self, jobs: Sequence[Job]) -> None: ...

    def close(self) -> None: ...


class ScorerDied(Exception):
    """The process ended, or was ended because it took too long, before it answered."""

    def __init__(self, reason: str, what: str) -> None:
        super().__init__(what)
        self.reason = reason


class ScorerProcess:
    """A ``Scoring`` in one supervised child process."""

    def __init__(
        self,
        journal: Path,
        *,
        rules: tuple[str, str] | None,
        on_answer: Callable[[Job, Mapping[str, Json]], None],
        metrics: Metrics,
        seconds: float = 30.0,
        check_seconds: float = 10.0,
        memory: int | None = None,
        command: Sequence[str] = (sys.executable, "-m", _MODULE),
    ) -> None:
        """``rules`` is the text of the rules file and its name; ``seconds`` is what one run may take and
        ``check_seconds`` one check of it; ``memory`` is the child's address space in bytes; ``command`` starts the
        child, which is given the journal's folder."""
        self._command = tuple(command)
        self._journal = journal
        self._rules = rules
        self._on_answer = on_answer
        self._metrics = metrics
        self._seconds = seconds
        self.revision = ""
        """Of the checks that the child judges by."""
        self._limits = {"check_seconds": check_seconds, "memory": memory}
        self._at: str | None = None
        """The check of foreign code that the child is in."""
        self._breaker = Breaker()
        self._lock = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._blamed: dict[str, int] = {}
        self._stopping = False
        self._outdated = False
        """Whether the child judges by rules that are no longer in force."""
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._deaths = 0
        self._number = 0
        """Of the job that was answered last."""
        self._thread = threading.Thread(target=self._run, name="scoring", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The child's process id while there is one."""
        child = self._child
        return None if child is None else child.pid

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def submit(self, jobs: Sequence[Job]) -> None:
        """Queue jobs."""
        with self._lock:
            self._jobs.extend(jobs)
            self._lock.notify_all()

    def judge_by(self, rules: tuple[str, str]) -> None:
        """Judge by these rules from the next chunk of jobs on."""
        with self._lock:
            self._rules, self._outdated, self.revision = rules, True, ""
            self._lock.notify_all()

    def close(self) -> None:
        """End the child; what it had not answered is scored after the next start."""
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            with self._lock:
                self._lock.wait_for(self._something)
                chunk = [self._jobs.popleft() for _ in range(min(_CHUNK, len(self._jobs)))]
            try:
                self._begin()
                self._score(chunk)
                self._deaths = 0
            except ScorerDied as death:
                self._after_death(death, chunk)
        self._end_child()

    def _something(self) -> bool:
        return bool(self._jobs or self._stopping or self._outdated or self._child is None)

    def _score(self, chunk: list[Job]) -> None:
        """Send the chunk and take its answers; what was answered is taken off the list."""
        if not chunk:
            return
        self._send({"jobs": [asked(n, job) for n, job in enumerate(chunk, self._number + 1)]})
        while chunk:
            answer = self._receive(self._seconds)
            if "at" in answer:
                self._at = answer["at"]
                continue
            self._at = None
            self._number += 1
            if answer.get("id") != self._number:
                raise ScorerDied("garbled", "it answered a job that it was not asked next")
            job = chunk.pop(0)
            self._blamed.pop(job.run_id, None)
            self._on_answer(job, answer)

    def _after_death(self, death: ScorerDied, left: list[Job]) -> None:
        self._end_child()
        if self._stopping:
            return
        self._metrics.add("redfirst_scorer_restarts_total", reason=death.reason)
        if self._at is not None:
            self._breaker.died_in(self._at, str(death), time.monotonic())
            self._at = None
        if left and death.reason != "did not start":
            suspect = left[0]
            self._blamed[suspect.run_id] = self._blamed.get(suspect.run_id, 0) + 1
            if self._blamed[suspect.run_id] >= _ATTEMPTS:
                del self._blamed[suspect.run_id]
                left = left[1:]
                because = f"the scorer died of it {_ATTEMPTS} times: {death}"
                reason = death.reason if death.reason in _NAMED else "error"
                self._on_answer(suspect, {"state": "unscored", "reason": reason, "because": because})
        with self._lock:
            self._jobs.extendleft(reversed(left))
            self._lock.wait_for(lambda: self._stopping, _BACKOFF[min(self._deaths, len(_BACKOFF) - 1)])
        self._deaths += 1

    def _begin(self) -> None:
        """Have a child. One that ended while it had nothing to do is no run's fault."""
        if self._child is not None and self._child.poll() is not None:
            self._metrics.add("redfirst_scorer_restarts_total", reason="ended idle")
            self._end_child()
        if self._outdated or self._breaker.closes(time.monotonic()):
            self._end_child()
        if self._child is None:
            self._start()

    def _start(self) -> None:
        self._buffer = bytearray()
        try:
            self._child = subprocess.Popen(  # noqa: S603 - our own module under our own interpreter
                [*self._command, str(self._journal)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # a terminal's Ctrl-C is for the service, which then ends it
            )
        except OSError as problem:  # no memory or no process left: there may be one later
            raise ScorerDied("did not start", str(problem)) from problem
        pass_on(self._child.stderr, self._metrics)
        with self._lock:
            text, name = self._rules or (None, None)
            self._outdated = False
        left_out = self._breaker.left_out(time.monotonic())
        setup = {"rules": text, "rules_name": name, "path": sys.path, "left_out": left_out, **self._limits}
        try:
            self._send(setup)
            self.revision = self._receive(60.0).get("revision", "")
        except ScorerDied as death:
            raise ScorerDied("did not start", str(death)) from death

    def _send(self, value: Json) -> None:
        child = self._child
        if child is None or child.stdin is None:
            raise ScorerDied("ended", "it has ended")
        try:
            child.stdin.write(message(value))
            child.stdin.flush()
        except (OSError, ValueError) as problem:
            raise ScorerDied("ended", f"it has ended ({problem})") from problem

    def _receive(self, seconds: float) -> Mapping[str, Json]:
        deadline = time.monotonic() + seconds
        while True:
            if len(self._buffer) >= 4:
                length = 4 + int.from_bytes(self._buffer[:4], "little")
                if length > LARGEST_ANSWER:
                    raise ScorerDied("too_much_output", f"an answer of {length} bytes")
                if len(self._buffer) >= length:
                    text = bytes(self._buffer[4:length])
                    del self._buffer[:length]
                    return _answer(text)
            self._buffer += self._more(deadline, seconds)

    def _more(self, deadline: float, seconds: float) -> bytes:
        child = self._child
        if child is None or child.stdout is None:
            raise ScorerDied("ended", "it has ended")
        while not select.select([child.stdout], [], [], _LOOK)[0]:
            if self._stopping:
                raise ScorerDied("stopping", "the service is stopping")
            if time.monotonic() > deadline:
                raise ScorerDied("too_slow", f"no answer in {seconds:g} s")
        data = os.read(child.stdout.fileno(), 1 << 16)
        if not data:
            try:
                ending = _ending(child.wait(timeout=5))
            except subprocess.TimeoutExpired:
                ending = "its output closed"
            raise ScorerDied("ended", f"it ended with {ending}")
        return data

    def _end_child(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)  # what a check started goes with it
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):  # what passes its messages on closes those
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    self._metrics.add("redfirst_scorer_restarts_total", reason="pipe left open")


def asked(number: int, job: Job) -> dict[str, Json]:
    """A job as the child reads it; the number comes back with its answer."""
    said: dict[str, Json] = {
        "id": number,
        "run_id": job.run_id,
        "positions": [list(place) for place in job.positions],
        "abandoned": job.abandoned,
    }
    if job.traces is not None:
        said["traces"] = {name: [list(place) for place in places] for name, places in job.traces.items()}
        said["older_left_out"] = job.older_left_out
    return said


def _answer(text: bytes) -> Mapping[str, Json]:
    try:
        answer: Mapping[str, Json] = orjson.loads(text)
    except ValueError as problem:
        raise ScorerDied("garbled", f"its answer is no JSON ({problem})") from problem
    return answer


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"

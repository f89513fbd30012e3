"""One child process: fed on its standard input and heard until its result, its end or its time limit.

It leads a session of its own, so that everything it started and left in its group ends with it. What
it prints is kept only at its end, and no pipe that a grandchild holds open is waited for.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

KEPT_OUTPUT = 1 << 20
"""Bytes of the child's output that are kept: the last ones."""
LARGEST_RESULT = 256 << 20
_CHUNK = 1 << 16
_LOOK = 0.1  # seconds between two looks whether a child has gone whose pipes others hold open

_living: set[subprocess.Popen[bytes]] = set()
_lock = threading.Lock()  # guards _living: children are started from the threads of a pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended."""

    result: bytes
    """What it wrote into the pipe for its result."""
    output: bytes
    """The end of what it printed."""
    status: int | None
    timed_out: bool


def converse(
    command: Callable[[int], Sequence[str]],
    said: bytes,
    *,
    complete: Callable[[bytes | bytearray], bool],
    folder: str,
    environment: Mapping[str, str],
    timeout: float,
) -> Ended:
    """Run a child to its result.

    Args:
        command: the command, from the descriptor that the result is to be written to.
        said: what stands on its standard input.
        complete: whether the bytes heard so far are the whole result: more is not waited for.
        folder: where it runs.
        environment: its environment.
        timeout: seconds after which it is ended.
    """
    reading, writing = os.pipe()
    try:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command(writing),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=dict(environment),
            pass_fds=(writing,),
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    with _lock:
        _living.add(child)
    talk = _Conversation(child, reading, said, complete)
    timed_out = False
    try:
        timed_out = talk.hold(timeout)
        if not timed_out and not complete(talk.result):
            with suppress(
                subprocess.TimeoutExpired
            ):  # it is on its way out: its own status says more than our kill
                child.wait(_LOOK)
    finally:
        _end(child)
        os.close(reading)
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):  # what it did not read of its job is still buffered
                    pipe.close()
        with _lock:
            _living.discard(child)
    return Ended(
        result=bytes(talk.result), output=bytes(talk.output), status=child.returncode, timed_out=timed_out
    )


class _Conversation:
    def __init__(
        self,
        child: subprocess.Popen[bytes],
        reading: int,
        said: bytes,
        complete: Callable[[bytes | bytearray], bool],
    ) -> None:
        if child.stdin is None or child.stdout is None:
            raise AssertionError("the child was started with pipes")
        self._child = child
        self._said = memoryview(said)
        self._complete = complete
        self.result = bytearray()
        self.output = bytearray()
        self._stdin, self._stdout, self._reading = child.stdin.fileno(), child.stdout.fileno(), reading
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._stdin, self._stdout, self._reading):
            os.set_blocking(descriptor, False)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        self._selector.register(self._stdout, selectors.EVENT_READ)
        self._selector.register(self._reading, selectors.EVENT_READ)

    def hold(self, timeout: float) -> bool:
        """Until the result is whole or can no longer come; whether the time ran out."""
        deadline = time.monotonic() + timeout
        with self._selector:
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return True
                gone = self._child.poll() is not None
                ready = self._selector.select(0 if gone else min(left, _LOOK))
                heard = [self._serve(key.fd) for key, _ in ready]
                if any(heard) or (gone and self._reading not in {key.fd for key, _ in ready}):
                    break
            for _ in range(KEPT_OUTPUT // _CHUNK):  # what was printed before the end is in the pipe already
                if self._stdout not in self._selector.get_map() or not self._hear(self._stdout):
                    break
        return False

    def _serve(self, descriptor: int) -> bool:
        """Read or write what can be; whether the result has ended."""
        if descriptor == self._stdin:
            self._say()
            return False
        more = self._hear(descriptor)
        if descriptor != self._reading:
            return False
        return more is False or len(self.result) > LARGEST_RESULT or self._complete(self.result)

    def _say(self) -> None:
        try:
            sent = os.write(self._stdin, self._said[:_CHUNK])
        except BlockingIOError:
            return
        except BrokenPipeError:
            sent = len(self._said)  # it died before it read its job; its missing result says so
        self._said = self._said[sent:]
        if not self._said:
            self._selector.unregister(self._stdin)
            if self._child.stdin is not None:
                self._child.stdin.close()

    def _hear(self, descriptor: int) -> bool | None:
        """Read once: ``True`` when something came, ``False`` at the end, ``None`` when nothing is there."""
        try:
            read = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return None
        if not read:
            self._selector.unregister(descriptor)
            return False
        into = self.result if descriptor == self._reading else self.output
        into += read
        if descriptor == self._stdout and len(into) > 2 * KEPT_OUTPUT:
            del into[:-KEPT_OUTPUT]
        return True


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what is left of its group."""
    with suppress(ProcessLookupError, PermissionError):  # the whole group has ended already
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


def together(work: Sequence[Callable[[], T]], *, workers: int = 2) -> list[T]:
    """Do all of it, so many at once, in order. When interrupted, what runs is ended and not waited for."""
    pool = ThreadPoolExecutor(workers)
    try:
        return [done.result() for done in [pool.submit(one) for one in work]]
    except (KeyboardInterrupt, SystemExit):
        pool.shutdown(wait=False, cancel_futures=True)
        with _lock:
            for child in _living:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(child.pid, signal.SIGKILL)
        raise
    finally:
        pool.shutdown(cancel_futures=True)

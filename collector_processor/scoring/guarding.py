"""Checks held to a time of their own inside the scorer, and left out for a while when they fail again and again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import FrameType

from redfirst.evaluators.check import Check, names_code
from redfirst.evaluators.trajectory import Trajectory
from redfirst.evaluators.verdict import Verdict, inconclusive

TOOK_TOO_LONG = "took longer than"
LEFT_OUT = "left out"


class _TimeIsUp(BaseException):
    """No ``Exception``: a check that catches those must not go on."""


class Guarded:
    """Checks as they are asked in the scorer. For the main thread of a process."""

    def __init__(
        self,
        checks: Iterable[Check],
        *,
        seconds: float,
        failures: int = 3,
        rest: float = 300.0,
        announce: Callable[[str], None] = lambda _: None,
        left_out: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``seconds`` is what one check may take for one run; after so many ``failures`` in a row it is not asked for
        ``rest`` seconds. ``announce`` is told of a check that runs foreign code before it is asked. ``left_out`` says
        of which checks the process died before, and why they are not asked now."""
        self.checks: Sequence[Check] = tuple(
            replace(check, evaluate=partial(self._evaluate, check)) for check in checks
        )
        self._seconds, self._most, self._rest = seconds, failures, rest
        self._announce = announce
        self._left_out = dict(left_out or {})
        self._clock = clock
        self._failures: dict[str, int] = {}
        self._resting: dict[str, float] = {}
        self._took: dict[str, float] = {}
        self._process = os.getpid()
        signal.signal(signal.SIGALRM, _time_is_up)

    def took(self) -> Mapping[str, float]:
        """Seconds that each check took since this was asked last."""
        took, self._took = self._took, {}
        return took

    def _evaluate(self, check: Check, run: Trajectory) -> Verdict:
        if check.id in self._left_out:
            return inconclusive(f"{LEFT_OUT}: {self._left_out[check.id]}")
        if self._resting.get(check.id, 0.0) > self._clock():
            return inconclusive(f"{LEFT_OUT}: it failed {self._most} times in a row and is asked again later")
        if names_code(check.spec):
            self._announce(check.id)
        begun = self._clock()
        try:
            verdict = self._in_time(check, run)
        except _TimeIsUp:
            self._failed(check.id)
            return inconclusive(f"evaluator error: {TOOK_TOO_LONG} {self._seconds:g} s")
        except MemoryError:
            self._failed(check.id)
            raise
        finally:
            self._took[check.id] = self._took.get(check.id, 0.0) + self._clock() - begun
        self._failures.pop(check.id, None)
        return verdict

    def _in_time(self, check: Check, run: Trajectory) -> Verdict:
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds)
            return check.evaluate(run)
        finally:
            if os.getpid() != self._process:
                os._exit(0)  # a copy that the check made of us: it must not answer for us, nor take our jobs
            signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _failed(self, name: str) -> None:
        self._failures[name] = self._failures.get(name, 0) + 1
        if self._failures[name] >= self._most:
            del self._failures[name]
            self._resting[name] = self._clock() + self._rest


def _time_is_up(_: int, __: FrameType | None) -> None:
    raise _TimeIsUp

"""The frozen world of a replay: wall clock, uuids and random numbers.

Patched: ``time`` and ``datetime`` (by time-machine, wall clock only: a frozen monotonic clock hangs
asyncio), ``uuid.uuid1`` and ``uuid4``, and the functions of ``random``. Random numbers are drawn
from one stream per calling module, named by it, so that one more draw in one module shifts no other
module's ids. Not patched, but counted: ``os.urandom`` (hence ``secrets`` and ``random.SystemRandom``),
subprocesses and threads; two runs that differ name them as the likely source.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from opentelemetry.sdk.trace.id_generator import IdGenerator

_pytest = sys.modules.get("pytest")
if _pytest is None:
    sys.modules["pytest"] = None  # type: ignore[assignment] # time-machine would import all of pytest: half of a child's start
import time_machine  # noqa: E402

if _pytest is None:
    del sys.modules["pytest"]

_RANDOM_FUNCTIONS = (
    "betavariate", "choice", "choices", "expovariate", "gammavariate", "gauss", "getrandbits", "lognormvariate",
    "normalvariate", "paretovariate", "randbytes", "randint", "random", "randrange", "sample", "seed", "shuffle",
    "triangular", "uniform", "vonmisesvariate", "weibullvariate",
)  # fmt: skip


class World:
    """Time and chance of one run, all of it a function of a start and a seed."""

    def __init__(self, *, start: float, tick: float, seed: int) -> None:
        """``start`` is Unix seconds; ``tick`` is how far each recorded event moves the clock, in seconds."""
        self.seed = seed
        self.tick = tick
        self.unfrozen: Counter[str] = Counter()
        """Sources of chance that were used and are not frozen, with the module that used them."""
        self._streams: dict[str, random.Random] = {}
        self._travel = time_machine.travel(start, tick=False)
        self._clock: time_machine.Traveller | None = None

    def freeze(self) -> None:
        """Patch this process. To be called before the agent is imported, and never undone."""
        self._clock = self._travel.start()
        for name in _RANDOM_FUNCTIONS:
            setattr(random, name, self._random(name))
        uuid.uuid4 = uuid.uuid1 = self._uuid
        counted = self._counted(os.urandom, "os.urandom")
        os.urandom = random._urandom = counted  # type: ignore[attr-defined]  # noqa: SLF001 - secrets draws here

    def thaw_clock(self) -> None:
        """Give the process its wall clock back."""
        if self._clock is not None:
            self._travel.stop()
            self._clock = None

    def happened(self) -> None:
        """Move the clock by one tick."""
        if self._clock is not None:
            self._clock.shift(self.tick)

    def stream(self, name: str) -> random.Random:
        """The stream of random numbers of this name."""
        if name not in self._streams:
            digest = hashlib.sha256(f"{self.seed}/{name}".encode()).digest()
            self._streams[name] = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - chance, not secrecy
        return self._streams[name]

    def _random(self, name: str) -> Callable[..., Any]:
        def draw(*args: Any, **kwargs: Any) -> Any:
            return getattr(self.stream(_caller()), name)(*args, **kwargs)

        return draw

    def _uuid(self, *_: object, **__: object) -> uuid.UUID:
        return uuid.UUID(int=self.stream(f"uuid/{_caller()}").getrandbits(128), version=4)

    def _counted(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            self.unfrozen[f"{what} in {_caller(skip=('random', 'secrets', 'uuid', 'tempfile'))}"] += 1
            return function(*args, **kwargs)

        return count


class StreamIds(IdGenerator):
    """Trace and span ids from a stream of their own, so that tracing draws nothing the agent would have drawn."""

    def __init__(self, world: World) -> None:
        self._stream = world.stream("redfirst/span-ids")

    def generate_span_id(self) -> int:
        """64 bits, not zero."""
        return self._stream.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        """128 bits, not zero."""
        return self._stream.getrandbits(128) or 1


def _caller(skip: tuple[str, ...] = ()) -> str:
    frame = sys._getframe(2)  # noqa: SLF001 - the module that draws names the stream
    while frame.f_back is not None and frame.f_globals.get("__name__") in skip:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "?"))

"""The frozen world of a replay: wall clock, uuids and random numbers.

Patched: ``time`` and ``datetime`` (by time-machine, wall clock only: a frozen monotonic clock hangs
asyncio), ``uuid.uuid1`` and ``uuid4``, the functions of ``random``, and ``random.Random()`` without a
seed. Random numbers are drawn from one stream per calling module, named by it, so that one more draw in
one module shifts no other module's ids. Not patched, but counted: ``os.urandom`` (hence ``secrets`` and
``random.SystemRandom``), subprocesses and threads, and, where the agent's own code asks for them, other
clocks, environment variables, the process id, the working folder, the machine's name and times of files.
A report names all that were used; two runs that differ name them as the likely source. A run may be told to
*vary* what differs from machine to machine: the agent's own code is then given another value of it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import re
import socket
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from types import FrameType
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


_CLOCKS = tuple(
    f"{name}{ns}"
    for name in ("monotonic", "perf_counter", "process_time", "thread_time")
    for ns in ("", "_ns")
)
_UNFROZEN = (
    (time, _CLOCKS, "clock time."),
    (os, ("getpid", "getppid"), "the process id, os."),
    (os, ("getcwd", "getcwdb"), "the working folder, os."),
    (os, ("uname", "getlogin"), "the machine, os."),
    (socket, ("gethostname",), "the machine, socket."),
)
"""What is counted when the agent's own code calls it: the module, the functions, what they are called."""
_MACHINE = ("gethostname", "uname", "getlogin")
VARIABLE = "environment variable "
"""How the name of a source begins that is an environment variable."""
EVERYTHING = "*"
"""In place of the names of sources: all that can be varied."""
_NEEDED_TO_RUN = re.compile(r"^(PATH|TMPDIR|VIRTUAL_ENV|SSL_.*|LD_.*|DYLD_.*|PYTHON.*)$")
_COPYING = ("copy", "__iter__")  # of the whole environment, for a program that is to be started
_TIMES_OF_FILES = ("stat", "lstat", "getmtime", "getatime", "getctime")
_SWITCHES = {"true": "false", "false": "true", "yes": "no", "no": "yes", "on": "off", "off": "on"}
_DRAWING = ("random", "secrets", "uuid", "tempfile", "importlib._bootstrap", "importlib._bootstrap_external")
_KEPT_TO_ITSELF = frozenset({"multiprocessing.process"})  # draws a key at import that no event ever holds
_BETWEEN = frozenset(
    {
        "os", "_collections_abc", "pathlib", "pathlib._local", "platform", "genericpath", "collections.abc", "posixpath",
        "getpass",
    }
)  # fmt: skip


class World:
    """Time and chance of one run, all of it a function of a start and a seed."""

    def __init__(
        self,
        *,
        start: float,
        tick: float,
        seed: int,
        held: Collection[str] = (),
        vary: Collection[str] = (),
    ) -> None:
        """``start`` is Unix seconds; ``tick`` is how far each recorded event moves the clock, in seconds.

        ``held`` are the environment variables that the project has set, and ``vary`` the names of sources to give
        another value of, or ``EVERYTHING``.
        """
        self.seed = seed
        self.tick = tick
        self._held = set(held)
        self._vary = frozenset(vary)
        self.varied: set[str] = set()
        """Sources that another value was given of."""
        self.unfrozen: Counter[str] = Counter()
        """Sources of chance that were used and are not frozen, with the module that used them."""
        self._own: tuple[str, ...] = ()
        self._streams: dict[str, random.Random] = {}
        self._travel = time_machine.travel(start, tick=False)
        self._clock: time_machine.Traveller | None = None

    def freeze(self, own: Sequence[str] = ()) -> None:
        """Patch this process. To be called before the agent is imported, and never undone.

        ``own`` are the folders of the agent's code: what only counts when an agent asks for it, and not when a
        library does, is told by the file of the caller.
        """
        self._own = tuple(os.path.realpath(folder) + os.sep for folder in own)
        self._clock = self._travel.start()
        for name in _RANDOM_FUNCTIONS:
            setattr(random, name, self._random(name))
        random.Random.seed = self._seed(random.Random.seed)  # type: ignore[method-assign]
        uuid.uuid4 = _Standin(uuid.uuid4, self._uuid)
        uuid.uuid1 = _Standin(uuid.uuid1, self._uuid)
        counted = self._counted(os.urandom, "os.urandom")
        os.urandom = random._urandom = counted  # type: ignore[attr-defined]  # noqa: SLF001 - secrets draws here
        if hasattr(os, "getrandom"):
            os.getrandom = self._counted(os.getrandom, "os.getrandom")
        for module, names, what in _UNFROZEN:
            for name in names:
                if hasattr(module, name):
                    does = self._noticed_machine if name in _MACHINE else self._noticed
                    setattr(module, name, does(getattr(module, name), f"{what}{name}"))
        os.stat = self._noticed(os.stat, "the time of a file, os.stat", asked_by=_TIMES_OF_FILES)
        surroundings: Any = type(os.environ)
        surroundings.__getitem__ = self._noticed_variable(surroundings.__getitem__)
        surroundings.__setitem__ = self._set_variable(surroundings.__setitem__)

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
        return _Standin(
            getattr(random, name),
            lambda *args, **kwargs: getattr(self.stream(_caller()), name)(*args, **kwargs),
        )

    def _seed(self, original: Callable[..., None]) -> Callable[..., None]:
        def seed(own: random.Random, a: Any = None, *rest: Any, **more: Any) -> None:
            """As ``Random.seed``; without a seed, from this world instead of the machine."""
            if a is None:
                a = self.stream(f"Random/{_caller(('random',))}").getrandbits(128)
            original(own, a, *rest, **more)

        return seed

    def _uuid(self, *_: object, **__: object) -> uuid.UUID:
        return uuid.UUID(int=self.stream(f"uuid/{_caller()}").getrandbits(128), version=4)

    def _counted(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def count(*args: Any, **kwargs: Any) -> Any:
            asker = _caller(_DRAWING)
            if asker not in _KEPT_TO_ITSELF:
                self.unfrozen[f"{what} in {asker}"] += 1
            return function(*args, **kwargs)

        return _Standin(function, count)

    def _noticed(
        self, function: Callable[..., Any], what: str, *, asked_by: Sequence[str] = ()
    ) -> Callable[..., Any]:
        def notice(*args: Any, **kwargs: Any) -> Any:
            self._notice(what, asked_by)
            return function(*args, **kwargs)

        return _Standin(function, notice)

    def _noticed_machine(self, function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def notice() -> Any:
            value = function()
            return _elsewhere(value) if self._notice(what) and self._varies(what) else value

        return _Standin(function, notice)

    def _noticed_variable(self, original: Callable[..., str]) -> Callable[..., str]:
        def get(surroundings: Any, key: Any) -> str:
            value = original(surroundings, key)
            if key in self._held:
                return value
            what = f"{VARIABLE}{key}"
            noticed = self._notice(what)
            copying = _calling(_BETWEEN)[1] in _COPYING
            if not noticed or copying or _NEEDED_TO_RUN.match(str(key)) or not self._varies(what):
                return value
            return str(_elsewhere(value))

        return get

    def _set_variable(self, original: Callable[..., None]) -> Callable[..., None]:
        def put(surroundings: Any, key: Any, value: Any) -> None:
            original(surroundings, key, value)
            self._held.add(key)  # the machine has no say in it any more

        return put

    def _varies(self, what: str) -> bool:
        """Whether another value of a source is to be given; it is then."""
        if not self._vary.intersection((what, EVERYTHING)):
            return False
        self.varied.add(what)
        return True

    def _notice(self, what: str, asked_by: Sequence[str] = ()) -> bool:
        """Count a source when the agent's own code asked for it: libraries ask for these all the time.

        ``asked_by``: the functions of the standard library that may stand between; any when not given.
        """
        frame, below = _calling(_BETWEEN)
        file = frame.f_code.co_filename
        if not file.startswith(self._own) or "site-packages" in file:
            return False
        if asked_by and below is not None and below not in asked_by:
            return False
        self.unfrozen[f"{what} in {frame.f_globals.get('__name__', '?')}"] += 1
        return True


def _elsewhere(value: Any) -> Any:
    """What another machine might say in place of this: a number for a number, a switch for a switch."""
    if isinstance(value, os.uname_result):
        return os.uname_result((value[0], _elsewhere(value[1]), *value[2:]))
    text = str(value)
    switched = _SWITCHES.get(text.lower())
    if switched is not None:
        return switched
    if re.fullmatch(r"-?[0-9]{1,9}", text):
        return str(int(text) + 1)
    if re.fullmatch(r"-?[0-9]{1,9}\.[0-9]{1,9}", text):
        return str(float(text) + 1)
    return f"{text}-elsewhere"


class _Standin:
    """Called in place of a function of the standard library; like a builtin it binds to no object."""

    def __init__(self, function: Callable[..., Any], does: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._does = does

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._does(*args, **kwargs)


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


def _caller(skip: Sequence[str] = ()) -> str:
    """The module that draws: it names the stream."""
    return str(_calling(skip)[0].f_globals.get("__name__", "?"))


def _calling(skip: Collection[str]) -> tuple[FrameType, str | None]:
    """The nearest frame outside of here and of these modules, and the function of theirs that it called."""
    frame, below = sys._getframe(1), None  # noqa: SLF001 - who asks is known by the stack alone
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__")
        if name != __name__ and name not in skip:
            break
        below = None if name == __name__ else frame.f_code.co_name
        frame = frame.f_back
    return frame, below

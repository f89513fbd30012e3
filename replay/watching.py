"""Hears of every file, process, thread and connection of an agent's process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from redfirst.replay.environment import Environment
from redfirst.replay.stop import HarnessStop, StopKind
from redfirst.replay.world import World

_OPENED = frozenset({"open", "os.listdir", "os.scandir", "glob.glob"})
_CONNECTED = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKED_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_PROGRAMS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.system", "os.exec"})
_CHANCE = ("/dev/random", "/dev/urandom", "/proc/sys/kernel/random/", "/etc/machine-id", "/etc/hostname")
_FORKS = frozenset({"os.fork", "os.forkpty"})


def watch(environment: Environment, world: World, *, closed: Sequence[str], network: bool) -> None:
    """Keep the agent out of these folders and, unless ``network``, from every other machine.

    Args:
        environment: told when the agent goes where it may not.
        world: told of what is not frozen.
        closed: folders and files that the agent may not read.
        network: whether it may open connections.
    """
    shut = tuple(str(Path(folder).resolve()) for folder in closed)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _OPENED:
            path = _path(args[0])
            if shut and path is not None and _inside(path, shut):
                stop(StopKind.GRADER_READ, f"the agent opened {path}, the scenario it is judged by")
            if path is not None and path.startswith(_CHANCE):
                world.unfrozen[f"the machine's {path}"] += 1
        elif event in _CONNECTED and not network:
            if isinstance(args[1], tuple):
                stop(
                    StopKind.NETWORK,
                    f"the agent connected to {args[1][0]}:{args[1][1]}; in recorded mode nothing may: put it behind a @tool",
                )
        elif event in _LOOKED_UP and not network:
            stop(
                StopKind.NETWORK,
                f"the agent looked up {args[0]}; in recorded mode nothing may: put it behind a @tool",
            )
        elif event in _PROGRAMS:
            world.unfrozen[f"the output of subprocess {_path(args[0]) or '?'!r}"] += 1
        elif event in _FORKS:
            world.unfrozen["a process that was forked"] += 1
        elif event == "_thread.start_new_thread" and environment.latched is None:
            world.unfrozen["the order of threads"] += 1

    def stop(kind: StopKind, message: str) -> None:
        stopped = HarnessStop(kind, message)
        environment.latch(stopped)
        raise stopped

    import sys

    sys.addaudithook(hook)


def _path(given: object) -> str | None:
    """The path in an event's arguments; ``None`` where it is an open descriptor."""
    try:
        return None if isinstance(given, int) else os.fsdecode(given)  # type: ignore[arg-type]
    except TypeError:
        return None


def _inside(path: str, shut: tuple[str, ...]) -> bool:
    full = os.path.realpath(path)
    return any(full == folder or full.startswith(folder + os.sep) for folder in shut)

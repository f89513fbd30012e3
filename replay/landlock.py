"""A lock of the kernel's behind the audit hook: files that may not be read and TCP that may not be opened (Linux).

It holds for native code and for every program that is started. See https://docs.kernel.org/userspace-api/landlock.html;
TCP needs version 4 of its interface, Linux 6.7.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_CREATE, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_WHAT_VERSION = 1
_BENEATH_A_PATH = 1
_READ_FILE = 1 << 2
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_TCP_SINCE = 4
_NO_NEW_PRIVILEGES = 38
_PATH_ONLY = getattr(os, "O_PATH", 0)


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("access", ctypes.c_uint64), ("folder", ctypes.c_int32))


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What the kernel keeps this process and all that it starts from."""

    files: bool = False
    """From reading what is in the closed folders."""
    tcp: bool = False
    """From opening and taking TCP connections."""

    def names(self) -> list[str]:
        """For a record."""
        return [name for name, held in (("files", self.files), ("tcp", self.tcp)) if held]

    def said(self) -> str:
        """In words, for a report."""
        kept = [what for what, held in (("the scenario's files", self.files), ("TCP", self.tcp)) if held]
        if not kept:
            return "closed by the audit hook alone"
        return f"closed by the kernel, too: {' and '.join(kept)}"


def lock(closed: Sequence[str], *, network: bool) -> Locked:
    """Lock this thread, all it starts and all they start; for good.

    Landlock knows only what is allowed. So every file beside the closed ones is, as they stand now: a file that is
    made later directly in a folder above a closed one cannot be read back. Names in the closed folders can be listed.

    Args:
        closed: folders and files that may not be read; none may be missing a parent.
        network: whether TCP stays open.
    """
    if sys.platform != "linux":
        return Locked()
    system = ctypes.CDLL(None, use_errno=True)
    version = system.syscall(_CREATE, None, ctypes.c_size_t(0), _WHAT_VERSION)
    if version < 1:
        return Locked()
    shut = tuple(os.path.realpath(path) for path in closed)
    tcp = not network and version >= _TCP_SINCE
    wanted = _Ruleset(files=_READ_FILE if shut else 0, network=_BIND_TCP | _CONNECT_TCP if tcp else 0)
    if not (wanted.files or wanted.network):
        return Locked()
    size = ctypes.sizeof(wanted) if version >= _TCP_SINCE else ctypes.sizeof(ctypes.c_uint64)
    rules = system.syscall(_CREATE, ctypes.byref(wanted), ctypes.c_size_t(size), 0)
    if rules < 0:
        return Locked()
    try:
        for path in _beside(os.sep, shut) if shut else ():
            _allow(system, rules, path)
        if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or system.syscall(_RESTRICT_SELF, rules, 0):
            return Locked()
    finally:
        os.close(rules)
    return Locked(files=bool(shut), tcp=tcp)


def _beside(folder: str, shut: Sequence[str]) -> Iterator[str]:
    """The largest folders, and the files, that hold nothing closed."""
    if folder in shut:
        return
    if not any(path.startswith(folder.rstrip(os.sep) + os.sep) for path in shut):
        yield folder
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return  # what we may not list we cannot open either
    for entry in entries:
        if entry.is_symlink():
            continue  # where it leads is allowed, or is not, by its own path
        yield from _beside(entry.path, shut)


def _allow(system: ctypes.CDLL, rules: int, path: str) -> None:
    try:
        descriptor = os.open(path, _PATH_ONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # it went, or may not be reached: it stays shut
    try:
        rule = _Beneath(access=_READ_FILE, folder=descriptor)
        system.syscall(_ADD_RULE, rules, _BENEATH_A_PATH, ctypes.byref(rule), 0)
    finally:
        os.close(descriptor)

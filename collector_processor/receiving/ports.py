"""Listening on a port, and saying who has it when that fails."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

from redfirst.evaluators.errors import RedfirstError

_LISTENING = "0A"


class PortTaken(RedfirstError):
    """Another process listens on a port that the service needs."""

    def __init__(self, host: str, port: int, variable: str, key: str) -> None:
        who = holder(port)
        by = f"by {who}" if who else "by another process"
        super().__init__(
            f"Port {port} on {host} is taken {by}: end it, or choose another with {variable} or serve: {key} "
            f"(0 takes a free one)."
        )


def listen(host: str, port: int, variable: str, key: str) -> socket.socket:
    """A listening socket.

    Raises:
        PortTaken: another process has the port.
        RedfirstError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(1024)
        made.setblocking(False)
    except OSError as problem:
        made.close()
        if problem.errno == errno.EADDRINUSE:
            raise PortTaken(host, port, variable, key) from problem
        raise RedfirstError(f"Cannot listen on {host}:{port} ({variable}): {problem.strerror}.") from problem
    return made


def refuse_taken(host: str, port: int, variable: str, key: str) -> None:
    """Say who has a port that something else is about to listen on.

    Raises:
        PortTaken: another process has it.
    """
    listen(host, port, variable, key).close()


def holder(port: int) -> str | None:
    """The process that listens on a port, as ``COMMAND (pid N)``; None when that cannot be found out."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            links = [str(link.readlink()) for link in (folder / "fd").iterdir()]
        except OSError:
            continue  # another user's process, or one that has just ended
        if any(link == f"socket:[{inode}]" for link in links for inode in inodes):
            return f"{_command(folder)} (pid {folder.name})"
    return None


def _listening_inodes(port: int) -> set[str]:
    found: set[str] = set()
    for name in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{name}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # no such system
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTENING and int(fields[1].rsplit(":", 1)[1], 16) == port:
                found.add(fields[9])
    return found


def _command(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "a process"
    return " ".join(word.decode("utf-8", "replace") for word in words if word)[:80] or "a process"

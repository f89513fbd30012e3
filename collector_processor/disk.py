"""Writing so that it survives a loss of power."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def write_all(file: int, data: bytes) -> int:
    """Write all of it, in as many calls as that takes; gives how many bytes that were."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    return len(data)


def sync_file(file: int) -> None:
    """Make a file's content and length durable."""
    if sys.platform == "darwin":
        import fcntl

        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync there does not reach the medium
    elif hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        os.fsync(file)


def sync_folder(folder: Path) -> None:
    """Make a new file's name durable."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def make_folder(folder: Path, *, mode: int = 0o777) -> None:
    """Make a folder and those above it, their names durable."""
    folder = folder.absolute()
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True, mode=mode)
    for path in reversed(missing):
        sync_folder(path.parent)

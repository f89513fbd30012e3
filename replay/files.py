"""Files of a scenario on disk: read with a plain word about what is wrong, written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from redfirst.evaluators import ConfigurationError, RedfirstError

LARGEST = 32 << 20
"""Bytes of the largest file that is read."""


class CannotWrite(RedfirstError):
    """A result could not be put on disk: a full disk, a folder that may not be written."""

    exit_code = 3


def write(path: Path, body: bytes) -> None:
    """Put a file in place in one step: whoever reads it finds the old bytes or the new ones.

    Raises:
        CannotWrite: it cannot be written; what stood there before still does.
    """
    name = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    with writing(path):
        try:
            with name.open("xb") as file:
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                name.chmod(path.stat().st_mode & 0o7777)
            name.replace(path)
        except BaseException:
            name.unlink(missing_ok=True)
            raise


def require_writable(path: Path) -> None:
    """Make the folder of a file that is to be written, and try whether a file can be put there.

    Raises:
        ConfigurationError: it cannot be; known before any work is done for it.
    """
    try:
        if path.is_dir():
            raise ConfigurationError(f"{path}: is a folder; name a file in it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path.parent):
            pass
    except (FileExistsError, NotADirectoryError) as problem:
        raise ConfigurationError(
            f"{path}: cannot be written: a file stands where its folder should be. Name another."
        ) from problem
    except OSError as problem:
        raise ConfigurationError(
            f"{path}: cannot be written: {problem.strerror or problem}. Name a file that can be."
        ) from problem


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into one line about the path.

    Raises:
        CannotWrite: with what the system said.
    """
    try:
        yield
    except OSError as problem:
        raise CannotWrite(
            f"{path}: cannot be written: {problem.strerror or problem}. Make room there, or make it writable."
        ) from problem


def read(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        ConfigurationError: it cannot be read, is larger than any file of a scenario, or leads out of its folder.
    """
    try:
        if path.resolve().parent != path.parent.resolve():
            raise ConfigurationError(
                f"{path}: leads out of its folder, to {path.resolve()}; put the file itself there."
            )
        size = path.stat().st_size
        if size > LARGEST:
            raise ConfigurationError(
                f"{path}: {size >> 20} MiB; files of a scenario have at most {LARGEST >> 20}. Make its answers smaller."
            )
        return path.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read: {problem.strerror or problem}.") from problem

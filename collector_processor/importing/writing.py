"""Spans into gzipped OTLP files that appear when they are whole."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from redfirst.evaluators.errors import RedfirstError
from redfirst.evaluators.otlp_encode import encode_traces
from redfirst.evaluators.span import Span

SUFFIX = ".otlp.pb.gz"
MAX_BYTES = 2**28
"""Size of one file before compression; what is more goes into another. ``score`` refuses larger ones."""
_LEVEL = zlib.Z_BEST_SPEED


class CannotWrite(RedfirstError):
    """The folder for the output cannot be written."""


def output_name(path: Path, form: str, taken: set[str]) -> str:
    """A name for what is made of an input file, that no other of the import has."""
    stem = path.name.removesuffix(".gz")
    stem = stem.rpartition(".")[0] or stem
    name, number = f"{stem}.{form}", 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}.{form}"
    taken.add(name)
    return name


class OtlpFile:
    """One OTLP file, or several when it grows large. Requests that follow one another are one request."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._out: gzip.GzipFile | None = None
        self._raw: BinaryIO | None = None
        self._size = 0
        self.paths: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def write(self, spans: Iterable[Span]) -> None:
        """Add the spans of one record.

        Raises:
            CannotWrite: the folder cannot be written.
        """
        body = encode_traces(spans)
        try:
            if self._out is None or self._size + len(body) > MAX_BYTES:
                self._close()
                self._open()
            if self._out is None:
                raise AssertionError(self._name)
            self._out.write(body)
        except OSError as problem:
            raise CannotWrite(f"{self._folder}: cannot be written: {problem.strerror}.") from problem
        self._size += len(body)

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._close()
        elif self._out is not None and self._raw is not None:
            self._out.close()
            self._raw.close()
            self._partial().unlink(missing_ok=True)

    def _open(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        part = f".part{len(self.paths) + 1}" if self.paths else ""
        self.paths.append(self._folder / f"{self._name}{part}{SUFFIX}")
        self._raw = self._partial().open("wb")
        self._out = gzip.GzipFile("", "wb", _LEVEL, self._raw, mtime=0)
        self._size = 0

    def _partial(self) -> Path:
        return self.paths[-1].with_name(f".{self.paths[-1].name}.partial")

    def _close(self) -> None:
        if self._out is None or self._raw is None:
            return
        self._out.close()
        self._raw.close()
        self._partial().replace(self.paths[-1])
        self._out = None

"""Bodies unpacked piece by piece, never beyond a limit, whatever the data would grow to."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from redfirst.collector_processor.receiving.refusals import Refusal, Refused, too_large

_PIECE = 1 << 20
_ZSTD_STEP = 256
"""Compressed bytes given to zstd at once, which has no limit of its own: they unpack to 8 MiB at the most."""
_ZSTD_WINDOW = 1 << 27
_MOST_STREAMS = 10_000
"""Streams in one body, one after the other: of empty ones a body of megabytes would hold a million."""


class Inflater(Protocol):
    """Takes compressed bytes as they come; gives pieces, which raise ``Refused`` for damaged data."""

    def pieces(self, data: bytes) -> Iterator[bytes]: ...

    @property
    def whole(self) -> bool:
        """Whether the data ended where a stream ends."""


class _Zlib:
    def __init__(self, window: int) -> None:
        self._window = window
        self._stream = zlib.decompressobj(window)
        self._streams = 1
        self._begun = False

    @property
    def whole(self) -> bool:
        return self._stream.eof or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while data:
            self._begun = True
            if self._stream.eof:  # gzip files may be several, one after the other
                self._streams = _one_more(self._streams)
                self._stream = zlib.decompressobj(self._window)
            try:
                yield self._stream.decompress(data, _PIECE)
            except zlib.error as problem:
                raise _damaged(problem) from problem
            data = self._stream.unused_data or self._stream.unconsumed_tail


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._new: Callable[[], Any] = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj
        self._problem = zstandard.ZstdError
        self._stream = self._new()
        self._streams = 1
        self._begun = False

    @property
    def whole(self) -> bool:
        return bool(self._stream.eof) or not self._begun

    def pieces(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _ZSTD_STEP):
            step = data[start : start + _ZSTD_STEP]
            while step:
                self._begun = True
                if self._stream.eof:
                    self._streams = _one_more(self._streams)
                    self._stream = self._new()
                try:
                    yield self._stream.decompress(step)
                except self._problem as problem:
                    raise _damaged(problem) from problem
                step = self._stream.unused_data


ENCODINGS: Mapping[str, Callable[[], Inflater]] = {
    "gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(15),
    "zlib": lambda: _Zlib(15),
    "zstd": _Zstd,
}
"""By the name that ``Content-Encoding`` has for it."""


class Limited:
    """An inflater that stops at a limit."""

    def __init__(self, inflater: Inflater, limit: int) -> None:
        self._inflater = inflater
        self._limit = limit
        self._size = 0

    @property
    def whole(self) -> bool:
        return self._inflater.whole

    def pieces(self, data: bytes) -> Iterator[bytes]:
        for piece in self._inflater.pieces(data):
            self._size += len(piece)
            if self._size > self._limit:
                raise too_large(self._limit)
            yield piece


def _one_more(streams: int) -> int:
    if streams >= _MOST_STREAMS:
        raise Refused(
            Refusal.BAD_ENCODING, f"The compressed data are more than {_MOST_STREAMS} streams; send one."
        )
    return streams + 1


def _damaged(problem: Exception) -> Refused:
    return Refused(Refusal.BAD_ENCODING, f"The compressed data are damaged: {problem}.")

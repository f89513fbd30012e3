"""JSON members of a zip archive, packed with what Python knows or with Zstandard."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import orjson

from redfirst.collector_processor.extras import need
from redfirst.evaluators.errors import UnreadableInput

Json = Any

_ZSTANDARD = 93
"""Compression method of APPNOTE 6.3.8 that the standard library reads from Python 3.14 on."""
_LOCAL_HEADER = 30
_MOST_BYTES = 1 << 30
"""A member that unpacks to more is refused: a few kilobytes can claim to be anything."""


class Archive:
    """A zip archive in memory."""

    def __init__(self, body: bytes, place: str) -> None:
        """Open it.

        Raises:
            UnreadableInput: it is no zip archive.
        """
        self._body, self._place = body, place
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(body))
        except zipfile.BadZipFile as problem:
            raise UnreadableInput(f"{place}: not a zip archive, or cut off: {problem}.") from problem
        self._members = {member.filename: member for member in self._zip.infolist()}

    def first(self, *names: str) -> Json | None:
        """The first of these members that is there."""
        return next((self._read(self._members[name]) for name in names if name in self._members), None)

    def below(self, folder: str) -> Iterator[Json]:
        """The members of a folder, in the order of their names."""
        for name in sorted(self._members):
            if name.startswith(folder) and name.endswith(".json"):
                yield self._read(self._members[name])

    def _read(self, member: zipfile.ZipInfo) -> Json:
        where = f"{self._place}: {member.filename}"
        if member.file_size > _MOST_BYTES:
            raise UnreadableInput(
                f"{where}: unpacks to {member.file_size} bytes; at most {_MOST_BYTES} are read."
            )
        try:
            text = self._zstandard(member) if member.compress_type == _ZSTANDARD else self._zip.read(member)
            return orjson.loads(text)
        except (zipfile.BadZipFile, struct.error, ValueError, EOFError, NotImplementedError) as problem:
            raise UnreadableInput(f"{where}: damaged: {problem}.") from problem

    def _zstandard(self, member: zipfile.ZipInfo) -> bytes:
        """Unpack a member by hand: its bytes follow its local header (APPNOTE 4.3.7)."""
        need("zstandard", extra="inspect", wanted=f"Reading {self._place}")
        import zstandard

        name_length, extra_length = struct.unpack_from("<HH", self._body, member.header_offset + 26)
        begin = member.header_offset + _LOCAL_HEADER + name_length + extra_length
        packed = self._body[begin : begin + member.compress_size]
        try:
            reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
            return reader.read(member.file_size)
        except zstandard.ZstdError as problem:
            raise ValueError(str(problem)) from problem

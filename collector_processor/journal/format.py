"""The journal's bytes: segments of framed records, each one accepted export request.

A segment is eight bytes of header and then frames. A frame is a mark, the length and the CRC-32 of its payload, a
CRC-32 of that head with the frame's own position in it, and the payload: arrival time, signal, tenant, and the
protobuf body as it can be forwarded, compressed where that makes it smaller. The position in the head's checksum
makes a frame valid in one place only: bytes that a sender put into a body, or that an older file left on the disk,
are never taken for a record. Segments of format 1 (no head checksum, no compression) are read, not written.
"""

from __future__ import annotations

import functools
import struct
import zlib
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple

from redfirst.collector_processor.extras import need
from redfirst.evaluators.errors import RedfirstError

Signal = Literal["traces", "logs"]

_NAME = b"RFJRNL\x00"
FORMAT = 2
SEGMENT_HEADER = _NAME + bytes([FORMAT])
MARK = b"\xf5RFJ"
SUFFIX = ".segment"

_FRAME_1 = struct.Struct("<4sII")
_FRAME = struct.Struct("<4sIII")
_HEAD_1 = struct.Struct("<QBB")
_HEAD = struct.Struct("<QBBBI")
_PLACE = struct.Struct("<QQ")
_SIGNALS: dict[Signal, int] = {"traces": 1, "logs": 2}
_NAMES: dict[int, Signal] = {code: name for name, code in _SIGNALS.items()}
_ZSTD_LEVEL = 1
_SMALL = 256
"""Bodies below this are not worth compressing."""

LONGEST_FRAME_HEADER = _FRAME.size
SEGMENT_START = len(SEGMENT_HEADER) + _FRAME.size


class Coding(IntEnum):
    """How a body is written."""

    PLAIN = 0
    ZSTD = 1


class Damage(StrEnum):
    """Why bytes of a segment are no record."""

    TORN = "torn"
    """They end too early."""
    ZEROES = "zeroes"
    """The file was made longer and nothing was written."""
    NO_RECORD = "no_record"
    """No record begins where one should."""
    CHECKSUM = "checksum"
    """They are not what was written."""
    UNKNOWN = "unknown_kind"
    """They are what was written, by something that this program does not know."""


class Position(NamedTuple):
    """Where a record begins: the number of its segment and the offset in it. Later records compare greater."""

    segment: int
    offset: int


START = Position(0, 0)
"""Before every record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One accepted export request."""

    signal: Signal
    tenant: str
    arrival_ns: int
    """Unix nanoseconds of the receiver's clock."""
    body: bytes
    """The protobuf request; what was accepted and nothing else."""


class JournalTooNew(RedfirstError):
    """A segment was written by a newer version."""


class BrokenFrame(Exception):
    """The bytes at a position are no whole record."""

    def __init__(self, damage: Damage, what: str, *, length: int | None = None) -> None:
        super().__init__(what)
        self.damage = damage
        self.length = length
        """Bytes that the frame takes, where its head is whole."""


class FrameHead(NamedTuple):
    """The head of a frame that is whole."""

    size: int
    """Bytes of the head itself."""
    length: int
    """Bytes of the payload."""
    crc: int


def format_of(start: bytes, number: int) -> int | None:
    """The format that the first ``SEGMENT_START`` bytes of a segment name; None when they are damaged.

    Raises:
        JournalTooNew: it is of a newer version.
    """
    if len(start) < len(SEGMENT_HEADER) or not start.startswith(_NAME):
        return None
    found = start[len(_NAME)]
    if found <= FORMAT:
        return found
    try:
        frame_head(start[len(SEGMENT_HEADER) :], Position(number, len(SEGMENT_HEADER)), FORMAT)
    except BrokenFrame as problem:
        raise JournalTooNew(
            f"The journal was written by a newer redfirst (segment format {found}; this one knows {FORMAT}): "
            "upgrade redfirst, or point REDFIRST_HOME elsewhere."
        ) from problem
    return None  # its first record is one of ours: the byte was damaged


def frame(record: Record, position: Position) -> bytes:
    """The record as it is written at that position, and nowhere else."""
    tenant = record.tenant.encode()
    coding, body = Coding.PLAIN, record.body
    if len(body) >= _SMALL:
        packed = _zstandard().ZstdCompressor(level=_ZSTD_LEVEL).compress(body)
        if len(packed) < len(body):
            coding, body = Coding.ZSTD, packed
    head = _HEAD.pack(record.arrival_ns, _SIGNALS[record.signal], len(tenant), coding.value, len(record.body))
    payload = b"".join((head, tenant, body))
    start = MARK + struct.pack("<II", len(payload), zlib.crc32(payload))
    return b"".join((start, struct.pack("<I", _head_crc(start, position)), payload))


def frame_head(head: bytes, position: Position, version: int | None) -> FrameHead:
    """Read the head of the frame at a position; ``version`` None where the segment's own header is damaged.

    Raises:
        BrokenFrame: the head is cut short, damaged or none.
    """
    if not head.startswith(MARK):
        if not head:
            raise BrokenFrame(Damage.TORN, "the segment ends here")
        if MARK.startswith(head):
            raise BrokenFrame(Damage.TORN, "the header is cut short")
        if not any(head):
            raise BrokenFrame(Damage.ZEROES, "nothing was written here")
        raise BrokenFrame(Damage.NO_RECORD, "no record begins here")
    if len(head) >= _FRAME.size:
        _, length, crc, own = _FRAME.unpack_from(head)
        if own == _head_crc(head[: _FRAME_1.size], position):
            return FrameHead(_FRAME.size, length, crc)
    if version not in (1, None):
        if len(head) < _FRAME.size:
            raise BrokenFrame(Damage.TORN, "the header is cut short")
        raise BrokenFrame(Damage.CHECKSUM, "the header's checksum does not match")
    if len(head) < _FRAME_1.size:
        raise BrokenFrame(Damage.TORN, "the header is cut short")
    _, length, crc = _FRAME_1.unpack_from(head)
    return FrameHead(_FRAME_1.size, length, crc)


def unframe(head: FrameHead, payload: bytes) -> Record:
    """The record of a frame.

    Raises:
        BrokenFrame: the payload is cut short or is not what was written.
        MissingExtra: it is compressed, and what decompresses it is not installed.
    """
    if len(payload) < head.length:
        raise BrokenFrame(Damage.TORN, "the payload is cut short")
    length = head.size + head.length
    if zlib.crc32(payload) != head.crc:
        raise BrokenFrame(Damage.CHECKSUM, "the checksum does not match", length=length)
    fields = _HEAD_1 if head.size == _FRAME_1.size else _HEAD
    if len(payload) < fields.size:
        raise BrokenFrame(Damage.UNKNOWN, "the record is of an unknown kind", length=length)
    arrival_ns, signal, tenant_length, *how = fields.unpack_from(payload)
    start = fields.size + tenant_length
    if signal not in _NAMES or start > len(payload) or (how and how[0] not in iter(Coding)):
        raise BrokenFrame(Damage.UNKNOWN, "the record is of an unknown kind", length=length)
    body = payload[start:]
    if how and how[0] == Coding.ZSTD:
        body = _zstandard().ZstdDecompressor().decompress(body, max_output_size=how[1])
    return Record(
        signal=_NAMES[signal],
        tenant=payload[fields.size : start].decode("utf-8", "replace"),
        arrival_ns=arrival_ns,
        body=body,
    )


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:010d}{SUFFIX}"


def segments(folder: Path) -> list[int]:
    """The numbers of the segments that are there, in order."""
    return sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit())


def _head_crc(start: bytes, position: Position) -> int:
    return zlib.crc32(start, zlib.crc32(_PLACE.pack(*position)))


@functools.cache
def _zstandard() -> Any:
    need("zstandard", extra="server", wanted="The journal")
    import zstandard

    return zstandard

"""The journal's bytes: segments of framed records, each one accepted export request.

A segment is eight bytes of header and then frames; a frame is a mark, the length and the CRC-32 of its
payload, and the payload: arrival time, signal, tenant, and the protobuf body as it can be forwarded.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

Signal = Literal["traces", "logs"]

SEGMENT_HEADER = b"RFJRNL\x00\x01"
MARK = b"\xf5RFJ"
SUFFIX = ".segment"

_FRAME = struct.Struct("<4sII")
_HEAD = struct.Struct("<QBB")
_SIGNALS: dict[Signal, int] = {"traces": 1, "logs": 2}
_NAMES: dict[int, Signal] = {code: name for name, code in _SIGNALS.items()}

FRAME_HEADER = _FRAME.size


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


class BrokenFrame(Exception):
    """The bytes at a position are no whole record; ``torn`` when they only end too early."""

    def __init__(self, what: str, *, torn: bool) -> None:
        super().__init__(what)
        self.torn = torn


def frame(record: Record) -> bytes:
    """The record as it is written."""
    tenant = record.tenant.encode()
    payload = b"".join(
        (_HEAD.pack(record.arrival_ns, _SIGNALS[record.signal], len(tenant)), tenant, record.body)
    )
    return _FRAME.pack(MARK, len(payload), zlib.crc32(payload)) + payload


def frame_length(head: bytes) -> int:
    """Length of the payload that a frame's header announces.

    Raises:
        BrokenFrame: the header is cut short or is none.
    """
    if len(head) < FRAME_HEADER:
        raise BrokenFrame("the header is cut short", torn=True)
    mark, length, _ = _FRAME.unpack_from(head)
    if mark != MARK:
        raise BrokenFrame("no record begins here", torn=False)
    return int(length)


def unframe(head: bytes, payload: bytes) -> Record:
    """The record of a header and its payload.

    Raises:
        BrokenFrame: the payload is cut short or is not what was written.
    """
    _, length, crc = _FRAME.unpack_from(head)
    if len(payload) < length:
        raise BrokenFrame("the payload is cut short", torn=True)
    if zlib.crc32(payload) != crc or length < _HEAD.size:
        raise BrokenFrame("the checksum does not match", torn=False)
    arrival_ns, signal, tenant_length = _HEAD.unpack_from(payload)
    start = _HEAD.size + tenant_length
    if signal not in _NAMES or start > length:
        raise BrokenFrame("the record is of an unknown kind", torn=False)
    return Record(
        signal=_NAMES[signal],
        tenant=payload[_HEAD.size : start].decode("utf-8", "replace"),
        arrival_ns=arrival_ns,
        body=payload[start:],
    )


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:010d}{SUFFIX}"


def segments(folder: Path) -> list[int]:
    """The numbers of the segments that are there, in order."""
    return sorted(int(path.stem) for path in folder.glob(f"*{SUFFIX}") if path.stem.isdigit())

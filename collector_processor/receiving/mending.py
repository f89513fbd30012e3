"""A protobuf request that its parser refuses as a whole, with as much of it saved as can be.

Text that is not UTF-8 gets U+FFFD where it is wrong, values nested beyond every parser's limit get a mark in their
place, and a record that is no message is left out. Everything else stays the bytes that came.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from redfirst.collector_processor.receiving.json_request import DEEPEST, TOO_DEEP, descriptor_type
from redfirst.evaluators.errors import UnreadableInput

_OUTER = 3
"""Message levels around a record: the request, the resource's group, the scope's group."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GROUPS, _RESOURCE, _SCOPES, _SCOPE, _ITEMS = 1, 1, 2, 1, 2
"""Field numbers, the same for spans and for log records."""

Counts = dict[str, int]
Bytes = bytes | memoryview
"""A part of the request, looked at where it lies: a large one is not copied for every level of it."""


def mended(body: bytes, kind: Any, counts: Counts) -> tuple[bytes, int]:
    """The request without what made its parser refuse it, and how many records were left out. ``counts`` gets how
    often something was replaced, by reason.

    Raises:
        UnreadableInput: not even its outline can be read.
    """
    outline = kind.DESCRIPTOR.fields_by_number[_GROUPS].message_type
    lost = 0
    groups: list[Bytes] = []
    for number, wire, value, raw in _fields(memoryview(body)):
        if number != _GROUPS or wire != _BYTES:
            groups.append(raw)
            continue
        group, left_out = _group(value, outline, kind, counts)
        lost += left_out
        groups.append(_field(_GROUPS, group))
    return b"".join(groups), lost


def _group(data: memoryview, outline: Any, kind: Any, counts: Counts) -> tuple[bytes, int]:
    lost = 0
    parts: list[Bytes] = []
    for number, wire, value, raw in _fields(data):
        if number == _SCOPES and wire == _BYTES:
            scope, left_out = _scope(value, outline.fields_by_number[_SCOPES].message_type, kind, counts)
            lost += left_out
            parts.append(_field(_SCOPES, scope))
        else:
            parts.append(_plain(number, wire, value, raw, outline, 2, counts))
    return b"".join(parts), lost


def _scope(data: memoryview, outline: Any, kind: Any, counts: Counts) -> tuple[bytes, int]:
    parts: list[Bytes] = []
    items: list[tuple[memoryview, memoryview]] = []
    for number, wire, value, raw in _fields(data):
        if number == _ITEMS and wire == _BYTES:
            items.append((value, raw))
        else:
            parts.append(_plain(number, wire, value, raw, outline, _OUTER, counts))
    whole = _items(items, outline.fields_by_number[_ITEMS].message_type, kind, counts)
    return b"".join((*parts, *whole)), len(items) - len(whole)


def _items(
    items: Sequence[tuple[memoryview, memoryview]], item: Any, kind: Any, counts: Counts
) -> list[Bytes]:
    """The records, those that cannot be read mended or left out. They are found by halving: most are good."""
    raws: list[Bytes] = [raw for _, raw in items]
    if not items or _parses(b"".join(raws), kind):
        return raws
    if len(items) > 1:
        middle = len(items) // 2
        return [
            *_items(items[:middle], item, kind, counts),
            *_items(items[middle:], item, kind, counts),
        ]
    try:
        return [_field(_ITEMS, _message(items[0][0], item, _OUTER + 1, counts))]
    except UnreadableInput:
        return []


def _parses(items: bytes, kind: Any) -> bool:
    """Whether a request with these records alone can be read."""
    from google.protobuf.message import DecodeError

    try:
        kind.FromString(_field(_GROUPS, _field(_SCOPES, items)))
    except DecodeError:
        return False
    return True


def _message(data: memoryview, descriptor: Any, depth: int, counts: Counts) -> bytes:
    return b"".join(
        _plain(number, wire, value, raw, descriptor, depth, counts)
        for number, wire, value, raw in _fields(data)
    )


def _plain(
    number: int, wire: int, value: memoryview, raw: memoryview, descriptor: Any, depth: int, counts: Counts
) -> Bytes:
    """One field of a message at a depth, as it may stand."""
    inner, is_text = _known(descriptor).get(number, (None, False))
    if wire != _BYTES or not (inner or is_text):
        return raw
    if is_text:
        try:
            str(value, "utf-8")
        except UnicodeDecodeError:
            counts["bad_utf8"] = counts.get("bad_utf8", 0) + 1
            return _field(number, str(value, "utf-8", "replace").encode())
        return raw
    if inner.name == "AnyValue" and depth + 1 > DEEPEST:
        counts["too_deep"] = counts.get("too_deep", 0) + 1
        return _field(number, _field(1, TOO_DEEP.encode()))
    return _field(number, _message(value, inner, depth + 1, counts))


@functools.cache
def _known(descriptor: Any) -> dict[int, tuple[Any, bool]]:
    """By field number, the type of a message and whether it is text."""
    text = descriptor_type("TYPE_STRING")
    return {field.number: (field.message_type, field.type == text) for field in descriptor.fields}


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview, memoryview]]:
    """Number, wire type, value and the whole of each field.

    Raises:
        UnreadableInput: the data are no message.
    """
    at = 0
    while at < len(data):
        begin = at
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == _VARINT:
            _, end = _varint(data, at)
        elif wire == _FIXED64:
            end = at + 8
        elif wire == _FIXED32:
            end = at + 4
        elif wire == _BYTES:
            length, at = _varint(data, at)
            end = at + length
        else:
            raise UnreadableInput(f"no field begins at byte {begin}")
        if end > len(data) or not tag >> 3:
            raise UnreadableInput(f"the field at byte {begin} is cut short")
        yield tag >> 3, wire, data[at:end], data[begin:end]
        at = end


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise UnreadableInput(f"the number at byte {at} is cut short")


def _field(number: int, value: Bytes) -> bytes:
    return b"".join((_written(number << 3 | _BYTES), _written(len(value)), value))


def _written(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)

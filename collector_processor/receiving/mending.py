"""A protobuf request that its parser refuses as a whole, with as much of it saved as can be.

Text that is not UTF-8 gets U+FFFD where it is wrong, values nested beyond every parser's limit get a mark in their
place, and a record that is no message is left out. Everything else stays the bytes that came.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from redfirst.collector_processor.receiving.json_request import (
    DEEPEST,
    MOST_UNREADABLE,
    TOO_DEEP,
    descriptor_type,
)
from redfirst.evaluators.errors import UnreadableInput

_OUTER = 3
"""Message levels around a record: the request, the resource's group, the scope's group."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_GROUPS, _RESOURCE, _SCOPES, _SCOPE, _ITEMS = 1, 1, 2, 1, 2
"""Field numbers, the same for spans and for log records."""

_MOST_FIELDS = 1_000_000
"""Fields that are looked at one by one in one request: what mending takes is bounded, too."""
_LEAST = 12
"""Bytes that groups and records have at least, on average: a span alone in its group has 38 in three."""
_SLACK = 64 << 10

Counts = dict[str, int]
Bytes = bytes | memoryview
"""A part of the request, looked at where it lies: a large one is not copied for every level of it."""


def mended(body: bytes, kind: Any, counts: Counts) -> tuple[bytes, int]:
    """The request without what made its parser refuse it, and how many records were left out. ``counts`` gets how
    often something was replaced, by reason.

    Raises:
        UnreadableInput: not even its outline can be read.
    """
    return _Mending(kind, counts).request(memoryview(body))


def refuse_crumbs(body: bytes) -> None:
    """Look a large request over: one of countless records too small to be any would take a hundred times its size to
    read.

    Raises:
        UnreadableInput: it is one.
    """
    found = 0

    def look(data: memoryview, begin: int, inner: Sequence[int]) -> None:
        nonlocal found
        for number, wire, value, _ in _fields(data):
            if number != inner[0] or wire != _BYTES:
                continue
            found += 1
            begin += 2
            if found * _LEAST > begin + _SLACK:
                raise UnreadableInput(
                    f"its first {found} groups and records have less than {_LEAST} bytes each on average"
                )
            if inner[1:]:
                look(value, begin, inner[1:])
            begin += len(value)

    look(memoryview(body), 0, (_GROUPS, _SCOPES, _ITEMS))


class _Mending:
    """The mending of one request of a kind."""

    def __init__(self, kind: Any, counts: Counts) -> None:
        self._kind, self._counts = kind, counts
        self._lost = self._looked_at = 0

    def request(self, data: memoryview) -> tuple[bytes, int]:
        outline = self._kind.DESCRIPTOR.fields_by_number[_GROUPS].message_type
        groups: list[Bytes] = []
        for number, wire, value, raw in self._fields(data):
            if number == _GROUPS and wire == _BYTES:
                groups.append(_field(_GROUPS, self._group(value, outline)))
            else:
                groups.append(raw)
        return b"".join(groups), self._lost

    def _group(self, data: memoryview, outline: Any) -> bytes:
        parts: list[Bytes] = []
        for number, wire, value, raw in self._fields(data):
            if number == _SCOPES and wire == _BYTES:
                scope = self._scope(value, outline.fields_by_number[_SCOPES].message_type)
                parts.append(_field(_SCOPES, scope))
            else:
                parts.append(self._plain(number, wire, value, raw, outline, 2))
        return b"".join(parts)

    def _scope(self, data: memoryview, outline: Any) -> bytes:
        parts: list[Bytes] = []
        items: list[tuple[memoryview, memoryview]] = []
        for number, wire, value, raw in self._fields(data):
            if number == _ITEMS and wire == _BYTES:
                items.append((value, raw))
            else:
                parts.append(self._plain(number, wire, value, raw, outline, _OUTER))
        return b"".join((*parts, *self._items(items, outline.fields_by_number[_ITEMS].message_type)))

    def _items(self, items: Sequence[tuple[memoryview, memoryview]], item: Any) -> list[Bytes]:
        """The records, those that cannot be read mended or left out. They are found by halving: most are good."""
        raws: list[Bytes] = [raw for _, raw in items]
        if not items or _parses(b"".join(raws), self._kind):
            return raws
        if len(items) > 1:
            middle = len(items) // 2
            return [*self._items(items[:middle], item), *self._items(items[middle:], item)]
        try:
            return [_field(_ITEMS, self._message(items[0][0], item, _OUTER + 1))]
        except UnreadableInput as problem:
            self._lost += 1
            if self._looked_at > _MOST_FIELDS:
                raise
            if self._lost > MOST_UNREADABLE:
                what = f"more than {MOST_UNREADABLE} of its records cannot be read: {problem}"
                raise UnreadableInput(what) from problem
            return []

    def _message(self, data: memoryview, descriptor: Any, depth: int) -> bytes:
        return b"".join(
            self._plain(number, wire, value, raw, descriptor, depth)
            for number, wire, value, raw in self._fields(data)
        )

    def _plain(
        self, number: int, wire: int, value: memoryview, raw: memoryview, descriptor: Any, depth: int
    ) -> Bytes:
        """One field of a message at a depth, as it may stand."""
        inner, is_text = _known(descriptor).get(number, (None, False))
        if wire != _BYTES or not (inner or is_text):
            return raw
        if is_text:
            try:
                str(value, "utf-8")
            except UnicodeDecodeError:
                self._replaced("bad_utf8")
                return _field(number, str(value, "utf-8", "replace").encode())
            return raw
        if inner.name == "AnyValue" and depth + 1 > DEEPEST:
            self._replaced("too_deep")
            return _field(number, _field(1, TOO_DEEP.encode()))
        return _field(number, self._message(value, inner, depth + 1))

    def _replaced(self, why: str) -> None:
        self._counts[why] = self._counts.get(why, 0) + 1

    def _fields(self, data: memoryview) -> Iterator[tuple[int, int, memoryview, memoryview]]:
        for field in _fields(data):
            self._looked_at += 1
            if self._looked_at > _MOST_FIELDS:
                raise UnreadableInput(f"it is damaged, and has more than {_MOST_FIELDS} fields to look at")
            yield field


def _parses(items: bytes, kind: Any) -> bool:
    """Whether a request with these records alone can be read."""
    from google.protobuf.message import DecodeError

    try:
        kind.FromString(_field(_GROUPS, _field(_SCOPES, items)))
    except DecodeError:
        return False
    return True


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

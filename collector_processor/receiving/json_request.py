"""OTLP/JSON export requests into protobuf ones, field by field as the protocol says.

protobuf's own JSON mapping is not OTLP's: ids are hex, enums are integers only, unknown fields (names in
snake_case among them) are ignored. Nothing the protocol defines is lost, so what is journalled can be forwarded.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from redfirst.evaluators.errors import UnreadableInput
from redfirst.evaluators.otlp_json_values import double, shown, wrong

TOO_DEEP = "[redfirst: nested too deeply, left out]"
DEEPEST = 90
"""Message levels that a parser of protobuf takes everywhere (its own limit is 100)."""
LARGE = 4 << 20
"""Bytes of a request that is looked over before it is read: what reading takes is bounded for all smaller ones."""
MOST_UNREADABLE = 10_000
"""Records of one request that are left out one by one; no sender that means well has more."""
_RECORDS = frozenset({"spans", "log_records"})
"""What is left out alone when it cannot be read."""
_IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    json_name: str
    kind: str
    repeated: bool


class NeedsPatience(Exception):
    """What came cannot be read at once; with more work, some of it may be."""


def parse_json(text: bytes, *, patient: bool = True) -> object:
    """The JSON value.

    Raises:
        UnreadableInput: it is none.
        NeedsPatience: it may be one, and there was to be no ``patient`` look.
    """
    if len(text) > LARGE:
        _refuse_crumbs(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        if not patient:
            raise NeedsPatience from problem
    try:
        return _patiently(text)
    except ValueError as problem:
        raise UnreadableInput(f"The body is not JSON: {problem}.") from problem
    except RecursionError:
        pass
    try:
        return _patiently(_pruned(text))
    except (ValueError, RecursionError) as problem:
        raise UnreadableInput("The body is not JSON: it is nested too deeply and does not end.") from problem


def _patiently(text: bytes) -> object:
    value: object = json.loads(text.decode("utf-8"))  # takes half surrogate pairs, which orjson refuses
    return value


def _refuse_crumbs(text: bytes) -> None:
    """Countless values of nothing would take forty times their size to read."""
    bare = _STRING.sub(b"", text)
    values = bare.count(b",") + bare.count(b"[") + bare.count(b"{")
    if values > _MOST_VALUES:
        raise UnreadableInput(f"The body has {values} values; send smaller batches.")


_MOST_VALUES = 10_000_000
"""Values of one JSON document: a request of 64 MiB that says something has two thirds of them."""
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)  # one without an end goes to the end: no look back
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_BRACKETS = 3 * DEEPEST + 20
"""A value at the deepest level that is read lies in fewer brackets than these."""


def _pruned(text: bytes) -> bytes:
    """The text with ``null`` for what is nested deeper than is read anyway, so that one value does not cost the rest."""
    parts: list[bytes] = []
    depth = taken = begun = 0
    for token in _TOKEN.finditer(text):
        bracket = token[0]
        if bracket in (b"[", b"{"):
            depth += 1
            if depth == _BRACKETS:
                begun = token.start()
        elif bracket in (b"]", b"}"):
            if depth == _BRACKETS:
                parts += [text[taken:begun], b"null"]
                taken = token.end()
            depth -= 1
    return b"".join([*parts, text[taken:]])


@dataclass(slots=True)
class Noted:
    """What was not taken as it came."""

    left_out: int = 0
    """Spans and log records that had to be left out."""
    problem: str = ""
    """What was wrong with the first of them."""
    odd: dict[str, int] = dataclasses.field(default_factory=dict)
    """Values that were replaced, by why."""

    def leave_out(self, problem: UnreadableInput) -> None:
        """A record was left out.

        Raises:
            UnreadableInput: there are too many of them.
        """
        self.problem = self.problem or str(problem)
        self.left_out += 1
        if self.left_out > MOST_UNREADABLE:
            raise UnreadableInput(
                f"more than {MOST_UNREADABLE} of its records cannot be read: {self.problem}"
            )

    def replaced(self, why: str) -> None:
        """A value was replaced."""
        self.odd[why] = self.odd.get(why, 0) + 1


def fill(message: Any, document: object) -> Noted:
    """Set the fields of an empty request message from parsed JSON. A span or log record with a value of the wrong type
    is left out, as ``Noted`` says.

    Raises:
        UnreadableInput: the same is true of what is around the records.
    """
    if not isinstance(document, Mapping):
        raise UnreadableInput(f"Expected an export request as a JSON object, found {shown(document)}.")
    noted = Noted()
    _fill(message, document, "", 1, noted)
    return noted


def _fill(message: Any, record: Mapping[str, object], where: str, depth: int, noted: Noted) -> None:
    for field in _fields(message.DESCRIPTOR):
        value = record.get(field.json_name)
        if value is None:
            continue
        at = f"{where}.{field.json_name}" if where else field.json_name
        if not field.repeated:
            _set(message, field, value, at, depth, noted)
            continue
        if not isinstance(value, list):
            raise wrong(at, "an array", value)
        into = getattr(message, field.name)
        for n, item in enumerate(value):
            if field.name in _RECORDS:
                try:
                    _nested(into.add(), item, f"{at}[{n}]", depth + 1, noted)
                except UnreadableInput as problem:
                    del into[-1]
                    noted.leave_out(problem)
            elif field.kind == "message":
                _nested(into.add(), item, f"{at}[{n}]", depth + 1, noted)
            else:
                into.append(_scalar(field, item, f"{at}[{n}]", noted))


def _set(message: Any, field: _Field, value: object, at: str, depth: int, noted: Noted) -> None:
    if field.kind == "message":
        nested = getattr(message, field.name)
        nested.SetInParent()
        _nested(nested, value, at, depth + 1, noted)
    else:
        setattr(message, field.name, _scalar(field, value, at, noted))


def _nested(message: Any, value: object, at: str, depth: int, noted: Noted) -> None:
    if not isinstance(value, Mapping):
        raise wrong(at, "an object", value)
    if message.DESCRIPTOR.name == "AnyValue" and depth > DEEPEST:
        message.string_value = TOO_DEEP
        noted.replaced("too_deep")
        return
    _fill(message, value, at, depth, noted)


def _scalar(field: _Field, value: object, at: str, noted: Noted) -> object:
    if field.kind == "string":
        if not isinstance(value, str):
            raise wrong(at, "a string", value)
        return value if value.isascii() else _text(value, noted)
    if field.kind == "bool":
        if not isinstance(value, bool):
            raise wrong(at, "true or false", value)
        return value
    if field.kind == "bytes":
        return _bytes(field, value, at)
    if field.kind == "double":
        return double(value, at)
    return _integer(field, value, at)


def _text(value: str, noted: Noted) -> str:
    """The text with U+FFFD for halves of surrogate pairs, which UTF-8 has no bytes for."""
    whole, halves = _HALVES.subn("\ufffd", value)
    if halves:
        noted.replaced("bad_utf8")
    return whole


def _bytes(field: _Field, value: object, at: str) -> bytes:
    if not isinstance(value, str):
        raise wrong(at, "a string", value)
    length = _IDS.get(field.json_name)
    if length is not None:
        try:
            return bytes.fromhex(value) if len(value) == 2 * length else b""
        except ValueError:
            return b""  # no id: the span is refused with its reason, and the rest of the request is kept
    try:
        plain = value.replace("-", "+").replace("_", "/").rstrip("=")
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except (binascii.Error, ValueError) as problem:
        raise wrong(at, "base64", value) from problem


_HALVES = re.compile("[\ud800-\udfff]")
_DIGITS = re.compile(r"-?[0-9]{1,20}")
_RANGES = {
    "int32": (-(2**31), 2**31 - 1),
    "enum": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}


def _integer(field: _Field, value: object, at: str) -> int:
    number = None if isinstance(value, bool) else _whole(value, as_text=field.kind != "enum")
    low, high = _RANGES[field.kind]
    if number is None or not low <= number <= high:
        wanted = "the integer of the enum" if field.kind == "enum" else f"an integer ({field.kind})"
        raise wrong(at, wanted, value)
    return number


def _whole(value: object, *, as_text: bool) -> int | None:
    """The integer that a value is, exactly; it may be written as text."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else None
    if as_text and isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    return None


@functools.cache
def _fields(descriptor: Any) -> tuple[_Field, ...]:
    kinds = {descriptor_type(name): kind for name, kind in _TYPES.items()}
    return tuple(
        _Field(field.name, field.json_name, kinds[field.type], _is_repeated(field))
        for field in descriptor.fields
    )


_TYPES = {
    "TYPE_MESSAGE": "message",
    "TYPE_STRING": "string",
    "TYPE_BOOL": "bool",
    "TYPE_BYTES": "bytes",
    "TYPE_DOUBLE": "double",
    "TYPE_ENUM": "enum",
    "TYPE_INT32": "int32",
    "TYPE_SINT32": "int32",
    "TYPE_UINT32": "uint32",
    "TYPE_FIXED32": "uint32",
    "TYPE_INT64": "int64",
    "TYPE_SFIXED64": "int64",
    "TYPE_UINT64": "uint64",
    "TYPE_FIXED64": "uint64",
}


def descriptor_type(name: str) -> int:
    """protobuf's number of a field type."""
    from google.protobuf.descriptor import FieldDescriptor

    return int(getattr(FieldDescriptor, name))


def _is_repeated(field: Any) -> bool:
    modern = getattr(field, "is_repeated", None)  # older protobuf releases have the label only
    return bool(modern) if modern is not None else field.label == field.LABEL_REPEATED

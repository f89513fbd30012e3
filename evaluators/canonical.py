"""One canonical form for values, used to match fixtures, hash events and find repeats; one equality for rules.

Canonical: keys are sorted; integral floats below 2**53 become integers; strings are NFC with runs of
white space folded, never case-folded; lists keep their order. The text is JSON in the spirit of RFC 8785.

Rules compare more loosely, because money travels as text: a decimal numeral without leading zeros
(``"120.00"``, ``"-7"``) is the number it spells. ``equal`` compares so, ``key_text`` groups so.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import orjson

from redfirst.evaluators.kleene import Truth, all_of

VOLATILE_KEYS = frozenset({"request_id", "idempotency_key", "trace_id", "span_id", "nonce"})
"""Argument names whose values differ from call to call by design and say nothing of the intent."""

_EXACT_FLOAT = 2**53
_NUMERAL = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Canonical:
    """How far two values may differ and still be the same."""

    drop_keys: frozenset[str] = frozenset()
    drop_nulls: bool = False


_EXPONENT = re.compile(rb"[0-9]e-?[0-9]|0\.0000")
"""What may be a number that Python writes with an exponent."""
_TEXT = frozenset({str})
_encoded = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode

EXACT = Canonical()
INTENT = Canonical(drop_keys=VOLATILE_KEYS, drop_nulls=True)
"""For repeats: two calls with the same intent differ at most in volatile keys and explicit nulls."""


def canonical(value: object, how: Canonical = EXACT) -> object:
    """The value in canonical form (dict, list, str, int, float, bool, None)."""
    if isinstance(value, str):
        return " ".join((value if value.isascii() else unicodedata.normalize("NFC", value)).split())
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return int(value) if value.is_integer() and abs(value) < _EXACT_FLOAT else value
        return str(value)
    if isinstance(value, dict) and set(map(type, value)) <= _TEXT:
        keys = sorted(value)
        if how.drop_keys or how.drop_nulls:
            keys = [
                key
                for key in keys
                if key not in how.drop_keys and not (how.drop_nulls and value[key] is None)
            ]
        return {key: canonical(value[key], how) for key in keys}
    if isinstance(value, Mapping):
        return {
            str(key): canonical(item, how)
            for key, item in sorted(value.items(), key=lambda pair: str(pair[0]))
            if str(key) not in how.drop_keys and not (how.drop_nulls and item is None)
        }
    if isinstance(value, set | frozenset):
        return sorted((canonical(item, how) for item in value), key=canonical_text)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [canonical(item, how) for item in value]
    return str(value)


def canonical_text(value: object, how: Canonical = EXACT) -> str:
    """The canonical form as one line of JSON."""
    found = canonical(value, how)
    # orjson is the faster; it writes tiny and huge numbers differently, and takes no long integers and lone surrogates.
    try:
        said = orjson.dumps(found)
    except TypeError:
        return _encoded(found)
    return _encoded(found) if _EXPONENT.search(said) else said.decode()


def digest(value: object, how: Canonical = EXACT) -> str:
    """SHA-256 of the canonical text, as 64 hex digits."""
    return hashlib.sha256(canonical_text(value, how).encode("utf-8", "surrogatepass")).hexdigest()


def same(left: object, right: object) -> bool:
    """Whether two values are equal in canonical form; ``True`` and ``1`` are not."""
    if left == right and repr(left) == repr(right):
        return True
    return canonical_text(left) == canonical_text(right)


def equal(left: object, right: object) -> Truth:
    """Equality as rules mean it: unknown between values of different types; null equals null alone."""
    if left is None or right is None:
        return left is right
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right if isinstance(left, bool) and isinstance(right, bool) else None
    one, other = number_of(left), number_of(right)
    if one is not None and other is not None:
        return one == other
    if isinstance(left, str) and isinstance(right, str):
        return same(left, right)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        here, there = ({str(key): item for key, item in each.items()} for each in (left, right))
        return here.keys() == there.keys() and all_of(equal(here[key], there[key]) for key in here)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all_of(map(equal, left, right))
    return None


def key_text(value: object) -> str:
    """Text that two values share when they are ``equal``, and only then."""
    if (number := number_of(value)) is not None:
        digits = format(number, "f")
        digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
        return "0" if digits == "-0" else digits
    if isinstance(value, Mapping):
        items = sorted((str(key), key_text(item)) for key, item in value.items())
        return f"{{{','.join(f'{json.dumps(key)}:{text}' for key, text in items)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(key_text, value))}]"
    return canonical_text(value)


def number_of(value: object) -> Decimal | None:
    """The number that a value is or, being text, spells; ``None`` for any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    if isinstance(value, str) and _NUMERAL.fullmatch(text := " ".join(value.split())):
        return Decimal(text)
    return None

"""One canonical form for values: used to match fixtures, hash events and find repeats.

Keys are sorted; integral floats below 2**53 become integers; strings are NFC with runs of white
space folded, never case-folded; lists keep their order. The text is JSON in the spirit of RFC 8785.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

VOLATILE_KEYS = frozenset({"request_id", "idempotency_key", "trace_id", "span_id", "nonce"})
"""Argument names whose values differ from call to call by design and say nothing of the intent."""

_EXACT_FLOAT = 2**53


@dataclass(frozen=True, slots=True)
class Canonical:
    """How far two values may differ and still be the same."""

    drop_keys: frozenset[str] = frozenset()
    drop_nulls: bool = False


EXACT = Canonical()
INTENT = Canonical(drop_keys=VOLATILE_KEYS, drop_nulls=True)
"""For repeats: two calls with the same intent differ at most in volatile keys and explicit nulls."""


def canonical(value: object, how: Canonical = EXACT) -> object:
    """The value in canonical form (dict, list, str, int, float, bool, None)."""
    if isinstance(value, str):
        return " ".join(unicodedata.normalize("NFC", value).split())
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return int(value) if value.is_integer() and abs(value) < _EXACT_FLOAT else value
        return str(value)
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
    return json.dumps(canonical(value, how), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: object, how: Canonical = EXACT) -> str:
    """SHA-256 of the canonical text, as 64 hex digits."""
    return hashlib.sha256(canonical_text(value, how).encode("utf-8", "surrogatepass")).hexdigest()


def same(left: object, right: object) -> bool:
    """Whether two values are equal in canonical form; ``True`` and ``1`` are not."""
    return canonical_text(left) == canonical_text(right)

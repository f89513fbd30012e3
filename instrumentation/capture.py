"""Values of the host as bounded span attributes. No value of the host's makes anything here raise."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson

_log = logging.getLogger("redfirst.instrumentation")

_LIMIT = "REDFIRST_MAX_VALUE_CHARACTERS"
_SHORTEST_LIMIT = 256  # room for the marker and some of the value

_OFF = frozenset(
    {"false", "0", "no", "no_content", "event_only"}
)  # event_only: not on spans, and we write spans
_ON = frozenset({"true", "1", "yes"})

_dumps = orjson.dumps
_ORJSON = orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATACLASS  # its own way leaves out names with "_"
_DEEPEST = 200
_LONGEST_INTEGER = 14_000  # bits; Python refuses to write integers of more than 4300 digits


def limit_from_environment(environ: Mapping[str, str]) -> int:
    """``REDFIRST_MAX_VALUE_CHARACTERS``; 65536 when it is unset or no number."""
    given = environ.get(_LIMIT, "").strip()
    if given.isascii() and given.isdecimal() and len(given) < 19:
        return max(int(given), _SHORTEST_LIMIT)
    if given:
        _log.warning("%s=%s is not a number of characters; 65536 is used", _LIMIT, given[:40])
    return 65536


MAX_CHARACTERS = limit_from_environment(os.environ)
"""Longest value kept on a span; a longer one is cut, marked and hashed, never dropped."""


@dataclass(frozen=True, slots=True)
class Content:
    """Which content may leave the process, by the conventions' own variables."""

    inputs: bool = True
    outputs: bool = True
    requests: bool = True
    """What is sent to a model; never without ``inputs``."""
    replies: bool = True
    """What a model answers; never without ``outputs``."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Content:
        """Read ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` and ``OPENINFERENCE_HIDE_*``."""
        env = os.environ if environ is None else environ
        captured = (
            env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true").strip().lower() not in _OFF
        )

        def shown(*parts: str) -> bool:
            return captured and not any(
                env.get(f"OPENINFERENCE_HIDE_{part}", "").strip().lower() in _ON for part in parts
            )

        return cls(
            inputs=shown("INPUTS"),
            outputs=shown("OUTPUTS"),
            requests=shown("INPUTS", "INPUT_MESSAGES", "INPUT_TEXT"),
            replies=shown("OUTPUTS", "OUTPUT_MESSAGES", "OUTPUT_TEXT"),
        )


def to_json(value: object) -> str:
    """The value as JSON text; what JSON cannot say is said by ``repr``, NaN and infinities by null."""
    try:
        return _dumps(value, _default, _ORJSON).decode()
    except Exception:  # noqa: BLE001 - integers beyond 64 bits, lone surrogates, deep nesting, a __repr__ that raises
        return json.dumps(_part(value, ()), allow_nan=False, separators=(",", ":"))


def plain(value: object) -> Any:
    """The value as JSON data: what a recording of it would give back."""
    return json.loads(to_json(value))


def to_text(value: object) -> tuple[str, bool]:
    """The value as text and whether it is JSON; a string is itself."""
    if isinstance(value, str):
        return clean(value), False
    return to_json(value), True


def clean(text: str) -> str:
    """The text with lone surrogates escaped: protobuf refuses them, and a whole batch with them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def bounded(text: str, limit: int | None = None) -> tuple[str, dict[str, object] | None]:
    """The clean text, cut to the limit with a marker, and a note of the cut (``None`` when whole)."""
    limit = MAX_CHARACTERS if limit is None else limit
    text = clean(text)
    if len(text) <= limit:
        return text, None
    sha = hashlib.sha256(text.encode()).hexdigest()
    marker = f"…[cut by redfirst: {len(text)} characters, sha256 {sha}]"
    return text[: max(0, limit - len(marker))] + marker, {"length": len(text), "sha256": sha}


def shown(value: object, how: Any = repr) -> str:
    """``repr`` (or ``str``) of the value, whatever its own method does."""
    try:
        return str(how(value))
    except Exception:  # noqa: BLE001 - a host's __repr__ may raise anything
        return f"<{type(value).__name__} that cannot be shown>"


def _default(value: object) -> object:
    """A value that JSON does not know, by a nearer one."""
    # looked up on the class: a proxy or a mock has every attribute, and some of them call far away
    dump = getattr(type(value), "model_dump", None)
    if callable(dump):
        return _dumped(dump, value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, AbstractSet):
        return sorted(value, key=shown)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name, None) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return list(value)
    return shown(value)


def _dumped(dump: Any, value: object) -> object:
    try:
        return dump(value, mode="json", warnings=False)
    except Exception:  # noqa: BLE001 - a field that pydantic cannot say in JSON
        return dict(dump(value, warnings=False))


def _part(value: Any, above: tuple[int, ...]) -> object:
    """The value as JSON data, part by part, so that one bad part does not spoil the others."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Enum):
        return _part(value.value, above)
    if isinstance(value, int):
        return (
            int(value) if value.bit_length() < _LONGEST_INTEGER else f"<integer of {value.bit_length()} bits>"
        )
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if id(value) in above:
        return "<circular>"
    if len(above) > _DEEPEST:
        return "<nested too deeply>"
    inside = (*above, id(value))
    try:
        if isinstance(value, Mapping):
            return {_key(key): _part(item, inside) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [_part(item, inside) for item in value]
        return _part(_leaf(value), inside)
    except Exception:  # noqa: BLE001 - whatever a host's container does when it is read
        return shown(value)


def _leaf(value: object) -> object:
    if isinstance(value, AbstractSet) or is_dataclass(value):
        return _default(value)
    try:
        return json.loads(orjson.dumps(value))  # dates and UUIDs, as they are written in good company
    except TypeError:
        return _default(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    try:
        (found,) = orjson.loads(orjson.dumps({key: None}, option=_ORJSON))
    except TypeError:
        return shown(key)
    return str(found)

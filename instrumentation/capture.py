"""Values of the host as bounded span attributes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, is_dataclass
from decimal import Decimal
from typing import Any

import orjson

MAX_CHARACTERS = int(os.environ.get("REDFIRST_MAX_VALUE_CHARACTERS", "65536"))
"""Longest value kept on a span; a longer one is cut, marked and hashed, never dropped."""

_OFF = frozenset({"false", "0", "no", "no_content"})
_ON = frozenset({"true", "1", "yes"})


@dataclass(frozen=True, slots=True)
class Content:
    """Which content may leave the process, by the conventions' own variables."""

    inputs: bool = True
    outputs: bool = True

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Content:
        """Read ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`` and ``OPENINFERENCE_HIDE_*``."""
        env = os.environ if environ is None else environ
        captured = env.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true").lower() not in _OFF
        return cls(
            inputs=captured and env.get("OPENINFERENCE_HIDE_INPUTS", "false").lower() not in _ON,
            outputs=captured and env.get("OPENINFERENCE_HIDE_OUTPUTS", "false").lower() not in _ON,
        )


def to_json(value: object) -> str:
    """The value as JSON text; what JSON cannot say is said by ``repr``."""
    try:
        return orjson.dumps(value, default=_default, option=orjson.OPT_NON_STR_KEYS).decode()
    except TypeError:
        # orjson refuses integers beyond 64 bits, lone surrogates and very deep nesting; json escapes them
        try:
            return json.dumps(value, default=_default, skipkeys=True)
        except (TypeError, ValueError, RecursionError):
            return json.dumps(repr(value)[:MAX_CHARACTERS])


def plain(value: object) -> Any:
    """The value as JSON data: what a recording of it would give back."""
    return json.loads(to_json(value))


def is_plain(value: object) -> bool:
    """Whether the value survives a recording unchanged in type."""
    return value is None or isinstance(value, str | int | float | bool | list | tuple | dict)


def to_text(value: object) -> tuple[str, bool]:
    """The value as text and whether it is JSON; a string is itself."""
    if isinstance(value, str):
        # protobuf refuses lone surrogates, and the exporter would drop the whole batch
        return value.encode("utf-8", "backslashreplace").decode(), False
    return to_json(value), True


def bounded(text: str, limit: int | None = None) -> tuple[str, dict[str, object] | None]:
    """The text, cut to the limit with a marker, and a note of the cut (``None`` when whole)."""
    limit = MAX_CHARACTERS if limit is None else limit
    if len(text) <= limit:
        return text, None
    sha = hashlib.sha256(text.encode()).hexdigest()
    marker = f"…[cut by redfirst: {len(text)} characters, sha256 {sha}]"
    return text[: max(0, limit - len(marker))] + marker, {"length": len(text), "sha256": sha}


def _default(value: object) -> object:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, AbstractSet):
        return sorted(value, key=repr)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return repr(value)

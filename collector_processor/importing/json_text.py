"""Values as the JSON texts that attributes hold."""

from __future__ import annotations

import json


def json_text(value: object) -> str:
    """The value as JSON; what JSON does not know as its text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def text_or_json(value: object) -> str | None:
    """The value as instrumentors write it: a text as it is, ``None`` as nothing, all else as JSON."""
    return value if value is None or isinstance(value, str) else json_text(value)

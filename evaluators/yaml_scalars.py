"""What a plain scalar means, to the reader and to the writer alike.

The core schema of YAML 1.2.2 (10.3), narrowed so that identifiers stay text: a number is decimal, without
sign ``+`` and without leading zeros. ``no``, ``012``, ``0x1F``, ``12:30:45`` and ``2026-11-20`` are text.
"""

from __future__ import annotations

import math
import re

LONGEST_NUMBER = 300
NUMBER = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)

_INT = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}


def resolve(text: str) -> object:
    """The value of a plain scalar.

    Raises:
        ValueError: it is a number that no float or reasonable integer holds.
    """
    if text in _WORDS:
        return _WORDS[text]
    if not NUMBER.fullmatch(text):
        return text
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    if _INT.fullmatch(text):
        return int(text)
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"the number {text} is too large")
    return value

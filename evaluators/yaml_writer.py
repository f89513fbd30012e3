"""Plain data as YAML that a person reviews: block style, short lines, the same bytes every time.

Text that any reader might take for something else is quoted, for YAML 1.1 readers (``no``, ``012``,
``12:30:45``, ``2026-11-20``) too. Text of several lines is a literal block where that is exact.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from redfirst.evaluators.yaml_scalars import resolve

WIDTH = 100
_STEP = 2

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.+-]*(?: [A-Za-z0-9_/.+()-]+)*", re.ASCII)
_MISREAD = re.compile(
    r"y|n|yes|no|on|off|true|false|null|~|[-+]?\.?[0-9][0-9_.:eExXobA-Fa-f+-]*|[-+]?\.(?:inf|nan)|[0-9]{4}-.*",
    re.IGNORECASE,
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def dump(data: object, *, sort_keys: bool = False) -> str:
    """The data as a YAML document; ``load`` gives it back.

    Raises:
        TypeError: a value or key that JSON does not know.
        ValueError: text with a lone surrogate, which no YAML can hold.
    """
    if isinstance(data, Mapping | list | tuple) and data:
        return "\n".join(_block(data, 0, sort_keys)) + "\n"
    return "\n".join(_scalar(data, 0, 0)) + "\n"


def _block(
    data: Mapping[str, object] | list[object] | tuple[object, ...], indent: int, sort: bool
) -> Iterator[str]:
    pad = " " * indent
    if not isinstance(data, Mapping):
        for item in data:
            yield from _after(f"{pad}-", item, indent, sort, compact=True)
        return
    for key in sorted(data) if sort else data:
        if not isinstance(key, str):
            raise TypeError(f"keys are text, not {type(key).__name__} {key!r}")
        head = _quoted_key(key)
        if len(pad) + len(head) < WIDTH:
            yield from _after(f"{pad}{head}:", data[key], indent, sort, compact=False)
        else:
            first, *rest = _fold(key, indent + _STEP, indent + _STEP)
            yield f"{pad}? {first}"
            yield from rest
            yield from _after(f"{pad}:", data[key], indent, sort, compact=True)


def _after(head: str, value: object, indent: int, sort: bool, *, compact: bool) -> Iterator[str]:
    """The value behind ``key:`` or ``-``; a container begins on the same line where that is allowed."""
    if isinstance(value, Mapping | list | tuple) and value:
        lines = _block(value, indent + _STEP, sort)
        if compact:
            yield f"{head} {next(lines)[indent + _STEP :]}"
        else:
            yield head
        yield from lines
        return
    first, *rest = _scalar(value, len(head) + 1, indent + _STEP)
    yield f"{head} {first}"
    yield from rest


def _scalar(value: object, column: int, indent: int) -> list[str]:
    if isinstance(value, str):
        return _text(value, column, indent)
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, int):
        return [int.__repr__(value)]
    if isinstance(value, float):
        return [_float(value)]
    if isinstance(value, Mapping):
        return ["{}"]
    if isinstance(value, list | tuple):
        return ["[]"]
    raise TypeError(f"{type(value).__name__} has no place in a document; turn it into text or a number first")


def _float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    text = float.__repr__(value)
    mantissa, exponent, power = text.partition("e")
    return mantissa + (".0" if exponent and "." not in mantissa else "") + exponent + power


def _text(text: str, column: int, indent: int) -> list[str]:
    if _is_plain(text) and column + len(text) <= WIDTH:
        return [text]
    lines = text.removesuffix("\n").split("\n")
    if len(lines) > 1 and _fits_literal(text, lines, indent):
        pad = " " * indent
        return ["|" if text.endswith("\n") else "|-", *(pad + line if line else "" for line in lines)]
    return _fold(text, indent, column)


def _is_plain(text: str) -> bool:
    return bool(_PLAIN.fullmatch(text)) and not _MISREAD.fullmatch(text) and resolve(text) == text


def _fits_literal(text: str, lines: list[str], indent: int) -> bool:
    return (
        indent > 0
        and bool(lines[0])
        and not lines[0].startswith(" ")
        and bool(lines[-1])
        and all(line == line.rstrip() and len(line) + indent <= WIDTH for line in lines)
        and all(char == "\n" or _is_printable(char) for char in text)
    )


def _is_printable(char: str) -> bool:
    return char.isprintable() and char not in "\x7f\x85\u2028\u2029\ufeff"


def _quoted_key(key: str) -> str:
    return key if _is_plain(key) else f'"{"".join(map(_escaped, key))}"'


def _fold(text: str, indent: int, column: int) -> list[str]:
    """The text in double quotes, broken with a backslash at the end of every line that would be too long: between
    words where there are any, the space staying before the backslash.

    The first line begins at ``column``, the others at ``indent``.
    """
    lines, start, line, word = [], column, '"', 0
    for char in text:
        written = _escaped(char)
        if start + len(line) + len(written) + 1 > WIDTH and line.strip('"'):
            kept, line = (line[:word], line[word:]) if word else (line, "")
            lines.append(kept + "\\")
            start, word = 0, 0
            line = " " * indent + line
            written = "\\ " if char == " " and not line.strip() else written
        line += written
        if char == " " and line[: -len(written)].strip('" '):
            word = len(line)
    return [*lines, line + '"']


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if _is_printable(char):
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"a lone surrogate U+{code:04X} is no character; remove or replace it")
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"

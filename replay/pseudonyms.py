"""What stands for a value that must not be kept.

A pseudonym is a hash keyed by the project's key and the scenario: equal values stay equal inside one scenario, and
cannot be told equal between two. It keeps what code commonly asks of a value: an e-mail address stays one, digits stay
digits, a date a date.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from redfirst.evaluators import RedfirstError

Json = Any

SHORTEST = 4
"""Characters of the shortest value that can be told from others wherever it stands."""
_EMAIL = re.compile(r"^[^@\s]+@[^@\s]+\.[^@\s]+$")
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}$")
_DIGITS = re.compile(r"^[\d +().-]*\d[\d +().-]*$")
_LONGEST_NOTATION = 1 << 20
"""Characters of a text in Python's notation that is looked into: reading it takes far more room than it has itself."""
_BYTES = re.compile(r"\b[bB]['\"]")
_ESCAPED = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))"
"""Begins a value: no letter or digit before it, or one that is part of a JSON escape."""


class CannotRedact(RedfirstError):
    """A value cannot be taken out of a scenario without changing what it shows."""

    exit_code = 3


class Pseudonyms:
    """The values found in one scenario, and what stands for each."""

    def __init__(self, key: bytes, scenario: str) -> None:
        self._key = hmac.digest(key, scenario.encode(), "sha256")
        self.of: dict[str, str] = {}
        self.found: Counter[str] = Counter()
        """Distinct values by the name of what found them."""
        self._expression: re.Pattern[str] | None = None

    def add(self, name: str, value: str) -> None:
        """A value that is to be replaced.

        Raises:
            CannotRedact: it is so short that it would be found in other values.
        """
        if value in self.of or value.strip() == "":
            return
        if len(value) < SHORTEST:
            raise CannotRedact(
                f"{name}: a value of {len(value)} characters cannot be told from others; leave it out of redaction: "
                f"or let the agent not record it."
            )
        self.of[value] = self._made(value)
        self.found[name] += 1
        self._expression = None

    def _made(self, value: str) -> str:
        hashed = hmac.new(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256)
        number, word = int.from_bytes(hashed.digest()), hashed.hexdigest()[:12]
        if _EMAIL.match(value):
            return f"redacted-{word}@redacted.invalid"
        if _DATE.match(value):
            return f"{1950 + number % 50}-{1 + number // 50 % 12:02d}-{1 + number // 600 % 28:02d}"
        if _DIGITS.match(value):
            return _digits_like(value, str(number))
        return f"redacted-{word}"

    def text(self, text: str) -> str:
        """The text with every value replaced, also where it is spelt as in a JSON text."""
        if not self.of:
            return text
        if self._expression is None:
            self._spelt = {spelt: made for value, made in self.of.items() for spelt in _spellings(value)}
            ordered = sorted(self._spelt, key=len, reverse=True)
            self._expression = re.compile(f"{_ESCAPED}(?:{'|'.join(map(re.escape, ordered))})(?![A-Za-z0-9])")
        return self._expression.sub(lambda match: self._spelt[match[0]], text)

    def stand_in(self, value: Json) -> bool:
        """Whether a pseudonym stands anywhere in the value."""
        said = json.dumps(value, ensure_ascii=False, default=str)
        return any(one in said for one in self.of.values())

    def value(self, value: Json) -> Json:
        """The value of an attribute, with every value in it replaced, in names of members, too."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None or isinstance(value, bytes):
            return value
        if isinstance(value, int):
            return int(self.text(str(value)))
        if isinstance(value, float):
            return float(self.text(repr(value)))
        if isinstance(value, Mapping):
            return {self.text(key): self.value(item) for key, item in value.items()}
        if isinstance(value, tuple | list):
            return type(value)(self.value(item) for item in value)
        return value


def _digits_like(value: str, digits: str) -> str:
    """Other digits in the same places; a leading zero stays one, and no other number gets one."""
    out, left = [], iter(digits)
    for character in value:
        if not character.isdigit():
            out.append(character)
        elif any(one.isdigit() for one in out):
            out.append(next(left))
        else:
            out.append("0" if character == "0" else str(1 + int(next(left)) % 9))
    return "".join(out)


def _spellings(value: str) -> set[str]:
    once = json.dumps(value, ensure_ascii=False)[1:-1]
    twice = json.dumps(once, ensure_ascii=False)[1:-1]
    plain = json.dumps(value)[1:-1]
    python = repr(value)[1:-1]
    return {
        value,
        once,
        twice,
        plain,
        json.dumps(plain)[1:-1],
        python,
        json.dumps(python, ensure_ascii=False)[1:-1],
    }


def leaves(names: tuple[str, ...], value: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each text and number in a value, with the names of the members it stands in; texts of JSON, and of
    Python, as frameworks write the answer of a tool, are looked into.

    A member's name is a text, too, and comes without names: state is often kept by customer or address.
    """
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield (), str(key)
            yield from leaves((*names, str(key)), item)
    elif isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from leaves(names, item)
    elif isinstance(value, str):
        read = _data_in(value)
        if read != value:
            yield from leaves(names, read)
            return
        yield names, value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield names, str(value)
    elif isinstance(value, float) and _DIGITS.match(repr(value)):  # not one with an exponent, nor NaN
        yield names, repr(value)


def _data_in(text: str) -> Json:
    """What a text of JSON or of Python's own notation says; the text itself where it is neither."""
    begins = text.lstrip()[:1]
    if not begins or begins not in '{["':
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if begins == '"' or len(text) > _LONGEST_NOTATION or _BYTES.search(text):
        return text
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text

"""Values in texts and answers, so that one is found again however it was written: case, spaces, numbers, links."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

from redfirst.evaluators.canonical import key_text, number_of

SHORTEST = 4
"""Characters of a value that can be told from chance."""

_NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])", re.ASCII)
_ADDRESS = re.compile(r"https?://[^\s<>\"')\]]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_MOST = 200
"""Values of one argument that are looked for."""


def leaves(value: object) -> Iterator[str]:
    """Every text and number of a value, as text."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield key_text(value)


def values_of(text: str) -> list[str]:
    """The values that a text carries, normalised: the text as a whole, and the addresses within it."""
    found = dict.fromkeys(map(normalised, (text, *_ADDRESS.findall(text))))
    return [one for one in found if len(one) >= SHORTEST][:_MOST]


def holds_value(source: object, value: str) -> bool:
    """Whether a normalised value stands in a text or an answer, not as part of a longer word or number."""
    if number_of(value) is not None:
        return any(value in _numbers(leaf) for leaf in leaves(source))
    wanted = re.compile(rf"(?<![\w@.+-]){re.escape(value)}(?![\w@-]|\.\w)")
    return any(wanted.search(_folded(leaf)) for leaf in leaves(source))


def normalised(text: str) -> str:
    """The text without case, outer space and a link's last slash; a number as the number it spells."""
    folded = _folded(text).removeprefix("mailto:")
    folded = folded.rstrip("/") if "://" in folded else folded
    return key_text(folded) if number_of(folded) is not None else folded


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _numbers(text: str) -> set[str]:
    """The numbers in a text, as ``normalised`` writes them; ``1,250.00`` is 1250."""
    return {normalised(found.replace(",", "")) for found in _NUMBER.findall(_folded(text))}
